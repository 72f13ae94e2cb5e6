//! A well-behaved HTTP/2 client whose responses have the type of the HTTP/1.1 client.

use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

use crate::{client::Response, world::World};

/// A connection with any number of requests in flight.
#[derive(Clone)]
pub struct Http2Client(SendRequest<Full<Bytes>>);

impl Http2Client {
    pub async fn to(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
        // The task ends when the gateway closes the connection; the next request returns the reason.
        tokio::spawn(async move { drop(connection.await) });
        Self(sender)
    }

    /// Sends a request and returns its response; `None` if the connection ended first.
    pub async fn request(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
    ) -> Option<Response> {
        self.sends(method, target, headers, b"").await
    }

    /// Sends a request with a body.
    pub async fn sends(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &'static [u8],
    ) -> Option<Response> {
        let uri = format!("http://localhost{target}");
        let mut request = http::Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::from_static(body))).unwrap();
        let (head, body) = self
            .0
            .clone()
            .send_request(request)
            .await
            .ok()?
            .into_parts();
        let body = body.collect().await.ok()?.to_bytes().to_vec();
        let field = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
            (name.as_str().to_owned(), value.to_str().unwrap().to_owned())
        };
        let headers = head.headers.iter().map(field).collect();
        let fingerprint = String::new(); // two protocols are compared field by field
        Some(Response {
            status: head.status.as_u16(),
            headers,
            body,
            fingerprint,
        })
    }

    /// Whether the connection accepts no more requests.
    pub fn is_over(&self) -> bool {
        self.0.is_closed()
    }
}

impl World {
    /// Sends a request on a connection and checks the response against the rules.
    pub async fn over(
        &self,
        client: &Http2Client,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
    ) -> Response {
        let response = client
            .request(method, target, headers)
            .await
            .expect("a response");
        self.check(method, target, &response);
        response
    }

    /// Opens an HTTP/2 connection.
    pub async fn http2_client(&self) -> Http2Client {
        Http2Client::to(self.address()).await
    }
}
