//! The state of each database that was ever used from a data directory, by which an older one is recognized.
//!
//! A cluster's timeline grows with every promotion of a standby: a server on a lower one was the primary before a failover
//! and lacks what was written since. Each data set has the time of its last restore, and of the last report of a gateway: a
//! database that lacks the report was restored from a backup.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use tokio_postgres::Row;

use crate::durable_file::{FileReplacement, HALF, checksum, if_found};
use crate::postgres::connection::engine_features::ServerHistory;

/// The first bytes of the file, followed by the checksum.
const OPENING: &str = "scoregate-timelines 1 ";

/// A failover without a synchronous standby may lose the commits of this time, in milliseconds. One that loses more counts
/// as a restore.
const FAILOVER_LOSS: u64 = 10_000;

/// The states, kept in a file.
#[derive(Debug, Default)]
pub struct SeenTimelines {
    /// Where they are kept. `None` for a process that only reads them.
    file: Option<PathBuf>,
    state: Mutex<SeenState>,
    /// Held while the file is written, so that an older state never replaces a newer one.
    writing: Mutex<()>,
}

/// The states of the servers and data sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SeenState {
    /// The highest timelines, by the cluster's system identifier.
    timelines: BTreeMap<String, u32>,
    data_sets: BTreeMap<String, RestoreMarks>,
    /// There is a file, and it cannot be read.
    is_unreadable: bool,
}

/// Times of a data set in milliseconds. Each only grows, unless commits are lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RestoreMarks {
    /// The last `store restore`.
    pub(crate) restored_at: u64,
    /// The last report of a gateway.
    pub(crate) seen_at: u64,
}

/// The state that a server discloses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerState<'s> {
    pub(crate) data_set: &'s str,
    pub(crate) marks: RestoreMarks,
    pub(crate) history: &'s ServerHistory,
}

/// The state of a server compared with those seen before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerAge {
    Current,
    /// Its timeline, and a higher one that was used.
    BehindTimeline(u32, u32),
    /// Another server with its data was restored since.
    BehindRestore,
    /// It lacks commits that no failover may lose.
    LacksCommits,
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
        let state = read(&path).unwrap_or_else(|error| {
            tracing::error!(
                %error, path = %path.display(),
                "the file of database timelines cannot be read; a server that was the primary before an earlier failover, or \
                 was restored, is not recognized until the current one was used"
            );
            SeenState {
                is_unreadable: true,
                ..SeenState::default()
            }
        });
        Self {
            state: Mutex::new(state),
            ..Self::default()
        }
    }

    /// The file, for messages.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The servers and data sets that are known now.
    pub(crate) fn state(&self) -> SeenState {
        self.state.lock().clone()
    }

    /// Remembers a server that is used. Returns whether something is to be saved.
    pub(crate) fn record(&self, server: &ServerState<'_>) -> bool {
        let mut state = self.state.lock();
        let before = state.clone();
        if state.is_older_than(server) {
            // Those of servers that were replaced.
            state.timelines.clear();
        }
        if let ServerHistory::Disclosed { system, timeline } = server.history {
            state.timelines.insert(system.clone(), *timeline);
        }
        let data_set = server.data_set.to_owned();
        state.data_sets.insert(data_set, server.marks);
        *state != before
    }

    /// Remembers a report of this gateway. Returns whether something is to be saved.
    pub(crate) fn raise(&self, data_set: &str, marks: RestoreMarks) -> bool {
        let mut state = self.state.lock();
        let Some(known) = state.data_sets.get_mut(data_set) else {
            return false;
        };
        let is_newer = marks.restored_at == known.restored_at && marks.seen_at > known.seen_at;
        if is_newer {
            *known = marks;
        }
        is_newer
    }

    /// Makes the states durable. Blocks.
    pub(crate) fn save(&self) -> io::Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let writing = self.writing.lock();
        let lines = self.state.lock().lines();
        let replacement = FileReplacement::begin(file, HALF)?;
        replacement
            .file()
            .write_all(format!("{OPENING}{}\n{lines}", checksum(lines.as_bytes())).as_bytes())?;
        replacement.finish()?;
        drop(writing);
        Ok(())
    }
}

impl SeenState {
    /// Whether a timeline was ever checked from this data directory.
    pub(crate) fn has_timelines(&self) -> bool {
        self.is_unreadable || !self.timelines.is_empty()
    }

    /// Whether the data set was restored since.
    pub(crate) fn is_older_than(&self, server: &ServerState<'_>) -> bool {
        server.marks.restored_at > self.marks(server).restored_at
    }

    pub(crate) fn compare(&self, server: &ServerState<'_>) -> ServerAge {
        let known = self.marks(server);
        if server.marks.restored_at != known.restored_at {
            return if self.is_older_than(server) {
                ServerAge::Current
            } else {
                ServerAge::BehindRestore
            };
        }
        let lost = match server.history {
            ServerHistory::Hidden(_) => FAILOVER_LOSS,
            ServerHistory::Disclosed { system, timeline } => {
                let highest = self.timelines.get(system).copied().unwrap_or_default();
                match timeline.cmp(&highest) {
                    std::cmp::Ordering::Less => {
                        return ServerAge::BehindTimeline(*timeline, highest);
                    }
                    std::cmp::Ordering::Equal => 0,
                    std::cmp::Ordering::Greater => FAILOVER_LOSS,
                }
            }
        };
        if server.marks.seen_at.saturating_add(lost) < known.seen_at {
            return ServerAge::LacksCommits;
        }
        ServerAge::Current
    }

    fn marks(&self, server: &ServerState<'_>) -> RestoreMarks {
        self.data_sets
            .get(server.data_set)
            .copied()
            .unwrap_or_default()
    }

    fn lines(&self) -> String {
        let timelines = self.timelines.iter();
        let timelines = timelines.map(|(system, timeline)| format!("{system} {timeline}\n"));
        let data_sets = self.data_sets.iter().map(|(data_set, marks)| {
            let RestoreMarks {
                restored_at,
                seen_at,
            } = marks;
            format!("{data_set} {restored_at} {seen_at}\n")
        });
        timelines.chain(data_sets).collect()
    }
}

impl RestoreMarks {
    pub(crate) fn of(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            restored_at: row.try_get::<_, i64>("restored_at")?.cast_unsigned(),
            seen_at: row.try_get::<_, i64>("seen_at")?.cast_unsigned(),
        })
    }
}

fn read(path: &Path) -> io::Result<SeenState> {
    let Some(text) = if_found(fs::read_to_string(path))? else {
        return Ok(SeenState::default());
    };
    parse(&text).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the file is damaged"))
}

fn parse(text: &str) -> Option<SeenState> {
    let (first, rest) = text.split_once('\n')?;
    if first.strip_prefix(OPENING) != Some(&*checksum(rest.as_bytes())) {
        return None;
    }
    let mut state = SeenState::default();
    for line in rest.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        match fields.as_slice() {
            [system, timeline] => {
                let timeline = timeline.parse().ok()?;
                state.timelines.insert((*system).to_owned(), timeline);
            }
            [data_set, restored_at, seen_at] => {
                let marks = RestoreMarks {
                    restored_at: restored_at.parse().ok()?,
                    seen_at: seen_at.parse().ok()?,
                };
                state.data_sets.insert((*data_set).to_owned(), marks);
            }
            _ => return None,
        }
    }
    Some(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_timeline(system: &str, timeline: u32) -> ServerHistory {
        ServerHistory::Disclosed {
            system: system.into(),
            timeline,
        }
    }

    fn server(history: &ServerHistory, restored_at: u64, seen_at: u64) -> ServerState<'_> {
        ServerState {
            data_set: "a-b-c",
            marks: RestoreMarks {
                restored_at,
                seen_at,
            },
            history,
        }
    }

    #[test]
    fn a_server_that_lacks_what_was_seen_is_not_current_also_after_a_restart() {
        let directory = tempfile::tempdir().unwrap();
        let seen = SeenTimelines::kept_in(directory.path());
        let [before, used, after] = [1, 2, 3].map(|timeline| on_timeline("71", timeline));
        let hidden = ServerHistory::Hidden("refused".into());
        let elsewhere = on_timeline("72", 1);
        assert!(seen.record(&server(&used, 5, 50_000)));
        let report = |restored_at, seen_at| RestoreMarks {
            restored_at,
            seen_at,
        };
        assert!(!seen.raise("another", report(5, 70_000)));
        assert!(!seen.raise("a-b-c", report(4, 70_000)));
        assert!(seen.raise("a-b-c", report(5, 60_000)));
        assert!(!seen.raise("a-b-c", report(5, 60_000)));
        seen.save().unwrap();
        for seen in [
            SeenTimelines::kept_in(directory.path()),
            SeenTimelines::read_in(directory.path()),
        ] {
            for (state, expected) in [
                (server(&used, 5, 60_000), ServerAge::Current),
                (server(&used, 5, 59_999), ServerAge::LacksCommits),
                (server(&after, 5, 50_000), ServerAge::Current),
                (server(&after, 5, 49_999), ServerAge::LacksCommits),
                (server(&hidden, 5, 50_000), ServerAge::Current),
                (server(&hidden, 5, 49_999), ServerAge::LacksCommits),
                (server(&elsewhere, 5, 49_999), ServerAge::LacksCommits),
                (server(&before, 5, 90_000), ServerAge::BehindTimeline(1, 2)),
                (server(&after, 4, 90_000), ServerAge::BehindRestore),
                (server(&before, 6, 0), ServerAge::Current),
            ] {
                assert_eq!(seen.state().compare(&state), expected, "{state:?}");
            }
        }
        assert!(!seen.record(&server(&used, 5, 60_000)));
        assert!(seen.record(&server(&before, 6, 1)));
        assert_eq!(
            seen.state().compare(&server(&before, 6, 1)),
            ServerAge::Current
        );
    }

    #[test]
    fn a_damaged_file_of_timelines_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(SeenTimelines::NAME);
        let seen = SeenTimelines::kept_in(directory.path());
        seen.record(&server(&on_timeline("7123456789", 12), 5, 50_000));
        seen.save().unwrap();
        let whole = fs::read(&path).unwrap();
        assert_eq!(read(&path).unwrap(), seen.state());
        for cut in 0..whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            assert_eq!(
                read(&path).unwrap_err().kind(),
                io::ErrorKind::InvalidData,
                "{cut}"
            );
            let seen = SeenTimelines::kept_in(directory.path());
            assert!(seen.state().has_timelines(), "{cut}");
        }
    }
}
