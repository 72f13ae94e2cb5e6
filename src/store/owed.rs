//! Units that a server delivered on grace and could not charge: a small file beside the store, written while they are
//! delivered and read at the next start.
//!
//! The file is written under another name first, and its first line contains a checksum of the rest. Each entry has
//! an identity, so that the ledger charges it once, however often the file is read.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::clock::Wall;
use crate::keys::ApplicationId;

use super::OwedUnits;
use super::durable_file::{FileReplacement, sync_directory};

/// The first bytes of the file, followed by the checksum.
const OPENING: &str = "scoregate-owed 1 ";
/// Maximum size of a file to be read.
const LARGEST: u64 = 256 << 20;

/// The file in a data directory.
#[derive(Clone, Debug)]
pub struct OwedFile(PathBuf);

impl OwedFile {
    /// The file's name in the data directory.
    pub const NAME: &str = "scoregate.owed";

    /// The file of this data directory, whether it exists or not.
    pub fn of(directory: &Path) -> Self {
        Self(directory.join(Self::NAME))
    }

    /// The entries; none without a file. A damaged file is an error of the kind `InvalidData`.
    pub fn read(&self) -> io::Result<Vec<OwedUnits>> {
        match fs::metadata(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
            Ok(found) if found.len() > LARGEST => return Err(damaged()),
            Ok(_) => {}
        }
        let text = String::from_utf8(fs::read(&self.0)?).map_err(|_| damaged())?;
        let (first, rest) = text.split_once('\n').ok_or_else(damaged)?;
        if first.strip_prefix(OPENING) != Some(&*checksum(rest)) {
            return Err(damaged());
        }
        rest.lines().map(|line| entry(line).ok_or_else(damaged)).collect()
    }

    /// Replaces the entries. They are durable when this returns.
    pub fn write(&self, owed: &[OwedUnits]) -> io::Result<()> {
        let line =
            |one: &OwedUnits| format!("{:016x} {} {} {}\n", one.node, one.application, one.day, one.granted);
        let rest: String = owed.iter().map(line).collect();
        let mut replacement = FileReplacement::begin(&self.0)?;
        replacement.file().write_all(format!("{OPENING}{}\n{rest}", checksum(&rest)).as_bytes())?;
        replacement.finish().map(drop)
    }

    /// Removes the file, if it exists.
    pub fn remove(&self) -> io::Result<()> {
        match fs::remove_file(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.and_then(|()| sync_directory(&self.0)),
        }
    }
}

fn entry(line: &str) -> Option<OwedUnits> {
    let mut fields = line.split(' ');
    let node = u64::from_str_radix(fields.next()?, 16).ok()?;
    let application: ApplicationId = fields.next()?.parse().ok()?;
    let day = Wall::parse_rfc3339(&format!("{}T00:00:00Z", fields.next()?))?.day();
    let granted = fields.next()?.parse().ok()?;
    fields.next().is_none().then_some(OwedUnits { node, application, day, granted })
}

fn checksum(text: &str) -> String {
    format!("{:08x}", crc32fast::hash(text.as_bytes()))
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the file is damaged")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Day;

    #[test]
    fn entries_are_read_back_and_a_damaged_file_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let file = OwedFile::of(directory.path());
        assert_eq!(file.read().unwrap(), []);
        let (application, day) = ("app_0123456789a".parse().unwrap(), Day::from_number(20_000));
        let owed = [1, u64::MAX].map(|node| OwedUnits { node, application, day, granted: 20 });
        file.write(&owed).unwrap();
        assert_eq!(file.read().unwrap(), owed);
        let path = directory.path().join(OwedFile::NAME);
        let whole = fs::read(&path).unwrap();
        for spoilt in [&whole[..whole.len() - 3], &whole[1..], b"", b"\xff\n"] {
            fs::write(&path, spoilt).unwrap();
            assert_eq!(file.read().unwrap_err().kind(), io::ErrorKind::InvalidData);
        }
        file.remove().unwrap();
        file.remove().unwrap();
        assert_eq!(file.read().unwrap(), []);
    }
}
