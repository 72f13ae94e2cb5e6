//! Reads a file that contains only a secret, on one line. A file that others can access is refused.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use zeroize::Zeroizing;

use super::Secret;

/// Maximum size of a file in bytes.
const LARGEST: u64 = 16 * 1024;
const GROUP: u32 = 0o070;
const OTHERS: u32 = 0o007;
/// The right to enter a directory.
const ENTER: u32 = 0o111;
const WRITE: u32 = 0o222;
const STICKY: u32 = 0o1000;
/// Another owner decides who may read: containers provide secrets as read-only files of root.
const WRITABLE_BY_OTHERS: u32 = 0o002;

/// The reason why the file is not used.
#[derive(Debug, thiserror::Error)]
pub enum BadSecretFile {
    /// It cannot be opened or read.
    #[error("the file cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    /// A directory, a pipe or a device.
    #[error("it must be a regular file")]
    NotAFile,
    /// Its mode lets others use the secret or replace it.
    #[error(
        "others can access the file (its mode is {0:04o}): remove their rights, with chmod 600"
    )]
    TooOpen(u32),
    /// Others can write to a directory on its path.
    #[error("others can replace the file: remove their right to write to {}, with chmod go-w", .0.display())]
    Replaceable(PathBuf),
    /// In a directory that all users can write, the file or a directory on its path belongs to a user other than root
    /// and the user of this process.
    #[error("{} belongs to another user, in a directory that others can write to", .0.display())]
    OfAnotherUser(PathBuf),
    /// It is empty, too large, not UTF-8, or has control characters.
    #[error("the file must contain only the secret, on one line")]
    NotOneLine,
    /// The secret is shorter than its setting allows.
    #[error("the secret must have at least {0} characters")]
    TooShort(usize),
}

/// Reads the file, without its line ending. Blocks.
pub fn read_secret_file(path: &Path) -> Result<Secret, BadSecretFile> {
    // Opened before the checks: the type and the mode belong to the file that is read, also if its name is replaced meanwhile.
    let mut file = open_without_waiting(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(BadSecretFile::NotAFile);
    }
    let location = fs::canonicalize(path)?;
    // Links are checked too, because a user who can replace a link can have any file read.
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
    // One byte more shows that the file is too large.
    let length = file.by_ref().take(LARGEST + 1).read_to_end(&mut bytes)?;
    let text = str::from_utf8(&bytes).map_err(|_| BadSecretFile::NotOneLine)?;
    let line = text.trim_end_matches(['\r', '\n']);
    if line.is_empty() || line.chars().any(char::is_control) || length as u64 > LARGEST {
        return Err(BadSecretFile::NotOneLine);
    }
    Ok(Secret::new(line.to_owned()))
}

/// Opens the file without waiting for the other end of a pipe.
pub fn open_without_waiting(path: &Path) -> io::Result<File> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Fails if others can write to the directory of this entry of a path, and so put another entry in its place. In a directory
/// with the sticky bit, such as `/tmp`, only the owner of an entry can.
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

/// Whether another user can read or write a file of the user that runs this program, or can write any other file. This takes
/// a right to the file and the right to enter its directory.
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
