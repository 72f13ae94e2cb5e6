//! The reasons why an email was not sent, or cannot be sent with the settings. Their texts do not quote server replies,
//! which may contain the recipient's address.

use std::{error::Error, fmt, io, path::PathBuf};

use super::message::InvalidMail;

/// A step of an SMTP session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SmtpStep {
    /// Connection, greeting and EHLO, with implicit TLS if configured.
    Connect,
    StartTls,
    Login,
    /// `MAIL FROM`.
    Sender,
    /// `RCPT TO`.
    Recipient,
    /// `DATA`.
    Data,
    /// The content. If there is no reply to it, the mail may have been delivered.
    Content,
}

/// The code of a reply, without its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyCode {
    pub code: u16,
    /// The enhanced code, such as 5.1.1.
    pub enhanced: Option<(u16, u16, u16)>,
    /// Whether the text mentions relaying. Some servers, such as Exim, send no enhanced codes.
    pub mentions_relaying: bool,
}

/// The reason why mail cannot be sent with these settings.
#[derive(Debug, thiserror::Error)]
pub enum UnusableTransport {
    /// The CA file is unusable.
    #[error("{}: {reason}", .file.display())]
    Authorities {
        /// The file.
        file: PathBuf,
        /// The problem.
        reason: String,
    },
    /// TLS cannot be prepared.
    #[error("TLS with the mail server cannot be prepared: {0}")]
    Tls(String),
    /// The directory is unusable.
    #[error("{}: mail cannot be written to this directory", .path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The cause.
        #[source]
        error: io::Error,
    },
}

/// The effect of a failure on this email and on others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureScope {
    /// Every further attempt would also fail, so the email is not retried.
    Final,
    /// The email may be accepted later. Other emails may be accepted now on the same connection.
    Mail,
    /// The email may be accepted later. Other emails may be accepted now on another connection.
    Connection,
    /// The server closed the connection at the beginning of an email. If this also happens on a new connection, the failure
    /// affects all mail.
    Ended,
    /// All other emails would fail in the same way, because the cause is the server, the login, the sender or the
    /// directory.
    AllMail,
}

/// The reason why an email was not sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct MailFailure {
    reason: String,
    pub scope: FailureScope,
}

impl From<InvalidMail> for MailFailure {
    fn from(invalid: InvalidMail) -> Self {
        Self::new(FailureScope::Final, invalid.to_string())
    }
}

impl MailFailure {
    pub fn new(scope: FailureScope, reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            scope,
        }
    }

    /// The failure for a library error.
    pub fn from_library(step: SmtpStep, error: &lettre::transport::smtp::Error) -> Self {
        let text = error.source().map(ToString::to_string).unwrap_or_default();
        match error.status() {
            Some(code) => Self::from_reply(step, &ReplyCode::new(code.into(), &text)),
            None => Self::from_stream(step, error),
        }
    }

    pub fn from_reply(step: SmtpStep, reply: &ReplyCode) -> Self {
        let scope = match reply.code {
            421 if step == SmtpStep::Sender => FailureScope::Ended,
            _ if step.is_before_the_recipient() || reply.is_about_the_login() => {
                FailureScope::AllMail
            }
            421 => FailureScope::Connection,
            500.. if !reply.is_about_the_configuration(step) => FailureScope::Final,
            _ => FailureScope::Mail,
        };
        Self::new(scope, format!("reply {reply} to {step}"))
    }

    /// The failure for a stream error.
    pub fn from_stream(step: SmtpStep, error: &(dyn Error + 'static)) -> Self {
        if let Some(tls) = tls_error(error) {
            return Self::new(FailureScope::AllMail, format!("TLS failed: {tls}"));
        }
        let scope = if step == SmtpStep::Sender {
            FailureScope::Ended
        } else {
            step.scope_without_reply()
        };
        let reason = match io_kind(error) {
            Some(kind) => format!("{kind} at {step}"),
            None => format!("connection closed, or the reply is not SMTP, at {step}"),
        };
        Self::new(scope, reason)
    }

    pub fn from_timeout(step: SmtpStep) -> Self {
        let reason = format!("no reply to {step} within mail.timeout");
        Self::new(step.scope_without_reply(), reason)
    }

    /// Whether other emails would fail in the same way.
    pub fn is_about_all_mail(&self) -> bool {
        match self.scope {
            FailureScope::AllMail | FailureScope::Ended => true,
            FailureScope::Final | FailureScope::Mail | FailureScope::Connection => false,
        }
    }

    /// Whether the server replied. If it did, the connection can be used for other emails.
    pub fn keeps_the_connection(&self) -> bool {
        match self.scope {
            FailureScope::Final | FailureScope::Mail => true,
            FailureScope::Connection | FailureScope::Ended | FailureScope::AllMail => false,
        }
    }

    /// Whether no further attempt will be made to send the email.
    pub fn is_permanent(&self) -> bool {
        self.scope == FailureScope::Final
    }
}

impl ReplyCode {
    pub fn new(code: u16, text: &str) -> Self {
        Self {
            code,
            enhanced: enhanced(text),
            mentions_relaying: text.to_ascii_lowercase().contains("relay"),
        }
    }

    /// 503 means that commands are out of order. 53x concerns authentication.
    fn is_about_the_login(self) -> bool {
        matches!(self.code, 503 | 530..=538)
    }

    /// Whether the cause may be the configuration of the server or of this program, not the recipient or the message.
    /// The server may accept this message later, and other messages now.
    fn is_about_the_configuration(self, step: SmtpStep) -> bool {
        match self.enhanced {
            // 5.7 concerns policy, authentication and relaying. 5.1.7 and 5.1.8 concern the sender. Many servers do not report
            // the refusal of an earlier step until `RCPT TO`.
            Some((_, 7, _) | (_, 1, 7 | 8)) => true,
            Some(_) => false,
            // Servers refuse unknown recipients with 550, and relaying with 550 or 554.
            None => step == SmtpStep::Recipient && (self.code == 554 || self.mentions_relaying),
        }
    }
}

/// The enhanced status code at the start of a reply.
fn enhanced(text: &str) -> Option<(u16, u16, u16)> {
    let code = text.split_ascii_whitespace().next()?;
    let mut numbers = code.split('.').map(|part| {
        let is_number = part.len() <= 3 && part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse::<u16>().ok().filter(|_| is_number)
    });
    let found = (numbers.next()??, numbers.next()??, numbers.next()??);
    numbers.next().is_none().then_some(found)
}

impl SmtpStep {
    /// If there is no reply to the content, the mail may have been delivered.
    fn scope_without_reply(self) -> FailureScope {
        if self.is_before_the_recipient() {
            FailureScope::AllMail
        } else {
            FailureScope::Connection
        }
    }

    fn is_before_the_recipient(self) -> bool {
        match self {
            Self::Connect | Self::StartTls | Self::Login | Self::Sender => true,
            Self::Recipient | Self::Data | Self::Content => false,
        }
    }
}

impl fmt::Display for ReplyCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.code)?;
        let Some((class, subject, detail)) = self.enhanced else {
            return Ok(());
        };
        write!(f, " {class}.{subject}.{detail}")
    }
}

impl fmt::Display for SmtpStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "the connection attempt",
            Self::StartTls => "STARTTLS",
            Self::Login => "the login",
            Self::Sender => "MAIL FROM",
            Self::Recipient => "RCPT TO",
            Self::Data => "DATA",
            Self::Content => "the content",
        })
    }
}

/// The error and its causes.
fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

fn tls_error<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e rustls::Error> {
    causes(error).find_map(|error| {
        let inside = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        inside
            .and_then(|inside| inside.downcast_ref())
            .or_else(|| error.downcast_ref())
    })
}

fn io_kind(error: &(dyn Error + 'static)) -> Option<io::ErrorKind> {
    causes(error)
        .find_map(|error| error.downcast_ref::<io::Error>())
        .map(io::Error::kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts the scope of replies whose texts are from real servers.
    fn assert_scope(scope: FailureScope, replies: &[(SmtpStep, u16, &str)]) {
        for (step, code, text) in replies {
            let failure = MailFailure::from_reply(*step, &ReplyCode::new(*code, text));
            assert_eq!(failure.scope, scope, "{step}: {code} {text}");
        }
    }

    #[test]
    fn only_refusals_of_the_recipient_or_the_message_are_permanent() {
        for step in [SmtpStep::Recipient, SmtpStep::Data, SmtpStep::Content] {
            let refused = [(step, 550, ""), (step, 552, "")];
            assert_scope(FailureScope::Final, &refused);
            assert_scope(FailureScope::Mail, &[(step, 450, ""), (step, 452, "")]);
            assert_scope(FailureScope::Connection, &[(step, 421, "")]);
            // The login is missing.
            assert_scope(FailureScope::AllMail, &[(step, 530, "")]);
        }
        for step in [
            SmtpStep::Connect,
            SmtpStep::StartTls,
            SmtpStep::Login,
            SmtpStep::Sender,
        ] {
            assert_scope(FailureScope::AllMail, &[(step, 550, ""), (step, 535, "")]);
        }
        assert_scope(FailureScope::Ended, &[(SmtpStep::Sender, 421, "")]);
        assert!(MailFailure::from(InvalidMail::Recipient).is_permanent());
    }

    #[test]
    fn a_reply_about_policy_or_the_sender_keeps_the_mail_and_does_not_stop_others() {
        let to = SmtpStep::Recipient;
        let content = SmtpStep::Content;
        assert_scope(
            FailureScope::Mail,
            &[
                (to, 554, "5.7.1 <ann@example.org>: Relay access denied"),
                (
                    to,
                    550,
                    "5.7.60 client does not have permissions to send as this sender",
                ),
                (
                    to,
                    553,
                    "5.1.8 <noreply@example.org>: Sender address rejected",
                ),
                (to, 554, "access denied"),
                (to, 550, "relay not permitted"),
                (to, 550, "Relaying denied"),
                (content, 550, "5.7.26 unauthenticated mail is prohibited"),
            ],
        );
        assert_scope(
            FailureScope::Final,
            &[
                (to, 550, "5.1.1 <ann@example.org>: no such user"),
                (to, 553, "5.1.3 bad address"),
                (to, 554, "5.2.1 mailbox disabled"),
                (to, 550, "no such user"),
                (content, 554, "5.6.0 invalid message"),
                (content, 554, "rejected as relayed"),
            ],
        );
    }

    #[test]
    fn without_a_reply_to_its_content_a_mail_does_not_stop_others() {
        let reset = io::Error::from(io::ErrorKind::ConnectionReset);
        for (step, scope) in [
            (SmtpStep::Connect, FailureScope::AllMail),
            (SmtpStep::Sender, FailureScope::Ended),
            (SmtpStep::Data, FailureScope::Connection),
            (SmtpStep::Content, FailureScope::Connection),
        ] {
            assert_eq!(
                MailFailure::from_stream(step, &reset).scope,
                scope,
                "{step}"
            );
        }
        let timeout = MailFailure::from_timeout;
        assert_eq!(timeout(SmtpStep::Sender).scope, FailureScope::AllMail);
        assert_eq!(timeout(SmtpStep::Content).scope, FailureScope::Connection);
    }

    #[test]
    fn a_reply_is_reported_by_its_codes_alone() {
        for (code, text, shown) in [
            (550, "5.1.1 <ann@example.org>: no such user", "550 5.1.1"),
            (550, "<ann@example.org> unknown", "550"),
            (450, "4.2.0.1 ann", "450"),
            (450, "4.2.x ann", "450"),
            (421, "", "421"),
        ] {
            assert_eq!(ReplyCode::new(code, text).to_string(), shown, "{text}");
        }
    }
}
