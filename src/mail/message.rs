//! A queued email as a MIME message. Unauthenticated clients choose the recipient and names in the subject. Neither can
//! inject a header or a command.

use std::{
    fmt,
    str::FromStr as _,
    time::{Duration, SystemTime},
};

use lettre::{
    Address,
    message::{
        Mailbox, Message, MultiPart,
        header::{HeaderName, HeaderValue},
    },
    transport::smtp::extension::ClientId,
};

use scoregate_base::clock::Wall;
use scoregate_store::NewMail;

/// The sender of all mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SenderMailbox(Mailbox);

/// An email that is ready to be sent.
pub struct OutgoingMail {
    pub message_id: String,
    pub queued_at: Wall,
    pub sender: Address,
    pub recipient: Address,
    /// The plain text.
    pub text: String,
    pub content: Vec<u8>,
}

/// The reason why a queued email cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidMail {
    #[error("the address of the recipient is invalid")]
    Recipient,
    #[error("the message id is invalid")]
    MessageId,
    #[error("the message cannot be built")]
    Parts,
}

impl SenderMailbox {
    /// A mailbox such as `Example API <noreply@example.org>` or `noreply@example.org`. The address is in ASCII.
    pub fn parse(text: &str) -> Option<Self> {
        // The library's parser ignores text after a mailbox.
        let ends = text.ends_with('>') || !text.contains(['<', '>', ',', ';', ' ']);
        let is_one = text.matches('<').count() <= 1 && !text.chars().any(char::is_control);
        let mailbox = Mailbox::from_str(text).ok().filter(|_| ends && is_one)?;
        is_usable(&mailbox.email)
            .then_some(Self(mailbox))
            .filter(|sender| sender.0.email.to_string().is_ascii())
    }

    /// The domain of the address.
    pub fn domain(&self) -> &str {
        self.0.email.domain()
    }

    /// The name of this program in EHLO: the domain of the sender.
    pub(super) fn client_name(&self) -> ClientId {
        ClientId::Domain(self.domain().to_owned())
    }
}

impl fmt::Display for SenderMailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Builds the MIME message of an email. Each attempt has the same headers.
pub fn outgoing(mail: &NewMail, from: &SenderMailbox) -> Result<OutgoingMail, InvalidMail> {
    let recipient: Address = mail.recipient.parse().map_err(|_| InvalidMail::Recipient)?;
    if !is_usable(&recipient) {
        return Err(InvalidMail::Recipient);
    }
    if mail.message_id.is_empty()
        || !mail
            .message_id
            .bytes()
            .all(|byte: u8| byte.is_ascii_graphic() && !b"<>()\\,;:\"[]".contains(&byte))
    {
        return Err(InvalidMail::MessageId);
    }
    let name = HeaderName::new_from_ascii_str("Auto-Submitted");
    let message = Message::builder()
        .from(from.0.clone())
        .to(Mailbox::new(None, recipient.clone()))
        .subject(on_one_line(&mail.subject))
        .date(SystemTime::UNIX_EPOCH + Duration::from_secs(mail.created_at.seconds()))
        .message_id(Some(format!("<{}>", mail.message_id)))
        // Programs that answer mail automatically must not answer this mail (RFC 3834).
        .raw_header(HeaderValue::new(name, "auto-generated".into()))
        .multipart(MultiPart::alternative_plain_html(
            mail.text.clone(),
            mail.html.clone(),
        ))
        .map_err(|_| InvalidMail::Parts)?;
    Ok(OutgoingMail {
        message_id: mail.message_id.clone(),
        queued_at: mail.created_at,
        sender: from.0.email.clone(),
        recipient,
        text: mail.text.clone(),
        content: message.formatted(),
    })
}

impl OutgoingMail {
    /// Whether every server can transport the email.
    pub fn is_ascii(&self) -> bool {
        let recipient: &str = self.recipient.as_ref();
        recipient.is_ascii() && self.content.is_ascii()
    }
}

/// Whether an address can be part of an SMTP command.
fn is_usable(address: &Address) -> bool {
    let text: &str = address.as_ref();
    !text
        .chars()
        .any(|char| char.is_control() || char.is_whitespace() || matches!(char, '<' | '>'))
}

fn on_one_line(subject: &str) -> String {
    subject
        .chars()
        .map(|char| if char.is_control() { ' ' } else { char })
        .collect()
}

#[cfg(test)]
mod tests {
    use scoregate_store::MailKind;

    use super::*;

    const NOON: Wall = Wall::from_seconds(1_795_608_000);

    fn mail() -> NewMail {
        NewMail {
            kind: MailKind::SignIn,
            recipient: "ann+test@example.org".into(),
            subject: "Sign in".into(),
            text: "Open https://api.example.org/account/sign-in?token=1\n".into(),
            html: "<p>Gr\u{fc}\u{df}e</p>".into(),
            webhook: String::new(),
            message_id: "5f3a@example.org".into(),
            created_at: NOON,
            expires_at: NOON.plus(Duration::from_mins(15)),
        }
    }

    fn from() -> SenderMailbox {
        SenderMailbox::parse("Example API <noreply@example.org>").unwrap()
    }

    /// The header lines, with folded lines joined.
    fn headers(mail: &NewMail) -> Vec<String> {
        let content = String::from_utf8(outgoing(mail, &from()).unwrap().content).unwrap();
        let (head, _) = content.split_once("\r\n\r\n").unwrap();
        head.replace("\r\n ", " ")
            .split("\r\n")
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn a_message_has_the_headers_of_automatic_mail_and_two_parts() {
        let headers = headers(&mail());
        for line in [
            "From: \"Example API\" <noreply@example.org>",
            "To: ann+test@example.org",
            "Subject: Sign in",
            "Message-ID: <5f3a@example.org>",
            "Auto-Submitted: auto-generated",
            "MIME-Version: 1.0",
        ] {
            assert!(
                headers.iter().any(|header| header == line),
                "{line}: {headers:#?}"
            );
        }
        assert!(
            headers
                .iter()
                .any(|header| header.starts_with("Date: Wed, 25 Nov 2026 12:00:00")),
            "{headers:#?}"
        );
        assert!(
            headers
                .iter()
                .any(|header| header.starts_with("Content-Type: multipart/alternative;"))
        );
        let content = String::from_utf8(outgoing(&mail(), &from()).unwrap().content).unwrap();
        let plain = content.find("text/plain").unwrap();
        assert!(
            plain < content.find("text/html").unwrap(),
            "the last part is the preferred one"
        );
        assert!(content.is_ascii());
    }

    #[test]
    fn no_subject_adds_a_header_or_ends_the_head() {
        let names = |mail: &NewMail| {
            let name = |line: String| line.split(':').next().unwrap_or_default().to_owned();
            headers(mail).into_iter().map(name).collect::<Vec<_>>()
        };
        let usual = names(&mail());
        for subject in [
            "x\r\nBcc: eve@example.org",
            "x\nBcc: eve@example.org",
            "x\rBcc: eve@example.org",
            "x\r\n\r\nanother text",
            "\r\n",
            "\u{85}\u{2028}Bcc: eve@example.org",
            "=?utf-8?q?x=0D=0ABcc:_eve@example.org?=",
        ] {
            let mail = NewMail {
                subject: subject.into(),
                ..mail()
            };
            assert_eq!(names(&mail), usual, "{subject:?}");
        }
        let long = NewMail {
            subject: "Stra\u{df}e ".repeat(200),
            ..mail()
        };
        assert_eq!(names(&long), usual);
    }

    #[test]
    fn an_address_that_is_none_or_more_than_one_is_refused() {
        for recipient in [
            "",
            "ann",
            "ann@",
            "@example.org",
            "ann@example.org, eve@example.org",
            "ann@example.org eve@example.org",
            "Ann <ann@example.org>",
            "ann@example.org>\r\nRCPT TO:<eve@example.org",
            "\"a\r\nb\"@example.org",
            "\"a> b\"@example.org",
            "ann@example.org\r\n",
            "ann@exa mple.org",
        ] {
            let mail = NewMail {
                recipient: recipient.into(),
                ..mail()
            };
            assert_eq!(
                outgoing(&mail, &from()).err(),
                Some(InvalidMail::Recipient),
                "{recipient:?}"
            );
        }
    }

    #[test]
    fn a_message_id_that_would_break_its_header_is_refused() {
        for message_id in ["", "<a@b>", "a b@c", "a@b\r\nBcc: eve@example.org", "a@b>"] {
            let mail = NewMail {
                message_id: message_id.into(),
                ..mail()
            };
            assert_eq!(
                outgoing(&mail, &from()).err(),
                Some(InvalidMail::MessageId),
                "{message_id:?}"
            );
        }
    }

    #[test]
    fn only_an_address_outside_ascii_needs_a_server_that_supports_it() {
        assert!(outgoing(&mail(), &from()).unwrap().is_ascii());
        let foreign = NewMail {
            recipient: "j\u{f6}rg@example.org".into(),
            ..mail()
        };
        assert!(!outgoing(&foreign, &from()).unwrap().is_ascii());
    }
}
