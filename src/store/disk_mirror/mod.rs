//! The shelf: where the last good documents are kept on disk, so that a restart while the backend is down still serves.
//!
//! A jar is two files: its content, written only when it changes, and a slip with the caller's label, which is cheap to
//! write anew. The content lies there before the slip that names it, and the one it replaces goes last: a crash at any
//! point leaves the old jar or the new one. What is there can be fetched again, so whatever is not sound is thrown away.
//!
//! Not for: what must not be lost (the store's own file, which no document may touch or slow), nor for knowing what a
//! document is. One process at a time: whoever opens it holds the data directory. Every call blocks on the disk.

mod directory;
mod names;
mod record;
mod record_header;
mod record_slots;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};

use directory::{MirrorDirectory, MirrorFileKind, discard, is_there, remove};
use names::{FileStem, Sha256Sum};
use record_header::{LONGEST, RecordHeader};
use record_slots::{RecordSlot, RecordSlots};

pub use record::{MirrorContents, MirrorError, MirrorRecord, RecordFlaw, RejectedRecord};

/// The shelf. One thing at a time is done with it; others wait.
#[derive(Debug)]
pub struct Mirror {
    directory: MirrorDirectory,
    state: Mutex<MirrorState>,
}

#[derive(Debug)]
struct MirrorState {
    places: RecordSlots,
    /// What was found when it was opened and not yet told.
    refused: Vec<RejectedRecord>,
}

impl Mirror {
    /// Opens the shelf in this directory, and makes it, for its owner alone, if there is none. Reads every slip, removes
    /// what a killed process left half done, and, if it has been given less room than it takes, what was put down
    /// longest ago. Files that are not of its making stay where they are.
    pub fn open(path: &Path, most_bytes: u64) -> Result<Self, MirrorError> {
        let failed = |verb, source| MirrorError::Disk { verb, path: path.to_owned(), source };
        let directory = MirrorDirectory::open(path).map_err(|error| failed("made", error))?;
        let files = directory.list().map_err(|error| failed("read", error))?;
        let shelf = Self {
            directory,
            state: Mutex::new(MirrorState { places: RecordSlots::new(most_bytes), refused: Vec::new() }),
        };
        let mut state = shelf.lock();
        shelf.take_stock(&mut state, &files);
        let gone = state.places.fit();
        shelf.throw_away(&gone);
        drop(state);
        Ok(shelf)
    }

    /// Everything on the shelf, newest first, each checked to the last byte. What is not sound is deleted and said in
    /// the log; what the disk does not give is only left out.
    pub fn all(&self) -> MirrorContents {
        let mut state = self.lock();
        let mut stock = MirrorContents { jars: Vec::new(), refused: std::mem::take(&mut state.refused) };
        for stem in state.places.newest_first() {
            match self.directory.jar(&stem) {
                Ok(jar) => stock.jars.push(jar),
                Err(flaw) => {
                    if flaw.is_lasting()
                        && let Some(place) = state.places.remove(&stem)
                    {
                        self.throw_away(&[(stem.clone(), place)]);
                    }
                    stock.refused.push(RejectedRecord { file: self.directory.slip(&stem), flaw });
                }
            }
        }
        if let Some(first) = stock.refused.first() {
            let (count, kept) = (stock.refused.len(), stock.jars.len());
            tracing::warn!(count, kept, %first, "documents on disk are damaged or cannot be read, and are passed over");
        }
        stock
    }

    /// Puts a jar on the shelf, in place of the one of that name. If it is full, what was put down longest ago
    /// goes. Where the content is what stands there already, only the slip is written.
    ///
    /// For a moment the old content stands beside the new one, above what the shelf may hold.
    pub fn put(&self, jar: &MirrorRecord) -> Result<(), MirrorError> {
        let (stem, content) = (FileStem::of(&jar.name), Sha256Sum::of(&jar.content));
        let mut state = self.lock();
        let length = jar.content.len() as u64;
        let slip = RecordHeader {
            turn: state.places.next_turn(),
            content,
            length,
            name: &jar.name,
            label: &jar.label,
        };
        let stands = state.places.get(&stem).is_some_and(|before| before.content == content)
            && is_there(&self.directory.content(&stem, content), length);
        self.put_down(&mut state.places, stem, &slip, (!stands).then_some(&jar.content))
    }

    /// Takes a jar off the shelf. One that is not there is gone already.
    pub fn remove(&self, name: &str) -> Result<(), MirrorError> {
        let stem = FileStem::of(name);
        let mut state = self.lock();
        let failed = |path: PathBuf| |source| MirrorError::Disk { verb: "removed", path, source };
        // The slip first: without it the content is nobody's, and the next start removes it.
        let slip = self.directory.slip(&stem);
        remove(&slip).map_err(failed(slip))?;
        let Some(place) = state.places.remove(&stem) else { return Ok(()) };
        let content = self.directory.content(&stem, place.content);
        remove(&content).map_err(failed(content))
    }

    /// How many jars there are, and how many bytes they take.
    pub fn size(&self) -> (u64, u64) {
        self.lock().places.size()
    }

    /// Writes a jar's files; no content if it stands there already.
    fn put_down(
        &self,
        places: &mut RecordSlots,
        stem: FileStem,
        slip: &RecordHeader<'_>,
        content: Option<&Bytes>,
    ) -> Result<(), MirrorError> {
        let written = slip.written();
        let place = slip.place(written.len() as u64);
        fits(slip.name, written.len() as u64, LONGEST)?;
        fits(slip.name, place.bytes, places.most_of_one())?;
        self.throw_away(&places.make_room(&stem, place.bytes));
        let before = places.get(&stem).filter(|before| before.content != place.content);
        let path = self.directory.content(&stem, place.content);
        if let Some(content) = content {
            self.write(&stem, &path, content)?;
        }
        if let Err(error) = self.write(&stem, &self.directory.slip(&stem), &written) {
            // What the slip that is there names has to stay.
            if before.is_some() || places.get(&stem).is_none() {
                discard(&path);
            }
            return Err(error);
        }
        if let Some(before) = before {
            discard(&self.directory.content(&stem, before.content));
        }
        places.put(stem, place);
        Ok(())
    }

    fn write(&self, stem: &FileStem, path: &Path, bytes: &[u8]) -> Result<(), MirrorError> {
        let failed = |source| MirrorError::Disk { verb: "written", path: path.to_owned(), source };
        self.directory.write(stem, path, bytes).map_err(failed)
    }

    /// Counts what is there and removes what is left of what was never finished.
    fn take_stock(&self, state: &mut MirrorState, files: &[(PathBuf, MirrorFileKind)]) {
        let (mut unread, mut foreign) = (HashSet::new(), Vec::new());
        for (path, kind) in files {
            match kind {
                MirrorFileKind::Slip(stem) => match self.directory.place(stem) {
                    Ok(place) => state.places.put(stem.clone(), place),
                    Err(flaw) => {
                        if flaw.is_lasting() {
                            discard(path);
                        } else {
                            unread.insert(stem);
                        }
                        state.refused.push(RejectedRecord { file: path.clone(), flaw });
                    }
                },
                MirrorFileKind::Half => discard(path),
                MirrorFileKind::Content(_) => {}
                MirrorFileKind::Foreign => foreign.push(path),
            }
        }
        for (path, kind) in files {
            let MirrorFileKind::Content(stem) = kind else { continue };
            let named = state.places.get(stem).map(|place| self.directory.content(stem, place.content));
            // What a slip says that cannot be read now may be read the next time.
            if named.as_ref() != Some(path) && !unread.contains(stem) {
                discard(path);
            }
        }
        if let Some(first) = foreign.first() {
            let (count, first) = (foreign.len(), first.display());
            tracing::warn!(count, %first, "files that are no stored documents lie among them, and are left");
        }
    }

    fn throw_away(&self, gone: &[(FileStem, RecordSlot)]) {
        for (stem, place) in gone {
            discard(&self.directory.slip(stem));
            discard(&self.directory.content(stem, place.content));
        }
    }

    fn lock(&self) -> MutexGuard<'_, MirrorState> {
        self.state.lock()
    }
}

fn fits(name: &str, bytes: u64, most: u64) -> Result<(), MirrorError> {
    if bytes <= most { Ok(()) } else { Err(MirrorError::TooLarge { name: name.into(), bytes, most }) }
}
