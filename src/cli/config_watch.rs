//! Notices changes of the configuration file.
//!
//! The directory is watched: Kubernetes replaces a mounted file by renaming a symbolic link beside it, and editors rename a
//! new file over the old one. The contents are compared, since other files in the directory change too.

use std::future::pending;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;

/// A configuration file and its last contents.
pub(super) struct ConfigWatch {
    events: OwnedFd,
    file: PathBuf,
    contents: Option<Vec<u8>>,
}

impl ConfigWatch {
    /// Watches a file from now on: to miss no change, before it is read.
    pub(super) fn on(file: &Path) -> io::Result<Self> {
        let events = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
        let when = WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_TO | WatchFlags::CREATE;
        add_watch(&events, parent.unwrap_or(Path::new(".")), when)?;
        Ok(Self { events, file: file.to_owned(), contents: std::fs::read(file).ok() })
    }

    /// Begins to wait for events. Requires a runtime.
    pub(super) fn begin(self) -> io::Result<BegunConfigWatch> {
        // No pipe, but it is read like one.
        let events = Receiver::from_owned_fd_unchecked(self.events)?;
        Ok(BegunConfigWatch { events, file: self.file, contents: self.contents })
    }
}

/// A watch whose events wake a task.
pub(super) struct BegunConfigWatch {
    events: Receiver,
    file: PathBuf,
    contents: Option<Vec<u8>>,
}

impl BegunConfigWatch {
    /// Waits until the file has other contents. A missing file is not a change. May be cancelled.
    pub(super) async fn changed(&mut self) {
        // Many events of one replacement are read together.
        let mut events = [0; 4 * 1_024];
        loop {
            if let Err(error) = self.events.read(&mut events).await {
                tracing::error!(%error, "configuration file is no longer watched; reload it with SIGHUP");
                return pending().await;
            }
            let contents = tokio::fs::read(&self.file).await.ok();
            if contents.is_some() && contents != self.contents {
                self.contents = contents;
                return;
            }
        }
    }
}
