//! The mirror, and its operations.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use parking_lot::Mutex;

use crate::durable_file::remove;

use super::directory::{MirrorDirectory, MirrorFileKind, discard, is_file_of_length};
use super::names::{FileStem, sum_of};
use super::record::{MirrorContents, MirrorError, MirrorRecord, RejectedRecord};
use super::record_header::{MAX_HEADER_BYTES, RecordHeader};
use super::record_slots::{RecordSlot, RecordSlots};

/// The disk mirror. Operations are serialized.
#[derive(Debug)]
pub struct Mirror {
    directory: MirrorDirectory,
    state: Mutex<MirrorState>,
}

#[derive(Debug)]
struct MirrorState {
    slots: RecordSlots,
    /// Damaged records found when it was opened and not reported yet.
    refused: Vec<RejectedRecord>,
}

impl Mirror {
    /// Opens the mirror in this directory, which is created if necessary, accessible to its owner only. Reads all
    /// headers, removes files left by a killed process, and, if the capacity was reduced, the oldest records. Foreign
    /// files are left alone.
    pub fn open(path: &Path, max_bytes: u64) -> Result<Self, MirrorError> {
        let failed = |verb, source| MirrorError::Disk {
            verb,
            path: path.to_owned(),
            source,
        };
        let directory = MirrorDirectory::open(path).map_err(|error| failed("created", error))?;
        let files = directory.list().map_err(|error| failed("read", error))?;
        let mirror = Self {
            directory,
            state: Mutex::new(MirrorState {
                slots: RecordSlots::new(max_bytes),
                refused: Vec::new(),
            }),
        };
        let mut state = mirror.state.lock();
        mirror.scan(&mut state, &files);
        let evicted = state.slots.fit();
        mirror.discard_record(&evicted);
        drop(state);
        Ok(mirror)
    }

    /// All records, newest first, checked completely. Damaged ones are deleted and logged; unreadable ones are only
    /// left out.
    pub fn all(&self) -> MirrorContents {
        let mut state = self.state.lock();
        let mut contents = MirrorContents {
            records: Vec::new(),
            refused: std::mem::take(&mut state.refused),
        };
        for stem in state.slots.newest_first() {
            match self.directory.record(&stem) {
                Ok(record) => contents.records.push(record),
                Err(flaw) => {
                    if flaw.is_permanent()
                        && let Some(slot) = state.slots.remove(&stem)
                    {
                        self.discard_record(&[(stem.clone(), slot)]);
                    }
                    contents.refused.push(RejectedRecord {
                        file: self.directory.header_path(&stem),
                        flaw,
                    });
                }
            }
        }
        if let Some(first) = contents.refused.first() {
            let count = contents.refused.len();
            let remaining = contents.records.len();
            tracing::warn!(count, remaining, %first, "skipped damaged or unreadable documents on disk");
        }
        contents
    }

    /// Writes a record, replacing the one with its name. If the mirror is full, the oldest records are removed. If
    /// the content is unchanged, only the header is written.
    ///
    /// For a moment the old content exists beside the new one, above the capacity.
    pub fn put(&self, record: &MirrorRecord) -> Result<(), MirrorError> {
        let stem = FileStem::of(&record.name);
        let content = sum_of(&record.content);
        let mut state = self.state.lock();
        let length = record.content.len() as u64;
        let header = RecordHeader {
            turn: state.slots.next_turn(),
            content,
            length,
            name: &record.name,
            label: &record.label,
        };
        let is_unchanged = state
            .slots
            .get(&stem)
            .is_some_and(|before| before.content == content)
            && is_file_of_length(&self.directory.content(&stem, content), length);
        self.write_record(
            &mut state.slots,
            stem,
            &header,
            (!is_unchanged).then_some(&record.content),
        )
    }

    /// Removes a record, if it exists.
    pub fn remove(&self, name: &str) -> Result<(), MirrorError> {
        let stem = FileStem::of(name);
        let mut state = self.state.lock();
        let failed = |path: PathBuf| {
            |source| MirrorError::Disk {
                verb: "removed",
                path,
                source,
            }
        };
        // The header first: without it the content belongs to no record, and the next start removes it.
        let header_path = self.directory.header_path(&stem);
        remove(&header_path).map_err(failed(header_path))?;
        let Some(slot) = state.slots.remove(&stem) else {
            return Ok(());
        };
        let content = self.directory.content(&stem, slot.content);
        remove(&content).map_err(failed(content))
    }

    /// Number of records, and their bytes.
    pub fn size(&self) -> (u64, u64) {
        self.state.lock().slots.size()
    }

    /// Writes a record's files; the content only if it changed.
    fn write_record(
        &self,
        slots: &mut RecordSlots,
        stem: FileStem,
        header: &RecordHeader<'_>,
        content: Option<&Bytes>,
    ) -> Result<(), MirrorError> {
        let written = header.written();
        let slot = header.slot(written.len() as u64);
        fits(header.name, written.len() as u64, MAX_HEADER_BYTES)?;
        fits(header.name, slot.bytes, slots.max_record())?;
        self.discard_record(&slots.make_space(&stem, slot.bytes));
        let before = slots
            .get(&stem)
            .filter(|before| before.content != slot.content);
        let path = self.directory.content(&stem, slot.content);
        if let Some(content) = content {
            self.write(&stem, &path, content)?;
        }
        if let Err(error) = self.write(&stem, &self.directory.header_path(&stem), &written) {
            // The content named by the existing header must stay.
            if before.is_some() || slots.get(&stem).is_none() {
                discard(&path);
            }
            return Err(error);
        }
        if let Some(before) = before {
            discard(&self.directory.content(&stem, before.content));
        }
        slots.put(stem, slot);
        Ok(())
    }

    fn write(&self, stem: &FileStem, path: &Path, bytes: &[u8]) -> Result<(), MirrorError> {
        let failed = |source| MirrorError::Disk {
            verb: "written",
            path: path.to_owned(),
            source,
        };
        self.directory.write(stem, path, bytes).map_err(failed)
    }

    /// Counts the existing records and removes unfinished files.
    fn scan(&self, state: &mut MirrorState, files: &[(PathBuf, MirrorFileKind)]) {
        let mut unreadable = HashSet::new();
        let mut foreign = Vec::new();
        for (path, kind) in files {
            match kind {
                MirrorFileKind::Header(stem) => match self.directory.slot(stem) {
                    Ok(slot) => state.slots.put(stem.clone(), slot),
                    Err(flaw) => {
                        if flaw.is_permanent() {
                            discard(path);
                        } else {
                            unreadable.insert(stem);
                        }
                        state.refused.push(RejectedRecord {
                            file: path.clone(),
                            flaw,
                        });
                    }
                },
                MirrorFileKind::Unfinished => discard(path),
                MirrorFileKind::Content(_) => {}
                MirrorFileKind::Foreign => foreign.push(path),
            }
        }
        for (path, kind) in files {
            let MirrorFileKind::Content(stem) = kind else {
                continue;
            };
            let named = state
                .slots
                .get(stem)
                .map(|slot| self.directory.content(stem, slot.content));
            // A header that cannot be read now may be readable later.
            if named.as_ref() != Some(path) && !unreadable.contains(stem) {
                discard(path);
            }
        }
        if let Some(first) = foreign.first() {
            let count = foreign.len();
            let first = first.display();
            tracing::warn!(count, %first, "ignored foreign files in the directory of documents");
        }
    }

    fn discard_record(&self, evicted: &[(FileStem, RecordSlot)]) {
        for (stem, slot) in evicted {
            discard(&self.directory.header_path(stem));
            discard(&self.directory.content(stem, slot.content));
        }
    }
}

fn fits(name: &str, bytes: u64, most: u64) -> Result<(), MirrorError> {
    if bytes <= most {
        Ok(())
    } else {
        Err(MirrorError::TooLarge {
            name: name.into(),
            bytes,
            most,
        })
    }
}
