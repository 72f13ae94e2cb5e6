//! The SMTP client. A failure names its step, because a refused recipient affects only one message, but a refused login affects
//! all messages.

use std::{fmt::Display, io, net::SocketAddr, time::Duration};

use lettre::transport::smtp::{
    authentication::{Credentials, Mechanism},
    client::{AsyncSmtpConnection, AsyncTokioStream},
    commands::{Data, Mail, Rcpt, Rset},
    extension::{ClientId, Extension, MailBodyParameter, MailParameter},
};
use tokio::net::TcpStream;

use scoregate_base::clock::Clock;

use super::{
    failure::{FailureScope, MailFailure, SmtpStep, UnusableTransport},
    limited_stream::LimitedStream,
    message::{OutgoingMail, SenderMailbox},
    settings::SmtpServer,
    smtp_tls::MailTls,
};

const MECHANISMS: [Mechanism; 2] = [Mechanism::Plain, Mechanism::Login];
/// Timeout for optional commands. If there is no reply, the connection is closed.
const SHORT_TIMEOUT: Duration = Duration::from_secs(2);

/// A client for one server.
pub struct SmtpClient {
    server: SmtpServer,
    tls: MailTls,
    name: ClientId,
    timeout: Duration,
    clock: Clock,
}

/// One connection for several emails, opened for the first email.
pub struct SmtpSession<'c> {
    client: &'c SmtpClient,
    connection: Option<Box<AsyncSmtpConnection>>,
}

impl SmtpClient {
    /// Reads the CA certificates. Does not connect.
    pub fn new(
        server: &SmtpServer,
        from: &SenderMailbox,
        timeout: Duration,
        clock: Clock,
    ) -> Result<Self, UnusableTransport> {
        Ok(Self {
            server: server.clone(),
            tls: MailTls::with(server)?,
            name: from.client_name(),
            timeout,
            clock,
        })
    }

    /// A session that connects when the first email is sent.
    pub fn session(&self) -> SmtpSession<'_> {
        SmtpSession {
            client: self,
            connection: None,
        }
    }

    /// Connects and logs in. `step` is set to the step that was started last.
    async fn connect(&self, step: &mut SmtpStep) -> Result<AsyncSmtpConnection, MailFailure> {
        let mut connection = self.greet().await?;
        if let MailTls::StartTls(parameters) = &self.tls {
            if !connection.can_starttls() {
                return Err(all_mail("the server does not support STARTTLS"));
            }
            *step = SmtpStep::StartTls;
            let upgraded = connection.starttls(parameters.clone(), &self.name).await;
            upgraded.map_err(|error| MailFailure::from_library(SmtpStep::StartTls, &error))?;
        }
        if let Some(login) = &self.server.login {
            if connection
                .server_info()
                .get_auth_mechanism(&MECHANISMS)
                .is_none()
            {
                return Err(all_mail(
                    "the server does not support PLAIN or LOGIN authentication",
                ));
            }
            *step = SmtpStep::Login;
            // The password is read for each connection, so that a rotated password is used without a restart.
            let password = login.password.latest().await;
            let credentials =
                Credentials::new(login.username.clone(), password.expose().to_owned());
            let entered = connection.auth(&MECHANISMS, &credentials).await;
            entered.map_err(|error| MailFailure::from_library(SmtpStep::Login, &error))?;
        }
        Ok(connection)
    }

    /// Connects to one of the server's addresses. Each address gets an equal share of the time limit.
    async fn greet(&self) -> Result<AsyncSmtpConnection, MailFailure> {
        let found = tokio::net::lookup_host((self.server.host.as_str(), self.server.port)).await;
        let unknown = all_mail("the host name of the server cannot be resolved");
        let addresses: Vec<SocketAddr> = match found {
            Ok(found) => found.collect(),
            Err(_) => return Err(unknown),
        };
        let parts = u32::try_from(addresses.len()).unwrap_or(u32::MAX).max(1);
        let mut failure = unknown;
        for address in addresses {
            let connecting = self.greet_at(address);
            failure = match self.clock.within(self.timeout / parts, connecting).await {
                Ok(Ok(connection)) => return Ok(connection),
                Ok(Err(failure)) => failure,
                Err(_) => MailFailure::from_timeout(SmtpStep::Connect),
            };
        }
        Err(failure)
    }

    async fn greet_at(&self, address: SocketAddr) -> Result<AsyncSmtpConnection, MailFailure> {
        let stream = self.open(address).await;
        let stream = stream.map_err(|error| MailFailure::from_stream(SmtpStep::Connect, &error))?;
        let greeted = AsyncSmtpConnection::connect_with_transport(stream, &self.name).await;
        greeted.map_err(|error| MailFailure::from_library(SmtpStep::Connect, &error))
    }

    /// A stream to an address, with TLS if it is implicit. The number of bytes from the server is limited, because the
    /// library reads each line to its end.
    async fn open(&self, address: SocketAddr) -> io::Result<Box<dyn AsyncTokioStream>> {
        let stream = LimitedStream::new(TcpStream::connect(address).await?);
        Ok(match &self.tls {
            MailTls::Off | MailTls::StartTls(_) => Box::new(stream),
            MailTls::Implicit(connector, name) => {
                let encrypted = connector.connect(name.clone(), stream).await?;
                // The limit also applies to the decrypted stream, where lines can be counted.
                Box::new(LimitedStream::new(encrypted))
            }
        })
    }
}

impl SmtpSession<'_> {
    /// Sends an email. Servers limit the number of emails per connection, so if the connection ends before this email,
    /// a new connection is opened.
    pub async fn send(&mut self, mail: &OutgoingMail) -> Result<(), MailFailure> {
        let is_used = self.connection.is_some();
        match self.send_once(mail).await {
            Err(failure) if is_used && failure.scope == FailureScope::Ended => {
                self.send_once(mail).await
            }
            sent => sent,
        }
    }

    async fn send_once(&mut self, mail: &OutgoingMail) -> Result<(), MailFailure> {
        let SmtpClient { clock, timeout, .. } = self.client;
        let mut step = SmtpStep::Connect;
        let mut connection = if let Some(connection) = self.connection.take() {
            connection
        } else {
            // The state of a TLS handshake is large.
            let connecting = Box::pin(self.client.connect(&mut step));
            let connected = clock.within(*timeout, connecting).await;
            Box::new(connected.unwrap_or(Err(MailFailure::from_timeout(step)))?)
        };
        let sent = clock
            .within(*timeout, transact(&mut connection, mail, &mut step))
            .await;
        let sent = sent.unwrap_or(Err(MailFailure::from_timeout(step)));
        let keeps = match &sent {
            Ok(()) => true,
            Err(failure) if failure.keeps_the_connection() => {
                // The server still has the state of the refused email. If this state cannot be reset, the connection is
                // not used again.
                matches!(
                    clock.within(SHORT_TIMEOUT, connection.command(Rset)).await,
                    Ok(Ok(_))
                )
            }
            Err(_) => false,
        };
        self.connection = keeps.then_some(connection);
        sent
    }

    /// Ends the session with QUIT.
    pub async fn close(self) {
        if let Some(mut connection) = self.connection {
            // All emails have been acknowledged, so this reply is not needed.
            drop(
                self.client
                    .clock
                    .within(SHORT_TIMEOUT, connection.quit())
                    .await,
            );
        }
    }
}

fn all_mail(reason: &str) -> MailFailure {
    MailFailure::new(FailureScope::AllMail, reason)
}

/// Sends an email on an open connection. `step` is set to the step that was started last.
async fn transact(
    connection: &mut AsyncSmtpConnection,
    mail: &OutgoingMail,
    step: &mut SmtpStep,
) -> Result<(), MailFailure> {
    let mut parameters = Vec::new();
    if !mail.is_ascii() {
        let supports = |what| connection.server_info().supports_feature(what);
        if !supports(Extension::SmtpUtfEight) || !supports(Extension::EightBitMime) {
            let reason = "the server accepts only ASCII addresses";
            return Err(MailFailure::new(FailureScope::Final, reason));
        }
        parameters = vec![
            MailParameter::SmtpUtfEight,
            MailParameter::Body(MailBodyParameter::EightBitMime),
        ];
    }
    command(
        connection,
        step,
        SmtpStep::Sender,
        Mail::new(Some(mail.sender.clone()), parameters),
    )
    .await?;
    command(
        connection,
        step,
        SmtpStep::Recipient,
        Rcpt::new(mail.recipient.clone(), Vec::new()),
    )
    .await?;
    command(connection, step, SmtpStep::Data, Data).await?;
    *step = SmtpStep::Content;
    let accepted = connection.message(&mail.content).await;
    accepted
        .map(drop)
        .map_err(|error| MailFailure::from_library(SmtpStep::Content, &error))
}

async fn command(
    connection: &mut AsyncSmtpConnection,
    step: &mut SmtpStep,
    next: SmtpStep,
    command: impl Display,
) -> Result<(), MailFailure> {
    *step = next;
    connection
        .command(command)
        .await
        .map(drop)
        .map_err(|error| MailFailure::from_library(next, &error))
}
