//! Reads a file that contains only a secret, on one line. A file that others can access is refused.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io::{self, Read as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;
use zeroize::Zeroizing;

use super::Secret;

/// Maximum size of a file in bytes.
const LARGEST: u64 = 16 * 1024;
const GROUP: u32 = 0o070;
const OTHERS: u32 = 0o007;
/// The permission to enter a directory.
const ENTER: u32 = 0o111;
const WRITE: u32 = 0o222;
const STICKY: u32 = 0o1000;
/// The only permission that is checked if another user owns the file. That owner decides who may read it: containers provide secrets as
/// read-only files owned by root.
const WRITABLE_BY_OTHERS: u32 = 0o002;

/// The reason why the file is not used.
#[derive(Debug, thiserror::Error)]
pub enum BadSecretFile {
    /// The file cannot be opened or read.
    #[error("the file cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    /// The path is a directory, a pipe or a device.
    #[error("it must be a regular file")]
    NotAFile,
    /// The mode lets other users read or replace the secret.
    #[error(
        "others can access the file (its mode is {0:04o}): remove their rights, with chmod 600"
    )]
    TooOpen(u32),
    /// Other users can write to a directory on the path.
    #[error("others can replace the file: remove their write permission for {}, with chmod go-w", .0.display())]
    Replaceable(PathBuf),
    /// The file, or a directory on its path, is in a directory that all users can write to, and belongs to a user other
    /// than root and the user of this process.
    #[error("{} belongs to another user, in a directory that others can write to", .0.display())]
    OfAnotherUser(PathBuf),
    /// The file is empty, too large, not UTF-8, or has control characters.
    #[error("the file must contain only the secret, on one line")]
    NotOneLine,
    /// The secret is shorter than its setting allows.
    #[error("the secret must have at least {0} characters")]
    TooShort(usize),
}

/// Reads the file, without its line ending. Blocks.
pub fn read_secret_file(path: &Path) -> Result<Secret, BadSecretFile> {
    // The file is opened before the checks, so that the type and mode are checked on the file that is read, even if the path is
    // replaced in the meantime.
    let mut file = open_without_waiting(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(BadSecretFile::NotAFile);
    }
    let location = fs::canonicalize(path)?;
    // Links are also checked, because a user who can replace a link can make this program read any file.
    for entry in std::path::absolute(path)?
        .ancestors()
        .chain(location.ancestors())
    {
        check_directory_of(entry)?;
    }
    if is_too_open(&location, &found)? {
        return Err(BadSecretFile::TooOpen(found.mode() & 0o7777));
    }
    let mut bytes = Zeroizing::new(Vec::new());
    // One extra byte is read to find out whether the file is too large.
    let length = file.by_ref().take(LARGEST + 1).read_to_end(&mut bytes)?;
    let text = str::from_utf8(&bytes).map_err(|_| BadSecretFile::NotOneLine)?;
    let line = text.trim_end_matches(['\r', '\n']);
    if line.is_empty() || line.chars().any(char::is_control) || length as u64 > LARGEST {
        return Err(BadSecretFile::NotOneLine);
    }
    Ok(Secret::new(line.to_owned()))
}

/// Opens the file. If it is a pipe, does not wait for the other end.
pub fn open_without_waiting(path: &Path) -> io::Result<File> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Fails if other users can write to the directory of this path entry and so replace the entry. In a directory with the
/// sticky bit, such as `/tmp`, only the owner can replace an entry.
fn check_directory_of(entry: &Path) -> Result<(), BadSecretFile> {
    let Some(directory) = entry.parent() else {
        return Ok(());
    };
    let mode = fs::metadata(directory)?.mode();
    if mode & WRITE & (GROUP | OTHERS) == 0 {
        return Ok(());
    }
    if mode & STICKY == 0 {
        return Err(BadSecretFile::Replaceable(directory.to_owned()));
    }
    let owner = fs::symlink_metadata(entry)?.uid();
    let is_trusted = owner == 0 || owner == rustix::process::geteuid().as_raw();
    if is_trusted {
        Ok(())
    } else {
        Err(BadSecretFile::OfAnotherUser(entry.to_owned()))
    }
}

/// Whether other users have too much access to the file: read or write access if the user of this process owns it,
/// otherwise write access. Access requires permission on the file and permission to enter its directory.
fn is_too_open(location: &Path, found: &Metadata) -> io::Result<bool> {
    let is_own = found.uid() == rustix::process::geteuid().as_raw();
    let rights = found.mode()
        & if is_own {
            GROUP | OTHERS
        } else {
            WRITABLE_BY_OTHERS
        };
    let entered = location
        .parent()
        .map(fs::metadata)
        .transpose()?
        .map_or(ENTER, |directory| directory.mode() & ENTER);
    Ok([GROUP, OTHERS]
        .iter()
        .any(|class| rights & class != 0 && entered & class != 0))
}
