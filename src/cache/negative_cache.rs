//! What is known not to be had, for a while: models that do not exist, documents whose fetch has just failed.
//!
//! Bounded, so that a flood of made-up names costs no memory. Not for: what is to be done about it.

use moka::sync::Cache as Moka;

use crate::clock::Mono;
use crate::routes::DocumentKey;

/// How many are remembered. A flood pushes out what is asked for least.
const MOST: u64 = 10_000;

/// Documents that cannot be had, each with the reason and until when that holds.
#[derive(Debug)]
pub struct NegativeCache<W: Clone + Send + Sync + 'static> {
    known: Moka<DocumentKey, (Mono, W)>,
}

impl<W: Clone + Send + Sync + 'static> Default for NegativeCache<W> {
    fn default() -> Self {
        Self { known: Moka::new(MOST) }
    }
}

impl<W: Clone + Send + Sync + 'static> NegativeCache<W> {
    /// Why a document cannot be had, if that is known.
    pub fn get(&self, key: &DocumentKey, now: Mono) -> Option<W> {
        let (until, why) = self.known.get(key)?;
        (now < until).then_some(why)
    }

    /// Remembers that a document cannot be had.
    pub fn remember(&self, key: DocumentKey, why: W, until: Mono) {
        self.known.insert(key, (until, why));
    }

    /// Forgets that these documents could not be had.
    pub fn forget(&self, fits: impl Fn(&DocumentKey) -> bool) {
        for (key, _) in &self.known {
            if fits(&key) {
                self.known.invalidate(key.as_ref());
            }
        }
    }

    /// Forgets what holds no longer by `now`.
    pub fn sweep(&self, now: Mono) {
        for (key, (until, _)) in &self.known {
            if until <= now {
                self.known.invalidate(key.as_ref());
            }
        }
        self.known.run_pending_tasks();
    }
}
