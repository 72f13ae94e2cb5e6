//! The state of each database that was ever used from a data directory. It shows whether a database is older than one
//! used before.
//!
//! A cluster's timeline number increases with every promotion of a standby. A server on a lower timeline was the primary before a
//! failover and lacks later writes. Each data set has the times of its last restore and its last gateway report. A database that
//! lacks that report was restored from a backup.

use std::{collections::BTreeMap, io, path::Path, sync::Arc};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio_postgres::Row;

use crate::{LocalFile, statements::ServerHistory};

/// The kinds of rows in the file.
const TIMELINE: &str = "timeline";
const DATA_SET: &str = "data set";

/// Maximum age, in milliseconds, of the commits that a failover without a synchronous standby may lose. A failover that
/// loses more counts as a restore.
const FAILOVER_LOSS: u64 = 10_000;

/// The states of the servers and data sets, which are kept in a file.
#[derive(Debug, Default)]
pub struct SeenTimelines {
    /// The file that stores the states. `None` for a process that only reads them.
    file: Option<Arc<LocalFile>>,
    state: Mutex<SeenState>,
}

/// The states of the servers and data sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeenState {
    /// The highest timeline of each cluster, by system identifier.
    timelines: BTreeMap<String, u32>,
    data_sets: BTreeMap<String, RestoreMarks>,
}

/// Times of a data set, in milliseconds. They only increase, unless commits are lost.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
pub struct RestoreMarks {
    /// Time of the last `store restore`.
    pub(crate) restored_at: u64,
    /// Time of the last report of a gateway.
    pub(crate) seen_at: u64,
}

/// The state that a server reports.
#[derive(Clone, Copy, Debug)]
pub struct ServerState<'s> {
    pub(crate) data_set: &'s str,
    pub(crate) marks: RestoreMarks,
    pub(crate) history: &'s ServerHistory,
}

/// The state of a server compared with the states seen before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerAge {
    Current,
    /// The server's timeline, and a higher one that was used before.
    BehindTimeline(u32, u32),
    /// Another server with the same data set has been restored since then.
    BehindRestore,
    /// The server lacks commits that no failover may lose.
    LacksCommits,
}

impl SeenTimelines {
    /// Reads the states of a data directory, and saves new states there.
    pub fn kept_in(file: Arc<LocalFile>) -> io::Result<Self> {
        let state = Mutex::new(read(&file)?);
        let file = Some(file);
        Ok(Self { file, state })
    }

    /// Reads the states of a data directory. New states are kept only in memory.
    pub fn read_in(directory: &Path) -> io::Result<Self> {
        let file = LocalFile::open_existing(directory)?;
        let state = file.as_ref().map(read).transpose()?.unwrap_or_default();
        Ok(Self {
            file: None,
            state: Mutex::new(state),
        })
    }

    /// The file, for messages.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_ref().map(|file| file.path())
    }

    /// The servers and data sets that are known so far.
    pub(crate) fn state(&self) -> SeenState {
        self.state.lock().clone()
    }

    /// Remembers a server that is used now. Returns whether there is a change to save.
    pub(crate) fn record(&self, server: &ServerState<'_>) -> bool {
        let mut state = self.state.lock();
        let before = state.clone();
        if state.is_older_than(server) {
            // The stored timelines belong to servers that were replaced.
            state.timelines.clear();
        }
        if let ServerHistory::Disclosed { system, timeline } = server.history {
            state.timelines.insert(system.clone(), *timeline);
        }
        let data_set = server.data_set.to_owned();
        state.data_sets.insert(data_set, server.marks);
        *state != before
    }

    /// Remembers a report of this gateway. Returns whether there is a change to save.
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

    /// Saves the states durably. Blocks on the disk.
    pub(crate) fn save(&self) -> io::Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        file.change(|change| {
            // Read while the file is locked, so that an older state never replaces a newer one.
            let state = self.state();
            change.clear(TIMELINE)?;
            change.clear(DATA_SET)?;
            for (system, timeline) in &state.timelines {
                change.put("promises", TIMELINE, system, timeline)?;
            }
            for (data_set, marks) in &state.data_sets {
                change.put("promises", DATA_SET, data_set, marks)?;
            }
            Ok(())
        })
    }
}

impl SeenState {
    /// Whether a timeline was ever checked from this data directory.
    pub(crate) fn has_timelines(&self) -> bool {
        !self.timelines.is_empty()
    }

    /// Whether the data set has been restored since it was last seen.
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
}

impl RestoreMarks {
    pub(crate) fn of(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            restored_at: row.try_get::<_, i64>("restored_at")?.cast_unsigned(),
            seen_at: row.try_get::<_, i64>("seen_at")?.cast_unsigned(),
        })
    }
}

fn read(file: &LocalFile) -> io::Result<SeenState> {
    let mut state = SeenState::default();
    for row in file.read("promises", TIMELINE)? {
        state.timelines.insert(row.key, row.value);
    }
    for row in file.read("promises", DATA_SET)? {
        state.data_sets.insert(row.key, row.value);
    }
    Ok(state)
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
        let kept = || SeenTimelines::kept_in(Arc::new(LocalFile::open(directory.path()).unwrap()));
        let seen = kept().unwrap();
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
        for seen in [kept(), SeenTimelines::read_in(directory.path())] {
            let seen = seen.unwrap();
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
}
