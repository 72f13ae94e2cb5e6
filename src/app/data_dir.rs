//! The data directory: used by one process at a time, accessible to its owner only.

use std::{
    fs::{File, OpenOptions},
    io::{self, ErrorKind, Write as _},
    os::unix::{
        fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
        net::UnixListener,
    },
    path::{Path, PathBuf},
};

use anyhow::Context as _;

/// Name of the Unix socket in the data directory.
pub const SOCKET: &str = "scoregate.sock";
const LOCK: &str = "scoregate.lock";
/// Content of a new lock file. The file is emptied when the store is opened; older versions wrote nothing.
const NO_STORE_YET: &[u8] = b"This directory has held no scoregate store yet.\n";

/// Another process is using the data directory.
#[derive(Debug, thiserror::Error)]
#[error("the data directory {} is in use by another scoregate process; stop it, or use another --data-dir", .0.display())]
pub struct DataDirInUse(PathBuf);

impl DataDirInUse {
    /// Creates the error for this directory.
    pub fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }
}

/// A data directory that this process has locked. The lock is released on drop.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    _lock: File,
    socket: bool,
}

impl DataDir {
    /// Creates the data directory if necessary, and locks it.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .with_context(|| format!("the data directory {shown} cannot be created"))?;
        warn_if_open(path)?;
        let lock = lock_file(&path.join(LOCK));
        let lock = lock.with_context(|| format!("the data directory {shown} is not writable"))?;
        Ok(Self {
            path: path.to_owned(),
            _lock: try_lock(lock, path)?,
            socket: false,
        })
    }

    /// Locks an existing data directory for reading, so that no server can use it in the meantime. A directory that no
    /// server has used has no lock file.
    pub fn lock_existing(path: &Path) -> anyhow::Result<Option<File>> {
        match File::open(path.join(LOCK)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            lock => try_lock(lock?, path).map(Some),
        }
    }

    /// The path of the data directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the Unix socket for the command line. Only the directory's owner can connect to it.
    pub fn socket(&mut self) -> anyhow::Result<UnixListener> {
        let path = self.path.join(SOCKET);
        let shown = path.display();
        // This process holds the lock, so an existing socket was left by a process that has ended.
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error)
                    .with_context(|| format!("the old socket {shown} cannot be removed"));
            }
            Ok(()) | Err(_) => {}
        }
        let listener = UnixListener::bind(&path).with_context(|| {
            format!("the socket {shown} cannot be opened (its path may have at most about 100 characters)")
        })?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
        self.socket = true;
        Ok(listener)
    }
}

fn try_lock(lock: File, path: &Path) -> anyhow::Result<File> {
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(std::fs::TryLockError::WouldBlock) => Err(DataDirInUse::new(path).into()),
        Err(std::fs::TryLockError::Error(error)) => Err(error)
            .with_context(|| format!("the data directory {} cannot be locked", path.display())),
    }
}

/// Warns if this user owns the directory and other users can enter it or write to it. The mode of another owner's
/// directory is not
/// checked, because pod volumes belong to root and are open to everyone.
fn warn_if_open(path: &Path) -> io::Result<()> {
    let found = std::fs::metadata(path)?;
    let is_own = found.uid() == rustix::process::geteuid().as_raw();
    let mode = found.mode() & 0o7777;
    if is_own && mode & 0o033 != 0 {
        tracing::warn!(
            path = %path.display(), mode = format!("{mode:04o}"),
            "other users can enter the data directory or write to it. It holds digests of keys and mail addresses: \
             restrict it with chmod 700"
        );
    }
    Ok(())
}

/// Opens the lock file. A new lock file marks a directory without a store. It is created together with its content,
/// because another process treats an empty lock file as the lock of a store.
fn lock_file(path: &Path) -> io::Result<File> {
    let opened = OpenOptions::new().write(true).open(path);
    if opened
        .as_ref()
        .is_err_and(|error| error.kind() == ErrorKind::NotFound)
    {
        let new = path.with_extension(format!("lock-{}", std::process::id()));
        write_new(&new)?.sync_all()?;
        let linked = std::fs::hard_link(&new, path);
        std::fs::remove_file(&new)?;
        if linked.is_err_and(|error| error.kind() != ErrorKind::AlreadyExists) {
            // The file system does not support hard links.
            write_new(path)?;
        }
        return OpenOptions::new().write(true).open(path);
    }
    opened
}

fn write_new(path: &Path) -> io::Result<File> {
    let mut file = OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(NO_STORE_YET)?;
    Ok(file)
}

impl Drop for DataDir {
    fn drop(&mut self) {
        if self.socket && std::fs::remove_file(self.path.join(SOCKET)).is_err() {
            tracing::debug!("socket was already removed");
        }
    }
}
