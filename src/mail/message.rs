//! A mail of the queue as a MIME message. Subject and recipient come from strangers: neither can add a header or a command.

use std::fmt;
use std::str::FromStr as _;
use std::time::{Duration, SystemTime};

use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, Message, MultiPart};
use lettre::{Address, transport::smtp::extension::ClientId};

use crate::clock::Wall;
use crate::store::NewMail;

/// The sender of all mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SenderMailbox(Mailbox);

/// A mail that is ready to be sent.
pub(super) struct OutgoingMail {
    pub(super) message_id: String,
    pub(super) queued_at: Wall,
    pub(super) sender: Address,
    pub(super) recipient: Address,
    pub(super) content: Vec<u8>,
}

/// Why a mail of the queue cannot be sent to anyone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum InvalidMail {
    #[error("the address of the recipient is invalid")]
    Recipient,
    #[error("the message id is invalid")]
    MessageId,
    #[error("no message can be made of its parts")]
    Parts,
}

impl SenderMailbox {
    /// A mailbox such as `Example API <noreply@example.org>` or `noreply@example.org`. Its address is in ASCII.
    pub fn parse(text: &str) -> Option<Self> {
        // The library's parser ignores what follows a mailbox.
        let ends = text.ends_with('>') || !text.contains(['<', '>', ',', ';', ' ']);
        let is_one = text.matches('<').count() <= 1 && !text.chars().any(char::is_control);
        let mailbox = Mailbox::from_str(text).ok().filter(|_| ends && is_one)?;
        is_usable(&mailbox.email).then_some(Self(mailbox)).filter(|sender| sender.0.email.to_string().is_ascii())
    }

    /// The name of this program in the dialogue with a server: the domain of the sender.
    pub(super) fn client_name(&self) -> ClientId {
        ClientId::Domain(self.0.email.domain().to_owned())
    }
}

impl fmt::Display for SenderMailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Makes the message of a mail. Each attempt has the same headers.
pub(super) fn outgoing(mail: &NewMail, from: &SenderMailbox) -> Result<OutgoingMail, InvalidMail> {
    let recipient: Address = mail.recipient.parse().map_err(|_| InvalidMail::Recipient)?;
    if !is_usable(&recipient) {
        return Err(InvalidMail::Recipient);
    }
    let is_part = |byte: u8| byte.is_ascii_graphic() && !b"<>()\\,;:\"[]".contains(&byte);
    if mail.message_id.is_empty() || !mail.message_id.bytes().all(is_part) {
        return Err(InvalidMail::MessageId);
    }
    let name = HeaderName::new_from_ascii_str("Auto-Submitted");
    let message = Message::builder()
        .from(from.0.clone())
        .to(Mailbox::new(None, recipient.clone()))
        .subject(on_one_line(&mail.subject))
        .date(SystemTime::UNIX_EPOCH + Duration::from_secs(mail.created_at.seconds()))
        .message_id(Some(format!("<{}>", mail.message_id)))
        .raw_header(HeaderValue::new(name, "auto-generated".into()))
        .multipart(MultiPart::alternative_plain_html(mail.text.clone(), mail.html.clone()))
        .map_err(|_| InvalidMail::Parts)?;
    Ok(OutgoingMail {
        message_id: mail.message_id.clone(),
        queued_at: mail.created_at,
        sender: from.0.email.clone(),
        recipient,
        content: message.formatted(),
    })
}

impl OutgoingMail {
    /// Whether every server can transport it.
    pub(super) fn is_ascii(&self) -> bool {
        let recipient: &str = self.recipient.as_ref();
        recipient.is_ascii() && self.content.is_ascii()
    }
}

/// Whether an address can be part of an SMTP command.
fn is_usable(address: &Address) -> bool {
    let text: &str = address.as_ref();
    !text.chars().any(|char| char.is_control() || char.is_whitespace() || matches!(char, '<' | '>'))
}

fn on_one_line(subject: &str) -> String {
    subject.chars().map(|char| if char.is_control() { ' ' } else { char }).collect()
}
