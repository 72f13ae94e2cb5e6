//! The reason why a mail was not sent, or cannot be sent with the settings, in words of this program, because replies
//! of servers may contain the recipient's address.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

use super::message::InvalidMail;

/// A step of the dialogue with a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SmtpStep {
    /// Connection, greeting and EHLO, with TLS from the beginning if configured.
    Connect,
    StartTls,
    Login,
    /// `MAIL FROM`.
    Sender,
    /// `RCPT TO`.
    Recipient,
    /// `DATA`.
    Data,
    /// The content. Without a reply to it the mail may have been delivered.
    Content,
}

/// The code of a reply, without its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReplyCode {
    pub(super) code: u16,
    /// The enhanced code, such as 5.1.1.
    pub(super) enhanced: Option<(u16, u16, u16)>,
    /// Whether its text mentions relaying. Some servers, such as Exim, have no enhanced codes.
    pub(super) mentions_relaying: bool,
}

/// The reason why mail cannot be sent with these settings.
#[derive(Debug, thiserror::Error)]
pub enum UnusableTransport {
    /// The file of authorities is unusable.
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

/// The reason why a mail was not sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum MailFailure {
    #[error("{0}")]
    Invalid(#[from] InvalidMail),
    #[error("the server accepts no addresses outside ASCII")]
    NotAscii,
    #[error("reply {reply} to {step}")]
    Reply { step: SmtpStep, reply: ReplyCode },
    #[error("no reply to {0} within mail.timeout")]
    Timeout(SmtpStep),
    #[error("{kind} at {step}")]
    Connection { step: SmtpStep, kind: io::ErrorKind },
    #[error("connection closed, or the reply is not SMTP, at {0}")]
    NoReply(SmtpStep),
    #[error("TLS failed: {0}")]
    Tls(String),
    #[error("the server does not support STARTTLS")]
    NoStartTls,
    #[error("the server does not support authentication by PLAIN or LOGIN")]
    NoMechanism,
    #[error("the host name of the server cannot be resolved")]
    UnknownHost,
    #[error("the file cannot be written: {0}")]
    File(io::ErrorKind),
}

impl MailFailure {
    /// The failure behind an error of the library.
    pub(super) fn of(step: SmtpStep, error: &lettre::transport::smtp::Error) -> Self {
        let text = error.source().map(ToString::to_string).unwrap_or_default();
        if let Some(code) = error.status() {
            return Self::Reply {
                step,
                reply: ReplyCode::new(code.into(), &text),
            };
        }
        Self::of_stream(step, error)
    }

    /// The failure of a stream.
    pub(super) fn of_stream(step: SmtpStep, error: &(dyn Error + 'static)) -> Self {
        match (tls_error(error), io_kind(error)) {
            (Some(tls), _) => Self::Tls(tls.to_string()),
            (None, Some(kind)) => Self::Connection { step, kind },
            (None, None) => Self::NoReply(step),
        }
    }

    /// Whether other mails would fail in the same way: the server, the login, the sender or the directory is the cause.
    pub(super) fn is_about_all_mail(&self) -> bool {
        match self {
            Self::Reply { step, reply } => {
                step.is_before_the_recipient() || reply.is_about_the_login()
            }
            Self::Timeout(step) | Self::Connection { step, .. } | Self::NoReply(step) => {
                step.is_before_the_recipient()
            }
            Self::Tls(_)
            | Self::NoStartTls
            | Self::NoMechanism
            | Self::UnknownHost
            | Self::File(_) => true,
            Self::Invalid(_) | Self::NotAscii => false,
        }
    }

    /// Whether the server has ended the connection at the beginning of a mail.
    pub(super) fn needs_another_connection(&self) -> bool {
        matches!(
            self,
            Self::NoReply(SmtpStep::Sender)
                | Self::Connection {
                    step: SmtpStep::Sender,
                    ..
                }
                | Self::Reply {
                    step: SmtpStep::Sender,
                    reply: ReplyCode { code: 421, .. }
                }
        )
    }

    /// Whether the server has replied, so that the connection can be used for other mails.
    pub(super) fn keeps_the_connection(&self) -> bool {
        let ends_it = |reply: &ReplyCode| reply.code == 421;
        !self.is_about_all_mail()
            && match self {
                Self::Reply { reply, .. } => !ends_it(reply),
                Self::Invalid(_) | Self::NotAscii => true,
                Self::Timeout(_)
                | Self::Connection { .. }
                | Self::NoReply(_)
                | Self::Tls(_)
                | Self::NoStartTls
                | Self::NoMechanism
                | Self::UnknownHost
                | Self::File(_) => false,
            }
    }

    /// Whether every further attempt would fail too, so that the mail is dropped.
    pub(super) fn is_permanent(&self) -> bool {
        let is_final =
            |step, reply: &ReplyCode| reply.code >= 500 && !reply.is_about_the_configuration(step);
        self.keeps_the_connection()
            && !matches!(self, Self::Reply { step, reply } if !is_final(*step, reply))
    }
}

impl ReplyCode {
    fn new(code: u16, text: &str) -> Self {
        let enhanced = || {
            let mut numbers = text
                .split_ascii_whitespace()
                .next()?
                .split('.')
                .map(|part| {
                    let is_number =
                        part.len() <= 3 && part.bytes().all(|byte| byte.is_ascii_digit());
                    part.parse::<u16>().ok().filter(|_| is_number)
                });
            let found = (numbers.next()??, numbers.next()??, numbers.next()??);
            numbers.next().is_none().then_some(found)
        };
        Self {
            code,
            enhanced: enhanced(),
            mentions_relaying: text.to_ascii_lowercase().contains("relay"),
        }
    }

    /// 503 asks for a different order of commands, and 53x for authentication.
    fn is_about_the_login(self) -> bool {
        matches!(self.code, 503 | 530..=538)
    }

    /// Whether the cause can be the configuration of the server or of this program, instead of the recipient or the message.
    /// The server may accept the mail later, and other mails now.
    fn is_about_the_configuration(self, step: SmtpStep) -> bool {
        match self.enhanced {
            // 5.7 is policy, authentication and relaying. 5.1.7 and 5.1.8 are the sender: many servers reply to `RCPT TO`
            // with the refusal of an earlier step.
            Some((_, 7, _) | (_, 1, 7 | 8)) => true,
            Some(_) => false,
            // Servers refuse an unknown recipient with 550, and relaying with 550 or 554.
            None => step == SmtpStep::Recipient && (self.code == 554 || self.mentions_relaying),
        }
    }
}

impl SmtpStep {
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

    fn reply(step: SmtpStep, code: u16) -> MailFailure {
        MailFailure::Reply {
            step,
            reply: ReplyCode::new(code, ""),
        }
    }

    #[test]
    fn only_refusals_of_the_recipient_or_the_message_are_permanent() {
        for step in [SmtpStep::Recipient, SmtpStep::Data, SmtpStep::Content] {
            assert!(reply(step, 550).is_permanent() && reply(step, 552).is_permanent());
            for code in [421, 450, 452] {
                assert!(!reply(step, code).is_permanent(), "{code}");
            }
            assert!(!reply(step, 530).is_permanent(), "the login is missing");
        }
        for step in [
            SmtpStep::Connect,
            SmtpStep::StartTls,
            SmtpStep::Login,
            SmtpStep::Sender,
        ] {
            assert!(
                !reply(step, 550).is_permanent(),
                "{step}: other mails fail too"
            );
        }
        for failure in [
            MailFailure::Timeout(SmtpStep::Content),
            MailFailure::NoReply(SmtpStep::Content),
            MailFailure::Tls("expired".into()),
            MailFailure::File(io::ErrorKind::StorageFull),
        ] {
            assert!(!failure.is_permanent(), "{failure}");
        }
        assert!(MailFailure::Invalid(InvalidMail::Recipient).is_permanent());
    }

    #[test]
    fn a_reply_about_policy_or_the_sender_keeps_the_mail_and_does_not_stop_others() {
        let refused = |step, code, text| MailFailure::Reply {
            step,
            reply: ReplyCode::new(code, text),
        };
        for (step, code, text) in [
            (
                SmtpStep::Recipient,
                554,
                "5.7.1 <ann@example.org>: Relay access denied",
            ),
            (
                SmtpStep::Recipient,
                550,
                "5.7.60 client does not have permissions to send as this sender",
            ),
            (
                SmtpStep::Recipient,
                553,
                "5.1.8 <noreply@example.org>: Sender address rejected",
            ),
            (SmtpStep::Recipient, 554, "access denied"),
            (SmtpStep::Recipient, 550, "relay not permitted"),
            (SmtpStep::Recipient, 550, "Relaying denied"),
            (
                SmtpStep::Content,
                550,
                "5.7.26 unauthenticated mail is prohibited",
            ),
        ] {
            let failure = refused(step, code, text);
            assert!(
                !failure.is_permanent() && !failure.is_about_all_mail(),
                "{text}"
            );
            assert!(failure.keeps_the_connection(), "{text}");
        }
        for (step, code, text) in [
            (
                SmtpStep::Recipient,
                550,
                "5.1.1 <ann@example.org>: no such user",
            ),
            (SmtpStep::Recipient, 553, "5.1.3 bad address"),
            (SmtpStep::Recipient, 554, "5.2.1 mailbox disabled"),
            (SmtpStep::Recipient, 550, "no such user"),
            (SmtpStep::Content, 554, "5.6.0 invalid message"),
            (SmtpStep::Content, 554, "rejected as relayed"),
        ] {
            assert!(refused(step, code, text).is_permanent(), "{text}");
        }
    }

    #[test]
    fn a_mail_whose_content_gets_no_reply_does_not_stop_others() {
        for failure in [
            MailFailure::Timeout(SmtpStep::Content),
            MailFailure::NoReply(SmtpStep::Content),
            MailFailure::Connection {
                step: SmtpStep::Data,
                kind: io::ErrorKind::ConnectionReset,
            },
            reply(SmtpStep::Recipient, 421),
        ] {
            assert!(
                !failure.is_about_all_mail() && !failure.keeps_the_connection(),
                "{failure}"
            );
        }
        for failure in [
            MailFailure::Timeout(SmtpStep::Sender),
            MailFailure::NoReply(SmtpStep::Connect),
            reply(SmtpStep::Login, 535),
            reply(SmtpStep::Recipient, 530),
            MailFailure::Tls("expired".into()),
        ] {
            assert!(
                failure.is_about_all_mail() && !failure.keeps_the_connection(),
                "{failure}"
            );
        }
        for code in [450, 550] {
            let failure = reply(SmtpStep::Recipient, code);
            assert!(
                !failure.is_about_all_mail() && failure.keeps_the_connection(),
                "{failure}"
            );
        }
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
