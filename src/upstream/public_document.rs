//! One document that another service publishes, read as a whole.

use std::sync::Arc;
use std::time::Duration;

use ::http::header::{ACCEPT, HeaderValue, USER_AGENT};
use ::http::{Request, Uri};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Collected, Empty, Limited};

use scoregate_base::clock::Clock;

use super::connections::Connections;
use super::tls::{BackendTlsSettings, BadBackendTls};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const TIMEOUT: Duration = Duration::from_secs(20);
/// It is read so seldom that no connection is kept.
const IDLE_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum size in bytes.
const MAX_SIZE: usize = 1 << 20;

/// A document at a public address.
#[derive(Clone, Debug)]
pub struct PublicDocument {
    connections: Arc<Connections>,
    address: Uri,
    clock: Clock,
}

impl PublicDocument {
    /// Does not connect.
    pub fn new(address: Uri, clock: &Clock) -> Result<Self, BadBackendTls> {
        let tls = BackendTlsSettings::default().load(clock)?;
        let connections = Arc::new(Connections::new(CONNECT_TIMEOUT, IDLE_TIMEOUT, &tls));
        Ok(Self { connections, address, clock: clock.clone() })
    }

    /// Reads it.
    pub async fn read(&self) -> Result<Bytes, String> {
        let reading = self.clock.within(TIMEOUT, self.fetch()).await;
        reading.unwrap_or_else(|_| Err(format!("no response within {} s", TIMEOUT.as_secs())))
    }

    async fn fetch(&self) -> Result<Bytes, String> {
        let mut request =
            Request::get(self.address.clone()).body(Empty::new()).map_err(|error| error.to_string())?;
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers
            .insert(USER_AGENT, HeaderValue::from_static(concat!("scoregate/", env!("CARGO_PKG_VERSION"))));
        let response = self.connections.send_unpooled(request).await.map_err(|error| {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            cause.unwrap_or_else(|| error.to_string())
        })?;
        if !response.status().is_success() {
            return Err(format!("status {}", response.status().as_u16()));
        }
        let body = Limited::new(response.into_body(), MAX_SIZE).collect().await;
        body.map(Collected::to_bytes).map_err(|error| error.to_string())
    }
}
