//! The highest timeline of each database cluster that was ever used from a data directory.
//!
//! A cluster's timeline grows with every promotion of a standby. A server on a lower one was the primary before a
//! failover and lacks what was written since.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use crate::durable_file::{FileReplacement, HALF, checksum, if_found};

/// The first bytes of the file, followed by the checksum.
const OPENING: &str = "scoregate-timelines 1 ";

/// The highest timelines, by the cluster's system identifier.
#[derive(Debug, Default)]
pub struct SeenTimelines {
    /// Where they are kept. `None` for a process that only reads them.
    file: Option<PathBuf>,
    highest: Mutex<BTreeMap<String, u32>>,
    /// There is a file, and it cannot be read.
    is_unreadable: bool,
    /// Held while the file is written, so that an older state never replaces a newer one.
    writing: Mutex<()>,
}

/// A timeline compared with those seen before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimelineAge {
    /// The highest one so far, already known.
    Known,
    /// Higher than any before: to be saved.
    New,
    /// Lower than this one.
    Behind(u32),
}

impl SeenTimelines {
    /// The file's name in the data directory.
    pub const NAME: &str = "scoregate.timelines";

    /// Reads those of a data directory, and keeps new ones there.
    pub fn kept_in(directory: &Path) -> Self {
        let file = directory.join(Self::NAME);
        Self {
            file: Some(file),
            ..Self::read_in(directory)
        }
    }

    /// Reads those of a data directory. New ones are kept in memory only.
    pub fn read_in(directory: &Path) -> Self {
        let path = directory.join(Self::NAME);
        let (highest, is_unreadable) = match read(&path) {
            Ok(highest) => (highest, false),
            Err(error) => {
                tracing::error!(
                    %error, path = %path.display(),
                    "the file of database timelines cannot be read; a server that was the primary before an earlier failover \
                     is not recognized until the current one was used"
                );
                (BTreeMap::new(), true)
            }
        };
        Self {
            highest: Mutex::new(highest),
            is_unreadable,
            ..Self::default()
        }
    }

    /// The file, for messages.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Whether a timeline was ever checked from this data directory.
    pub(crate) fn has_any(&self) -> bool {
        self.is_unreadable || !self.highest.lock().is_empty()
    }

    /// Compares the timeline of a server with the highest one, and remembers it if it is higher.
    pub(crate) fn compare(&self, system: &str, timeline: u32) -> TimelineAge {
        let mut highest = self.highest.lock();
        let known = highest.entry(system.to_owned()).or_insert(0);
        match timeline.cmp(known) {
            std::cmp::Ordering::Less => TimelineAge::Behind(*known),
            std::cmp::Ordering::Equal => TimelineAge::Known,
            std::cmp::Ordering::Greater => {
                *known = timeline;
                TimelineAge::New
            }
        }
    }

    /// Makes the highest timelines durable. Blocks.
    pub(crate) fn save(&self) -> io::Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let writing = self.writing.lock();
        let lines = |(system, timeline): (&String, &u32)| format!("{system} {timeline}\n");
        let rest: String = self.highest.lock().iter().map(lines).collect();
        let replacement = FileReplacement::begin(file, HALF)?;
        replacement
            .file()
            .write_all(format!("{OPENING}{}\n{rest}", checksum(rest.as_bytes())).as_bytes())?;
        replacement.finish()?;
        drop(writing);
        Ok(())
    }
}

fn read(path: &Path) -> io::Result<BTreeMap<String, u32>> {
    let Some(text) = if_found(fs::read_to_string(path))? else {
        return Ok(BTreeMap::new());
    };
    parse(&text).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the file is damaged"))
}

fn parse(text: &str) -> Option<BTreeMap<String, u32>> {
    let (first, rest) = text.split_once('\n')?;
    if first.strip_prefix(OPENING) != Some(&*checksum(rest.as_bytes())) {
        return None;
    }
    let line = |line: &str| {
        let (system, timeline) = line.split_once(' ')?;
        Some((system.to_owned(), timeline.parse().ok()?))
    };
    rest.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_timeline_of_each_cluster_survives_a_restart() {
        let directory = tempfile::tempdir().unwrap();
        let seen = SeenTimelines::kept_in(directory.path());
        for (system, timeline, expected) in [
            ("71", 2, TimelineAge::New),
            ("71", 2, TimelineAge::Known),
            ("72", 1, TimelineAge::New),
            ("71", 1, TimelineAge::Behind(2)),
        ] {
            assert_eq!(
                seen.compare(system, timeline),
                expected,
                "{system} {timeline}"
            );
        }
        seen.save().unwrap();
        for seen in [
            SeenTimelines::kept_in(directory.path()),
            SeenTimelines::read_in(directory.path()),
        ] {
            assert_eq!(seen.compare("71", 1), TimelineAge::Behind(2));
            assert_eq!(seen.compare("72", 1), TimelineAge::Known);
            assert_eq!(seen.compare("71", 3), TimelineAge::New);
        }
        SeenTimelines::read_in(directory.path()).save().unwrap();
        assert_eq!(
            SeenTimelines::kept_in(directory.path()).compare("71", 1),
            TimelineAge::Behind(2)
        );
    }

    #[test]
    fn a_damaged_file_of_timelines_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(SeenTimelines::NAME);
        let seen = SeenTimelines::kept_in(directory.path());
        seen.compare("7123456789", 12);
        seen.save().unwrap();
        let whole = fs::read(&path).unwrap();
        assert_eq!(read(&path).unwrap().get("7123456789"), Some(&12));
        for cut in 0..whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            assert_eq!(
                read(&path).unwrap_err().kind(),
                io::ErrorKind::InvalidData,
                "{cut}"
            );
            assert!(SeenTimelines::kept_in(directory.path()).has_any(), "{cut}");
        }
    }
}
