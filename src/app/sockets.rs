//! Sockets inherited from a service manager by systemd's socket activation protocol.
//!
//! The first socket is the public port. The second, if any, is the side port. The sockets stay open during a handover,
//! and new connections wait in their queues.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    path::Path,
    time::Duration,
};

use anyhow::Context as _;
use listenfd::ListenFd;
use tokio::net::TcpSocket;

use crate::{
    config::Config,
    server::{self, PublicPort},
};
use scoregate_base::{accept::BACKLOG, clock::Clock};

use super::data_dir::{DataDir, DataDirInUse};

/// Time for which a process with inherited sockets waits while its predecessor finishes its connections.
const PREDECESSOR: Duration = Duration::from_mins(1);
// New connections wait until the predecessor releases the data directory, so the interval is short.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Inherited sockets.
#[derive(Debug, Default)]
pub struct InheritedSockets {
    public: Option<TcpListener>,
    side: Option<TcpListener>,
}

/// Both ports, opened.
pub struct OpenPorts {
    pub public: PublicPort,
    pub side: TcpListener,
}

impl InheritedSockets {
    /// The sockets in `LISTEN_FDS`. Empty if the variable is not set or is meant for another process.
    pub fn inherited() -> anyhow::Result<Self> {
        let mut inherited = ListenFd::from_env();
        let mut take = |which, name| {
            let taken = inherited.take_tcp_listener(which);
            taken.with_context(|| {
                format!("cannot listen on the inherited socket of the {name} port")
            })
        };
        Ok(Self {
            public: take(0, "public")?,
            side: take(1, "side")?,
        })
    }

    /// Locks the data directory. With inherited sockets, waits until the predecessor has released it.
    pub(super) async fn data_dir(&self, path: &Path, clock: &Clock) -> anyhow::Result<DataDir> {
        let timeout = if self.public.is_some() {
            PREDECESSOR
        } else {
            Duration::ZERO
        };
        let end = clock.mono().plus(timeout);
        loop {
            match DataDir::open(path) {
                Err(error) if error.is::<DataDirInUse>() && clock.mono() < end => {
                    clock.sleep(CHECK_INTERVAL).await;
                }
                opened => return opened,
            }
        }
    }

    /// Opens both ports. A port that is not inherited is bound as configured.
    pub(super) async fn open(self, config: &Config) -> anyhow::Result<OpenPorts> {
        let public = match self.public {
            Some(socket) => PublicPort::inherited(socket),
            None => server::bind(config.listen).await,
        };
        let public = public
            .with_context(|| format!("the public port {} cannot be opened", config.listen))?;
        let side = self.side.map_or_else(|| listen(config.admin_listen), Ok);
        let side = side
            .with_context(|| format!("the side port {} cannot be opened", config.admin_listen))?;
        Ok(OpenPorts { public, side })
    }
}

/// Opens a listening socket whose queue is longer than the standard library's 128 connections. With a shorter queue, a
/// probe would wait a second during a burst of connections.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)?.into_std()
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn a_burst_of_connections_waits_in_the_queue_of_the_side_port() {
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let connect = || TcpStream::connect_timeout(&address, Duration::from_millis(500));
        let waiting: Vec<TcpStream> = (0..300).map(|_| connect().unwrap()).collect();
        assert_eq!(waiting.len(), 300);
    }
}
