//! Grace for the next process on a data directory: the shares that a gateway holds, and the units that it owes. A small file
//! beside the store, to which units are added before they are spent.
//!
//! Each line has a checksum. A line that was torn by a crash was not acknowledged and is ignored. After damage the other lines
//! are read without the shares, on which an unknown number of units was spent. Each entry has an identity, so that the ledger
//! charges it once, however often the file is read.
//!
//! Shares are read from the original file only. A copy of the data directory, or a backup that was restored, may lack units
//! that were spent since; on another machine the holder may still run. So the file names itself when it is created, by the
//! boot of the machine, its device, its inode and its time of birth, none of which a copy has. A file may also be overwritten in
//! place. So after each write its time of modification is set back by an hour: it no longer fits the time of the last change,
//! which nobody can set.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use scoregate_base::clock::Day;
use scoregate_base::keys::ApplicationId;
use scoregate_base::limits::GraceShare;

use super::durable_file::{FileReplacement, HALF, checksum, if_found, sync_directory};
use super::{HeldGraceShare, OwedUnits};

/// The first line of the file.
const OPENING: &str = "scoregate-owed 1";
/// Maximum size of a file to be read.
const LARGEST: u64 = 256 << 20;
/// By how much the time of modification is set back, and by how much the difference may be off, in seconds.
const SET_BACK: i64 = 3_600;
const TOLERANCE: i64 = 5;
/// Identity of the machine's boot.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// The file in a data directory.
#[derive(Clone, Debug)]
pub struct OwedFile(PathBuf);

/// The content of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwedRecords {
    /// Shares that the holder's next process may continue.
    pub shares: Vec<HeldGraceShare>,
    /// Units to charge, the newest entry for each process, application and day.
    pub owed: Vec<OwedUnits>,
}

/// The open file, to which entries are added.
#[derive(Debug)]
pub struct OwedLog(File);

impl OwedFile {
    /// The file's name in the data directory.
    pub const NAME: &str = "scoregate.owed";

    /// The file of this data directory, whether it exists or not.
    pub fn of(directory: &Path) -> Self {
        Self(directory.join(Self::NAME))
    }

    /// The content. A file that cannot be read is kept under another name, since the next write replaces it. An error if that
    /// failed: then nothing may be written.
    pub fn read_or_set_aside(&self) -> io::Result<OwedRecords> {
        let unread = match self.read() {
            Err(error) => error,
            read => return read,
        };
        let kept = self.0.with_extension("owed.unreadable");
        tracing::error!(
            error = %unread, kept = %kept.display(),
            "cannot read scoregate.owed; its units are not charged, and the file is renamed"
        );
        let renamed = fs::rename(&self.0, &kept).and_then(|()| sync_directory(&kept));
        let renamed = renamed.inspect_err(|error| {
            tracing::error!(%error, "cannot rename the unreadable scoregate.owed; grace is disabled");
        });
        renamed.map(|()| OwedRecords::default())
    }

    /// The content; nothing without a file. Damaged lines are skipped. A file without its format is an error of the kind
    /// `InvalidData`.
    pub fn read(&self) -> io::Result<OwedRecords> {
        let Some(file) = if_found(File::open(&self.0))? else {
            return Ok(OwedRecords::default());
        };
        if file.metadata()?.len() > LARGEST {
            return Err(damaged());
        }
        let bytes = fs::read(&self.0)?;
        let text = String::from_utf8_lossy(&bytes);
        let (first, rest) = text.split_once('\n').ok_or_else(damaged)?;
        if first != OPENING {
            return Err(damaged());
        }
        records(rest, &file)
    }

    /// Replaces the content. It is durable when this returns.
    pub fn replace(&self, records: &OwedRecords) -> io::Result<OwedLog> {
        let replacement = FileReplacement::begin(&self.0, HALF)?;
        let mut file = replacement.file();
        let own = identity(file).map(|identity| format!("file {identity}"));
        let shares = records.shares.iter().map(share_words);
        let lines = own
            .into_iter()
            .chain(shares)
            .chain(records.owed.iter().map(units_words));
        file.write_all(format!("{OPENING}\n{}", lines_of(lines)).as_bytes())?;
        let log = OwedLog(replacement.finish()?);
        log.mark()?;
        Ok(log)
    }

    /// Removes the file, if it exists.
    pub fn remove(&self) -> io::Result<()> {
        let removed = if_found(fs::remove_file(&self.0))?;
        removed.map_or(Ok(()), |()| sync_directory(&self.0))
    }
}

impl OwedLog {
    /// Adds entries. They are durable when this returns. After an error nothing can be added: what was written is unknown.
    pub fn add(&mut self, owed: &[OwedUnits]) -> io::Result<()> {
        self.0
            .write_all(lines_of(owed.iter().map(units_words)).as_bytes())?;
        self.mark()?;
        self.0.sync_data()
    }

    /// Sets the time of modification back.
    fn mark(&self) -> io::Result<()> {
        let changed_at = u64::try_from(self.0.metadata()?.ctime() - SET_BACK).unwrap_or(0);
        self.0
            .set_modified(UNIX_EPOCH + Duration::from_secs(changed_at))
    }
}

fn records(text: &str, file: &File) -> io::Result<OwedRecords> {
    let mut records = OwedRecords::default();
    let mut places = HashMap::new();
    let mut is_original = false;
    let mut damaged_lines = 0_u32;
    // What follows the last line break was not written completely.
    for line in text
        .split_inclusive('\n')
        .filter_map(|line| line.strip_suffix('\n'))
    {
        match checked(line) {
            Some(("file", own)) => {
                is_original = identity(file).is_some_and(|identity| identity == own);
            }
            Some(("share", words)) if let Some(share) = share(words) => records.shares.push(share),
            Some(("owed", words)) if let Some(units) = units(words) => {
                let OwedUnits {
                    node,
                    application,
                    day,
                    granted,
                    ..
                } = units;
                let place = *places
                    .entry((node, application, day))
                    .or_insert(records.owed.len());
                // The entry with the larger total is the newest one.
                match records.owed.get_mut(place) {
                    Some(found) if found.granted <= granted => *found = units,
                    Some(_) => {}
                    None => records.owed.push(units),
                }
            }
            _ => damaged_lines += 1,
        }
    }
    let times = file.metadata()?;
    let is_overwritten = (times.ctime() - times.mtime() - SET_BACK).abs() > TOLERANCE;
    if damaged_lines > 0 {
        tracing::error!(
            damaged_lines,
            "scoregate.owed is damaged; units in damaged lines are not charged, and the grace share is not continued"
        );
    }
    if !is_original || is_overwritten || damaged_lines > 0 {
        records.shares.clear();
    }
    Ok(records)
}

/// The kind and the words of a line whose checksum is right.
fn checked(line: &str) -> Option<(&str, &str)> {
    let (sum, words) = line.split_once(' ')?;
    if sum == checksum(words.as_bytes()) {
        words.split_once(' ')
    } else {
        None
    }
}

/// The identity of the file, which no copy of it has. `None` if the system does not provide all of it.
fn identity(file: &File) -> Option<String> {
    let boot = fs::read_to_string(BOOT).ok()?;
    let found = file.metadata().ok()?;
    let born = found
        .created()
        .ok()?
        .duration_since(UNIX_EPOCH)
        .ok()?
        .as_nanos();
    Some(format!(
        "{} {} {} {born}",
        boot.trim(),
        found.dev(),
        found.ino()
    ))
}

fn lines_of(all: impl Iterator<Item = String>) -> String {
    let with_checksum =
        |words: String| [checksum(words.as_bytes()), " ".into(), words, "\n".into()];
    all.flat_map(with_checksum).collect()
}

fn share_words(held: &HeldGraceShare) -> String {
    let HeldGraceShare {
        day,
        share: GraceShare { number, shares },
        token,
        life,
    } = held;
    format!("share {day} {number} {shares} {token:016x} {life}")
}

fn share(words: &str) -> Option<HeldGraceShare> {
    let mut fields = words.split(' ');
    let day = Day::parse(fields.next()?)?;
    let share = GraceShare {
        number: fields.next()?.parse().ok()?,
        shares: fields.next()?.parse().ok()?,
    };
    let token = u64::from_str_radix(fields.next()?, 16).ok()?;
    Some(HeldGraceShare {
        day,
        share,
        token,
        life: fields.next()?.parse().ok()?,
    })
}

fn units_words(units: &OwedUnits) -> String {
    let OwedUnits {
        node,
        application,
        day,
        granted,
        owed,
        quota,
    } = units;
    format!("owed {node:016x} {application} {day} {granted} {owed} {quota}")
}

fn units(words: &str) -> Option<OwedUnits> {
    let mut fields = words.split(' ');
    let node = u64::from_str_radix(fields.next()?, 16).ok()?;
    let application: ApplicationId = fields.next()?.parse().ok()?;
    let day = Day::parse(fields.next()?)?;
    let granted = fields.next()?.parse().ok()?;
    let owed = fields.next()?.parse().ok()?;
    let quota = fields.next()?.parse().ok()?;
    fields.next().is_none().then_some(OwedUnits {
        node,
        application,
        day,
        granted,
        owed,
        quota,
    })
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the file is damaged")
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Day = Day::from_number(20_000);

    fn owed(node: u64, granted: u32) -> OwedUnits {
        let application = "app_0123456789a".parse().unwrap();
        OwedUnits {
            node,
            application,
            day: DAY,
            granted,
            owed: 3,
            quota: 900,
        }
    }

    fn held() -> OwedRecords {
        let share = GraceShare {
            number: 1,
            shares: 3,
        };
        let shares = vec![HeldGraceShare {
            day: DAY,
            share,
            token: u64::MAX,
            life: 2,
        }];
        OwedRecords {
            shares,
            owed: vec![owed(1, 20), owed(u64::MAX, 20)],
        }
    }

    #[test]
    fn the_newest_entries_are_read_back_with_the_shares_and_a_torn_line_is_ignored() {
        let directory = tempfile::tempdir().unwrap();
        let file = OwedFile::of(directory.path());
        assert_eq!(file.read().unwrap(), OwedRecords::default());
        let mut log = file.replace(&held()).unwrap();
        assert_eq!(file.read().unwrap(), held());
        log.add(&[owed(1, 25), owed(1, 24)]).unwrap();
        let newest = OwedRecords {
            owed: vec![owed(1, 25), owed(u64::MAX, 20)],
            ..held()
        };
        assert_eq!(file.read().unwrap(), newest);
        let whole = fs::read(&file.0).unwrap();
        let torn = File::options()
            .append(true)
            .open(&file.0)
            .unwrap()
            .write_all(&whole[40..60]);
        // The crash came before the time of modification was set back, so the share is not continued.
        let without_share = OwedRecords {
            shares: Vec::new(),
            ..newest
        };
        assert_eq!((torn.is_ok(), file.read().unwrap()), (true, without_share));
        file.remove().unwrap();
        file.remove().unwrap();
        assert_eq!(file.read().unwrap(), OwedRecords::default());
    }

    #[test]
    fn damaged_lines_are_skipped_without_the_shares_and_the_other_units_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let file = OwedFile::of(directory.path());
        let without_share = |owed| OwedRecords {
            shares: Vec::new(),
            owed,
        };
        // The lines are: format, identity, share, and two with units.
        for (damaged, units) in [(1, 0..2), (2, 0..2), (3, 1..2), (4, 0..1)] {
            file.replace(&held()).unwrap();
            let whole = fs::read_to_string(&file.0).unwrap();
            let mut lines: Vec<String> = whole.lines().map(str::to_owned).collect();
            lines[damaged].insert(12, 'x');
            let log = OwedLog(
                File::options()
                    .write(true)
                    .truncate(true)
                    .open(&file.0)
                    .unwrap(),
            );
            (&log.0)
                .write_all((lines.join("\n") + "\n").as_bytes())
                .unwrap();
            log.mark().unwrap();
            assert_eq!(
                file.read().unwrap(),
                without_share(held().owed[units].to_vec()),
                "line {damaged}"
            );
        }
        fs::write(
            &file.0,
            [OPENING.as_bytes(), b"\n\xff\n\nno checksum\n"].concat(),
        )
        .unwrap();
        assert_eq!(file.read().unwrap(), OwedRecords::default());
    }

    #[test]
    fn a_file_without_its_format_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let file = OwedFile::of(directory.path());
        file.replace(&held()).unwrap();
        let whole = fs::read(&file.0).unwrap();
        for spoilt in [&whole[1..], b"", b"\xff\n"] {
            fs::write(&file.0, spoilt).unwrap();
            assert_eq!(file.read().unwrap_err().kind(), io::ErrorKind::InvalidData);
        }
    }

    #[test]
    fn a_copied_or_restored_file_has_its_units_and_no_share() {
        let directory = tempfile::tempdir().unwrap();
        let file = OwedFile::of(directory.path());
        file.replace(&held()).unwrap();
        let without_share = OwedRecords {
            shares: Vec::new(),
            ..held()
        };
        let backup = directory.path().join("backup");
        fs::copy(&file.0, &backup).unwrap();
        assert_eq!(file.read().unwrap(), held(), "reading changes nothing");
        // Moved back under its name.
        fs::rename(&backup, &file.0).unwrap();
        assert_eq!(file.read().unwrap(), without_share);
        // Overwritten in place, with and without the times of the backup.
        file.replace(&held()).unwrap();
        let whole = fs::read(&file.0).unwrap();
        let modified = fs::metadata(&file.0).unwrap().modified().unwrap();
        fs::write(&file.0, &whole).unwrap();
        assert_eq!(file.read().unwrap(), without_share);
        let earlier = modified - Duration::from_mins(1);
        File::options()
            .write(true)
            .open(&file.0)
            .unwrap()
            .set_modified(earlier)
            .unwrap();
        assert_eq!(file.read().unwrap(), without_share);
    }
}
