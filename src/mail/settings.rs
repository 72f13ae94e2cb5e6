//! The typed mail settings. `config/mail.rs` reads them.

use std::{path::PathBuf, time::Duration};

use scoregate_base::secret::SecretSetting;

use super::message::SenderMailbox;

/// The mail settings.
#[derive(Clone, Debug)]
pub struct MailConfig {
    /// The sender of all mail.
    pub from: SenderMailbox,
    /// The destination of mail.
    pub delivery: MailDelivery,
    /// Timeout for a connection to the server, including TLS and login, and for each email.
    pub timeout: Duration,
}

/// The destination of mail.
#[derive(Clone, Debug)]
pub enum MailDelivery {
    /// An SMTP server.
    Smtp(Box<SmtpServer>),
    /// Files in a directory, for the demo and for tests on one machine.
    Directory {
        /// The directory.
        path: PathBuf,
        /// Prints the text of each email. Used only in the demo, because the text contains addresses and tokens.
        print: fn(&str),
    },
}

/// An SMTP server that accepts mail for all recipients.
#[derive(Clone, Debug)]
pub struct SmtpServer {
    /// The name or address of the server, as in its certificate. IPv6 addresses have no brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// TLS on the connection.
    pub tls: SmtpTls,
    /// A PEM file with the CA certificates that are trusted for the server; `None` for the public CAs.
    pub ca_file: Option<PathBuf>,
    /// The credentials of this program.
    pub login: Option<SmtpLogin>,
}

/// TLS on the connection to an SMTP server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SmtpTls {
    /// STARTTLS is required. No mail is sent to a server that does not support it.
    StartTls,
    /// TLS from the beginning of the connection.
    Implicit,
    /// No TLS.
    Off,
}

/// User name and password.
#[derive(Clone, Debug)]
pub struct SmtpLogin {
    /// The user name.
    pub username: String,
    /// The password.
    pub password: SecretSetting,
}
