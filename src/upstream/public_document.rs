//! Reads a document that another service publishes.

use std::time::Duration;

use ::http::{
    header::{ACCEPT, HeaderValue, USER_AGENT},
    {Request, Uri},
};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Collected, Empty, Limited};

use scoregate_base::clock::Clock;

use super::{connections::Connections, http::TOO_MANY_INTERIM, tls::BackendTlsSettings};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const TIMEOUT: Duration = Duration::from_secs(20);
/// The connection is not kept, because the document is rarely read.
const IDLE_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum size of a document in bytes.
const MAX_SIZE: usize = 1 << 20;

/// Reads the document at an address.
pub async fn read_public_document(address: &Uri, clock: &Clock) -> Result<Bytes, String> {
    let tls = BackendTlsSettings::default()
        .load(clock)
        .map_err(|error| error.to_string())?;
    let connections = Connections::new(CONNECT_TIMEOUT, IDLE_TIMEOUT, &tls);
    let read = clock
        .within(TIMEOUT, fetch(&connections, address.clone()))
        .await;
    read.unwrap_or_else(|_| Err(format!("no response within {} s", TIMEOUT.as_secs())))
}

async fn fetch(connections: &Connections, address: Uri) -> Result<Bytes, String> {
    let mut request = Request::get(address)
        .body(Empty::new())
        .map_err(|error| error.to_string())?;
    let headers = request.headers_mut();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    headers.insert(
        USER_AGENT,
        HeaderValue::from_static(concat!("scoregate/", env!("CARGO_PKG_VERSION"))),
    );
    let sent = connections.send(request).await;
    let response = sent.ok_or(TOO_MANY_INTERIM)?.map_err(|error| {
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        cause.unwrap_or_else(|| error.to_string())
    })?;
    if !response.status().is_success() {
        return Err(format!("status {}", response.status().as_u16()));
    }
    let body = Limited::new(response.into_body(), MAX_SIZE).collect().await;
    body.map(Collected::to_bytes)
        .map_err(|error| error.to_string())
}
