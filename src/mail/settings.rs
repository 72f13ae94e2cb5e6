//! The typed settings of mail. `config/mail.rs` reads them.

use std::path::PathBuf;
use std::time::Duration;

use scoregate_base::secret::SecretSetting;

use super::message::SenderMailbox;

/// The settings of mail.
#[derive(Clone, Debug)]
pub struct MailConfig {
    /// The sender of all mail.
    pub from: SenderMailbox,
    /// Where mail goes.
    pub delivery: MailDelivery,
    /// Timeout for connecting to the server with TLS and login, and for each mail.
    pub timeout: Duration,
}

/// Where mail goes.
#[derive(Clone, Debug)]
pub enum MailDelivery {
    /// To an SMTP server.
    Smtp(Box<SmtpServer>),
    /// To files in a directory, for testing on one machine and the demo.
    Directory {
        /// The directory.
        path: PathBuf,
        /// Prints the text of each mail, in the demo only: it has addresses and tokens.
        print: fn(&str),
    },
}

/// An SMTP server that accepts mail for all recipients.
#[derive(Clone, Debug)]
pub struct SmtpServer {
    /// Its name or address, as in its certificate. IPv6 addresses have no brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// TLS on the connection.
    pub tls: SmtpTls,
    /// Certificates of the authorities that may issue its certificate, in PEM; `None` for the public authorities.
    pub ca_file: Option<PathBuf>,
    /// The login of this program.
    pub login: Option<SmtpLogin>,
}

/// TLS on the connection to an SMTP server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SmtpTls {
    /// Begins with STARTTLS. A server without it gets no mail.
    StartTls,
    /// Begins with the connection.
    Implicit,
    /// None.
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
