//! The mail transport, to an SMTP server or to a directory. It is opened once, at startup.

use scoregate_base::clock::Clock;

use super::{
    directory::MailDirectory,
    failure::{MailFailure, UnusableTransport},
    message::OutgoingMail,
    settings::{MailConfig, MailDelivery},
    smtp::{SmtpClient, SmtpSession},
};

/// An open transport.
pub struct MailTransport(TransportKind);

enum TransportKind {
    Smtp(Box<SmtpClient>),
    Directory(MailDirectory),
}

/// One connection for several emails.
pub enum MailSession<'t> {
    Smtp(SmtpSession<'t>),
    Directory(&'t MailDirectory),
}

impl MailTransport {
    /// Reads the files named in the settings. Does not connect.
    pub fn open(config: &MailConfig, clock: &Clock) -> Result<Self, UnusableTransport> {
        Ok(Self(match &config.delivery {
            MailDelivery::Smtp(server) => {
                let client = SmtpClient::new(server, &config.from, config.timeout, clock.clone())?;
                TransportKind::Smtp(Box::new(client))
            }
            MailDelivery::Directory { path, print } => {
                TransportKind::Directory(MailDirectory::open(path, *print).map_err(|error| {
                    UnusableTransport::Directory {
                        path: path.clone(),
                        error,
                    }
                })?)
            }
        }))
    }

    /// A session that connects when the first email is sent.
    pub(super) fn session(&self) -> MailSession<'_> {
        match &self.0 {
            TransportKind::Smtp(client) => MailSession::Smtp(client.session()),
            TransportKind::Directory(directory) => MailSession::Directory(directory),
        }
    }
}

impl MailSession<'_> {
    /// Sends an email.
    pub async fn send(&mut self, mail: OutgoingMail) -> Result<(), MailFailure> {
        match self {
            Self::Smtp(session) => session.send(&mail).await,
            Self::Directory(directory) => directory.write(mail).await,
        }
    }

    /// Ends the session.
    pub async fn close(self) {
        match self {
            Self::Smtp(session) => session.close().await,
            Self::Directory(_) => {}
        }
    }
}
