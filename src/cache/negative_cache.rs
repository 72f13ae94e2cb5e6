//! Remembers for a while that a document cannot be fetched, because the model does not exist or the last fetch failed.
//! The size is limited, so that a flood of invented names costs no memory.

use moka::sync::Cache as Moka;

use scoregate_base::{clock::Mono, routes::DocumentKey};

/// Maximum number of entries. If there are more, the least used entries are evicted.
const MAX_ENTRIES: u64 = 10_000;

/// Documents that cannot be fetched, with the reason and the expiry of each entry.
#[derive(Debug)]
pub struct NegativeCache<W: Clone + Send + Sync + 'static> {
    known: Moka<DocumentKey, (Mono, W)>,
}

impl<W: Clone + Send + Sync + 'static> Default for NegativeCache<W> {
    fn default() -> Self {
        Self {
            known: Moka::new(MAX_ENTRIES),
        }
    }
}

impl<W: Clone + Send + Sync + 'static> NegativeCache<W> {
    /// The reason why a document cannot be fetched, if it is known.
    pub fn get(&self, key: &DocumentKey, now: Mono) -> Option<W> {
        let (until, why) = self.known.get(key)?;
        (now < until).then_some(why)
    }

    /// Records that a document cannot be fetched.
    pub fn insert(&self, key: DocumentKey, why: W, until: Mono) {
        self.known.insert(key, (until, why));
    }

    /// Removes the entries of these documents.
    pub fn remove(&self, fits: impl Fn(&DocumentKey) -> bool) {
        for (key, _) in &self.known {
            if fits(&key) {
                self.known.invalidate(key.as_ref());
            }
        }
    }

    /// Removes expired entries.
    pub fn sweep(&self, now: Mono) {
        for (key, (until, _)) in &self.known {
            if until <= now {
                self.known.invalidate(key.as_ref());
            }
        }
        self.known.run_pending_tasks();
    }
}
