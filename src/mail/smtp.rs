//! The dialogue with an SMTP server. A failure names its step: a refused recipient is about a mail, a refused
//! login about all mail.

use std::fmt::Display;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{
    AsyncSmtpConnection, Certificate, CertificateStore, TlsParameters, TlsParametersBuilder,
    TlsVersion,
};
use lettre::transport::smtp::commands::{Data, Mail, Rcpt, Rset};
use lettre::transport::smtp::extension::{ClientId, Extension, MailBodyParameter, MailParameter};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use scoregate_base::clock::Clock;

use super::failure::{MailFailure, SmtpStep, UnusableTransport};
use super::message::{OutgoingMail, SenderMailbox};
use super::settings::{SmtpServer, SmtpTls};

const MECHANISMS: [Mechanism; 2] = [Mechanism::Plain, Mechanism::Login];
/// Timeout for commands that are not necessary: without a reply, the connection is closed.
const SHORT_TIMEOUT: Duration = Duration::from_secs(2);

/// A client of one server.
pub(super) struct SmtpClient {
    server: SmtpServer,
    /// `None` without TLS.
    tls: Option<TlsParameters>,
    name: ClientId,
    timeout: Duration,
    clock: Clock,
}

/// One connection for several mails, opened with the first.
pub(super) struct SmtpSession<'c> {
    client: &'c SmtpClient,
    connection: Option<Box<AsyncSmtpConnection>>,
}

impl SmtpClient {
    /// Reads the authorities. Does not connect.
    pub(super) fn new(
        server: &SmtpServer,
        from: &SenderMailbox,
        timeout: Duration,
        clock: Clock,
    ) -> Result<Self, UnusableTransport> {
        let tls = match server.tls {
            SmtpTls::Off => None,
            SmtpTls::StartTls | SmtpTls::Implicit => {
                Some(tls_parameters(&server.host, server.ca_file.as_deref())?)
            }
        };
        Ok(Self {
            server: server.clone(),
            tls,
            name: from.client_name(),
            timeout,
            clock,
        })
    }

    /// A session that connects with its first mail.
    pub(super) fn session(&self) -> SmtpSession<'_> {
        SmtpSession {
            client: self,
            connection: None,
        }
    }

    /// `step` is the step that was begun last.
    async fn connect(&self, step: &mut SmtpStep) -> Result<AsyncSmtpConnection, MailFailure> {
        let mut connection = self.greet().await?;
        if let SmtpTls::StartTls = self.server.tls
            && let Some(parameters) = &self.tls
        {
            if !connection.can_starttls() {
                return Err(MailFailure::NoStartTls);
            }
            *step = SmtpStep::StartTls;
            let upgraded = connection.starttls(parameters.clone(), &self.name).await;
            upgraded.map_err(|error| MailFailure::of(SmtpStep::StartTls, &error))?;
        }
        if let Some(login) = &self.server.login {
            if connection
                .server_info()
                .get_auth_mechanism(&MECHANISMS)
                .is_none()
            {
                return Err(MailFailure::NoMechanism);
            }
            *step = SmtpStep::Login;
            let password = login.password.latest().await;
            let credentials =
                Credentials::new(login.username.clone(), password.expose().to_owned());
            let entered = connection.auth(&MECHANISMS, &credentials).await;
            entered.map_err(|error| MailFailure::of(SmtpStep::Login, &error))?;
        }
        Ok(connection)
    }

    /// Connects to one of the server's addresses. Each gets an equal part of the time.
    async fn greet(&self) -> Result<AsyncSmtpConnection, MailFailure> {
        let found = tokio::net::lookup_host((self.server.host.as_str(), self.server.port)).await;
        let addresses: Vec<SocketAddr> = found.map_err(|_| MailFailure::UnknownHost)?.collect();
        let parts = u32::try_from(addresses.len()).unwrap_or(u32::MAX).max(1);
        let mut failure = MailFailure::UnknownHost;
        for address in addresses {
            let implicit = self
                .tls
                .clone()
                .filter(|_| self.server.tls == SmtpTls::Implicit);
            let connecting =
                AsyncSmtpConnection::connect_tokio1(address, None, &self.name, implicit, None);
            failure = match self.clock.within(self.timeout / parts, connecting).await {
                Ok(Ok(connection)) => return Ok(connection),
                Ok(Err(error)) => MailFailure::of(SmtpStep::Connect, &error),
                Err(_) => MailFailure::Timeout(SmtpStep::Connect),
            };
        }
        Err(failure)
    }
}

impl SmtpSession<'_> {
    /// Sends a mail. Servers limit the mails on a connection: one that ends before the mail is replaced.
    pub(super) async fn send(&mut self, mail: &OutgoingMail) -> Result<(), MailFailure> {
        let is_used = self.connection.is_some();
        match self.send_once(mail).await {
            Err(failure) if is_used && failure.needs_another_connection() => {
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
            Box::new(connected.unwrap_or(Err(MailFailure::Timeout(step)))?)
        };
        let sent = clock
            .within(*timeout, transact(&mut connection, mail, &mut step))
            .await;
        let sent = sent.unwrap_or(Err(MailFailure::Timeout(step)));
        let keeps = match &sent {
            Ok(()) => true,
            Err(failure) if failure.keeps_the_connection() => {
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

    /// Ends the session in order.
    pub(super) async fn close(self) {
        if let Some(mut connection) = self.connection {
            // All mails have their replies; this one is of no use.
            drop(
                self.client
                    .clock
                    .within(SHORT_TIMEOUT, connection.quit())
                    .await,
            );
        }
    }
}

/// Sends a mail on an open connection. `step` is the step that was begun last.
async fn transact(
    connection: &mut AsyncSmtpConnection,
    mail: &OutgoingMail,
    step: &mut SmtpStep,
) -> Result<(), MailFailure> {
    let mut parameters = Vec::new();
    if !mail.is_ascii() {
        let supports = |what| connection.server_info().supports_feature(what);
        if !supports(Extension::SmtpUtfEight) || !supports(Extension::EightBitMime) {
            return Err(MailFailure::NotAscii);
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
        .map_err(|error| MailFailure::of(SmtpStep::Content, &error))
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
        .map_err(|error| MailFailure::of(next, &error))
}

fn tls_parameters(host: &str, ca_file: Option<&Path>) -> Result<TlsParameters, UnusableTransport> {
    let builder = TlsParameters::builder(host.to_owned()).set_min_tls_version(TlsVersion::Tlsv12);
    let builder = match ca_file {
        None => builder.certificate_store(CertificateStore::WebpkiRoots),
        Some(file) => {
            let unusable = |reason| UnusableTransport::Authorities {
                file: file.to_owned(),
                reason,
            };
            let certificates = authorities(file).map_err(unusable)?;
            let builder = builder.certificate_store(CertificateStore::None);
            certificates
                .into_iter()
                .fold(builder, TlsParametersBuilder::add_root_certificate)
        }
    };
    builder
        .build()
        .map_err(|error| UnusableTransport::Tls(error.to_string()))
}

/// The certificates in a PEM file; at least one.
fn authorities(file: &Path) -> Result<Vec<Certificate>, String> {
    let found =
        CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let found = found.map_err(|error| error.to_string())?;
    if found.is_empty() {
        return Err("the file contains no certificate in PEM".into());
    }
    let usable = |der: CertificateDer<'static>| {
        let added = RootCertStore::empty()
            .add(der.clone())
            .map_err(|error| error.to_string());
        added.and_then(|()| Certificate::from_der(der.to_vec()).map_err(|error| error.to_string()))
    };
    found.into_iter().map(usable).collect()
}
