//! Delivery of a message: one signed request to a checked address, without redirects, within ten seconds.

use std::{pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::future::{Either, select};
use http::{
    Request, StatusCode,
    header::{CONTENT_TYPE, HOST, USER_AGENT},
};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;

use scoregate_base::{address::is_public, clock::Clock};
use scoregate_observe::interim::with_few_interim;
use scoregate_store::NewMail;

use super::{
    failure::WebhookFailure,
    network::WebhookNetwork,
    receiver::{Receiver, WebhookUrl},
    signature::signatures,
};

/// Timeout of a delivery, from name resolution to the end of the response.
pub const TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for connecting to one of several addresses.
// If an address does not answer, there is still time to try another within [`TIMEOUT`].
const CONNECT: Duration = Duration::from_secs(3);
/// Maximum number of bytes from a receiver, including TLS. Certificates are the largest part.
const MAX_RECEIVED: u64 = 128 * 1_024;
/// Maximum size of the response to a challenge.
const MAX_ANSWER: usize = 1_024;
/// Maximum size of the head of a response.
const MAX_HEAD: usize = 16 * 1_024;

/// A connection, with or without TLS.
trait WebhookConnection: AsyncRead + AsyncWrite + Send + Unpin {}
impl<C: AsyncRead + AsyncWrite + Send + Unpin> WebhookConnection for C {}

/// Delivers messages to webhooks.
pub struct WebhookClient {
    network: Arc<dyn WebhookNetwork>,
    tls: Arc<ClientConfig>,
    clock: Clock,
}

impl WebhookClient {
    /// A client with this TLS configuration, which contains the trusted CAs.
    pub fn new(network: Arc<dyn WebhookNetwork>, tls: Arc<ClientConfig>, clock: Clock) -> Self {
        Self {
            network,
            tls,
            clock,
        }
    }

    /// Delivers a message. The response to a challenge must contain its token.
    pub(super) async fn deliver(
        &self,
        receiver: &Receiver,
        message: &NewMail,
    ) -> Result<(), WebhookFailure> {
        let url = receiver.url.as_ref().ok_or(WebhookFailure::Url)?;
        let now = self.clock.now().wall;
        let body = message.text.as_str();
        let id = message.message_id.split('@').next().unwrap_or_default();
        let request = Request::post(url.path())
            .header(HOST, url.authority())
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, "scoregate")
            .header("webhook-id", id)
            .header("webhook-timestamp", now.seconds())
            .header(
                "webhook-signature",
                signatures(&receiver.secrets, id, now, body),
            )
            .body(Full::new(Bytes::copy_from_slice(body.as_bytes())))
            .map_err(|_| WebhookFailure::Url)?;
        // Boxed, because the state of a TLS handshake is large.
        let exchange = Box::pin(async {
            let connection = self.connect(url, receiver.webhook.is_some()).await?;
            exchange(connection, request, &message.subject).await
        });
        self.clock
            .within(TIMEOUT, exchange)
            .await
            .unwrap_or(Err(WebhookFailure::Timeout))
    }

    /// Connects to an address of the host. All addresses of an owner's host must be public.
    async fn connect(
        &self,
        url: &WebhookUrl,
        must_be_public: bool,
    ) -> Result<Box<dyn WebhookConnection>, WebhookFailure> {
        let found = self.network.resolve(url.host(), url.port()).await;
        let addresses = found.map_err(|_| WebhookFailure::UnknownHost)?;
        // Even one private address would let an owner reach services on the internal network.
        if must_be_public && !addresses.iter().all(|address| is_public(address.ip())) {
            return Err(WebhookFailure::NotPublic);
        }
        let mut failure = WebhookFailure::UnknownHost;
        // Only the checked addresses are used, because another resolution could return other addresses.
        for address in addresses {
            failure = match self
                .clock
                .within(CONNECT, self.network.connect(address))
                .await
            {
                Ok(Ok(stream)) => return self.secure(url, limited(stream)).await,
                Ok(Err(error)) => WebhookFailure::Connection(error.kind()),
                Err(_) => WebhookFailure::Connection(std::io::ErrorKind::TimedOut),
            };
        }
        Err(failure)
    }

    /// The connection, with TLS if the URL requires it.
    async fn secure(
        &self,
        url: &WebhookUrl,
        stream: impl WebhookConnection + 'static,
    ) -> Result<Box<dyn WebhookConnection>, WebhookFailure> {
        if !url.has_tls() {
            return Ok(Box::new(stream));
        }
        let name = ServerName::try_from(url.host().to_owned()).map_err(|_| WebhookFailure::Url)?;
        let connecting = TlsConnector::from(Arc::clone(&self.tls)).connect(name, stream);
        let connected = connecting.await.map_err(|_| WebhookFailure::Tls)?;
        Ok(Box::new(connected))
    }
}

/// A connection that ends after [`MAX_RECEIVED`] bytes.
fn limited(stream: TcpStream) -> impl WebhookConnection + 'static {
    let (reader, writer) = stream.into_split();
    tokio::io::join(reader.take(MAX_RECEIVED), writer)
}

async fn exchange(
    connection: Box<dyn WebhookConnection>,
    request: Request<Full<Bytes>>,
    challenge: &str,
) -> Result<(), WebhookFailure> {
    let mut builder = http1::Builder::new();
    builder.max_buf_size(MAX_HEAD);
    let opened = builder.handshake(TokioIo::new(connection)).await;
    let (mut sender, connection) = opened.map_err(|_| WebhookFailure::NoAnswer)?;
    let answer = pin!(async move {
        let sent = with_few_interim(request, |request| sender.send_request(request)).await;
        let Some(Ok(answer)) = sent else {
            return Err(WebhookFailure::NoAnswer);
        };
        let status = answer.status();
        if challenge.is_empty() {
            // The body is not read.
            return status
                .is_success()
                .then_some(())
                .ok_or(WebhookFailure::Status(status.as_u16()));
        }
        if status != StatusCode::OK {
            return Err(WebhookFailure::Status(status.as_u16()));
        }
        let body = Limited::new(answer.into_body(), MAX_ANSWER).collect().await;
        let body = body.map_err(|_| WebhookFailure::Challenge)?.to_bytes();
        has_challenge(&body, challenge)
            .then_some(())
            .ok_or(WebhookFailure::Challenge)
    });
    match select(answer, connection).await {
        Either::Left((answered, _)) => answered,
        // The bytes that arrived before the connection ended are read.
        Either::Right((_, answer)) => answer.await,
    }
}

/// Whether a body is the token of the challenge, as text or in JSON.
fn has_challenge(body: &[u8], challenge: &str) -> bool {
    body.trim_ascii() == challenge.as_bytes()
        || serde_json::from_slice::<serde_json::Value>(body).is_ok_and(|json| {
            json.get("challenge").and_then(|text| text.as_str()) == Some(challenge)
        })
}
