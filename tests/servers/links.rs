//! A TCP link to a server on a Unix socket that can be cut, stalled and slowed.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpListener, TcpStream, UnixStream},
    runtime::Handle,
    sync::{Semaphore, watch},
};

/// Maximum number of connections; others are closed.
const MAX_CONNECTIONS: usize = 100;

/// How bytes are forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkMode {
    Forward,
    /// Connections are accepted, and nothing is forwarded until the mode changes.
    Silent,
    /// Statements reach the server, and no reply comes back until the mode changes.
    NoReplies,
    /// Each piece is delayed.
    Slow(Duration),
}

/// A listening port in front of a server. It is closed when the runtime ends.
pub struct FaultyLink {
    pub address: SocketAddr,
    mode: watch::Sender<LinkMode>,
    /// Number of cuts.
    cuts: watch::Sender<u32>,
}

/// The state of the link that its connections share.
#[derive(Clone)]
struct LinkState {
    socket: Arc<PathBuf>,
    mode: watch::Receiver<LinkMode>,
    cuts: watch::Receiver<u32>,
}

impl FaultyLink {
    /// Opens a port. Its connections are forwarded to this socket.
    pub fn open(runtime: &Handle, socket: PathBuf) -> Self {
        let listener = runtime
            .block_on(TcpListener::bind("127.0.0.1:0"))
            .expect("a free port");
        let address = listener.local_addr().expect("its address");
        let mode = watch::Sender::new(LinkMode::Forward);
        let cuts = watch::Sender::new(0);
        let state = LinkState {
            socket: Arc::new(socket),
            mode: mode.subscribe(),
            cuts: cuts.subscribe(),
        };
        runtime.spawn(accept(listener, state));
        Self {
            address,
            mode,
            cuts,
        }
    }

    /// Changes how bytes are forwarded, including on open connections.
    pub fn set(&self, mode: LinkMode) {
        self.mode.send_replace(mode);
    }

    /// Closes all connections.
    pub fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }
}

async fn accept(listener: TcpListener, state: LinkState) {
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok((client, _)) = listener.accept().await else {
            return;
        };
        let Ok(slot) = Arc::clone(&slots).try_acquire_owned() else {
            continue;
        };
        let LinkState {
            socket,
            mode,
            mut cuts,
        } = state.clone();
        cuts.mark_unchanged();
        tokio::spawn(async move {
            tokio::select! {
                () = forward(client, &socket, mode) => {}
                _ = cuts.changed() => {}
            }
            drop(slot);
        });
    }
}

async fn forward(client: TcpStream, socket: &PathBuf, mut mode: watch::Receiver<LinkMode>) {
    if mode
        .wait_for(|mode| *mode != LinkMode::Silent)
        .await
        .is_err()
    {
        return;
    }
    let Ok(server) = UnixStream::connect(socket).await else {
        return;
    };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::select! {
        () = copy(from_client, to_server, mode.clone(), &[LinkMode::Silent]) => {}
        () = copy(from_server, to_client, mode, &[LinkMode::Silent, LinkMode::NoReplies]) => {}
    }
}

async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut mode: watch::Receiver<LinkMode>,
    stalled: &[LinkMode],
) {
    let mut piece = vec![0; 16 * 1024];
    loop {
        let Ok(length @ 1..) = from.read(&mut piece).await else {
            return;
        };
        let Ok(mode) = mode
            .wait_for(|mode| !stalled.contains(mode))
            .await
            .map(|mode| *mode)
        else {
            return;
        };
        if let LinkMode::Slow(delay) = mode {
            tokio::time::sleep(delay).await;
        }
        if to.write_all(&piece[..length]).await.is_err() {
            return;
        }
    }
}
