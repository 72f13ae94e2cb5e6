//! Notices changes of the configuration file.
//!
//! The directory is watched: Kubernetes replaces a mounted file by renaming a symbolic link next to it, and editors
//! rename a new file over the old one. The file is watched as well, which may be a mount or a link to another
//! directory. The contents are compared, since other files in the directory change too.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
use tokio::net::unix::pipe::Receiver;

/// A configuration file and its last contents. `E` is the source of events.
pub(super) struct ConfigWatch<E> {
    events: E,
    file: PathBuf,
    contents: Option<Vec<u8>>,
}

impl ConfigWatch<OwnedFd> {
    /// Begins to watch a file. This must precede reading it, so that no change is missed.
    pub(super) fn on(file: &Path) -> io::Result<Self> {
        let events = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        watch(&events, file)?;
        Ok(Self {
            events,
            file: file.to_owned(),
            contents: std::fs::read(file).ok(),
        })
    }

    /// Begins to wait for events. Requires a runtime.
    pub(super) fn begin(self) -> io::Result<ConfigWatch<Receiver>> {
        // The watch is read like a pipe.
        let events = Receiver::from_owned_fd_unchecked(self.events)?;
        Ok(ConfigWatch {
            events,
            file: self.file,
            contents: self.contents,
        })
    }
}

impl ConfigWatch<Receiver> {
    /// Waits until something has happened to the directory or the file. May be cancelled.
    pub(super) async fn event(&mut self) -> io::Result<()> {
        let mut events = [0; 4 * 1_024];
        self.events.readable().await?;
        // All events are read: a change that equals the last unread event adds no event.
        while self.events.try_read(&mut events).is_ok() {}
        // The directory or the file may have been replaced under the same name.
        watch(&self.events, &self.file)
    }

    /// Reads the file again. Returns whether its contents have changed; a missing file has not changed.
    pub(super) async fn has_changed(&mut self) -> bool {
        let contents = tokio::fs::read(&self.file).await.ok();
        let has_changed = contents.is_some() && contents != self.contents;
        if has_changed {
            self.contents = contents;
        }
        has_changed
    }
}

fn watch(events: &impl AsFd, file: &Path) -> io::Result<()> {
    let parent = file
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let when = WatchFlags::CLOSE_WRITE
        | WatchFlags::MOVED_TO
        | WatchFlags::DELETE_SELF
        | WatchFlags::MOVE_SELF;
    add_watch(events, parent.unwrap_or(Path::new(".")), when)?;
    match add_watch(events, file, WatchFlags::CLOSE_WRITE) {
        // Until it is written again.
        Err(rustix::io::Errno::NOENT) => Ok(()),
        watched => Ok(watched.map(drop)?),
    }
}
