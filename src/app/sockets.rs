//! Sockets that were handed over by the parent process: systemd's socket activation, and any supervisor that speaks it.
//!
//! The first socket is the public port, the second, if there is one, the side port. While one process takes over from
//! another the socket stays open, and who comes meanwhile waits in its queue. Not for: connections (`server`), nor for what the service manager is told
//! (`supervisor`).

use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use listenfd::ListenFd;

use crate::clock::Clock;
use crate::config::Config;
use crate::server::{self, PublicPort};

use super::data_dir::{DataDir, DataDirInUse};

/// So long a process that was handed sockets waits for the one before it, which still answers what it accepted.
const PREDECESSOR: Duration = Duration::from_mins(1);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Sockets that were handed over.
#[derive(Debug, Default)]
pub struct InheritedSockets {
    public: Option<TcpListener>,
    side: Option<TcpListener>,
}

impl InheritedSockets {
    /// Those that `LISTEN_FDS` names. None where it names none, or names them for another process.
    pub fn inherited() -> anyhow::Result<Self> {
        let mut handed = ListenFd::from_env();
        let mut take = |which, name| {
            let taken = handed.take_tcp_listener(which);
            taken.with_context(|| format!("the socket handed over for the {name} port cannot be listened on"))
        };
        Ok(Self { public: take(0, "public")?, side: take(1, "side")? })
    }

    /// The data directory. Who was handed sockets waits until the process before has left it.
    pub(super) async fn data_dir(&self, path: &Path, clock: &Clock) -> anyhow::Result<DataDir> {
        let patience = if self.public.is_some() { PREDECESSOR } else { Duration::ZERO };
        let end = clock.mono().plus(patience);
        loop {
            match DataDir::open(path) {
                Err(error) if error.is::<DataDirInUse>() && clock.mono() < end => {
                    clock.sleep(LOOK_EVERY).await;
                }
                opened => return opened,
            }
        }
    }

    /// Both ports: as handed over, else as the settings say.
    pub(super) async fn open(self, config: &Config) -> anyhow::Result<(PublicPort, TcpListener)> {
        let public = match self.public {
            Some(socket) => PublicPort::inherited(socket),
            None => server::bind(config.listen).await,
        };
        let public = public.with_context(|| format!("the public port {} cannot be opened", config.listen))?;
        let side = self.side.map_or_else(|| TcpListener::bind(config.admin_listen), Ok);
        let side = side.with_context(|| format!("the side port {} cannot be opened", config.admin_listen))?;
        Ok((public, side))
    }
}
