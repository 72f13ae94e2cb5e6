//! Name resolution and connections, as a trait, so that tests can use a simulated network.

use std::{io, net::SocketAddr};

use futures_util::future::BoxFuture;
use tokio::net::TcpStream;

/// The network to the receivers of webhooks.
pub trait WebhookNetwork: Send + Sync + 'static {
    /// The addresses of a host.
    fn resolve<'n>(
        &'n self,
        host: &'n str,
        port: u16,
    ) -> BoxFuture<'n, io::Result<Vec<SocketAddr>>>;

    /// Connects to an address that was checked.
    fn connect(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<TcpStream>>;
}

/// The resolver and the connections of the operating system.
#[derive(Debug)]
pub struct PublicInternet;

impl WebhookNetwork for PublicInternet {
    fn resolve<'n>(
        &'n self,
        host: &'n str,
        port: u16,
    ) -> BoxFuture<'n, io::Result<Vec<SocketAddr>>> {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) })
    }

    fn connect(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<TcpStream>> {
        Box::pin(TcpStream::connect(address))
    }
}
