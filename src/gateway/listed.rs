//! Which models there are, as far as the backend has listed them: an identifier that somebody made up reaches neither the
//! backend nor the memory.
//!
//! Not for: what the backend says of a model that it is asked about (`errand`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::cache::Stored;
use crate::clock::Mono;
use crate::routes::DocumentKey;

use super::larder::{Larder, NoDocument};
use super::sake::Sake;

/// So far apart are questions about models that are in no list.
pub(super) const PROBES_APART: Duration = Duration::from_secs(1);

/// Leave to ask about a model that is in no list.
#[derive(Debug, Default)]
pub(super) struct Probes {
    /// In nanoseconds of running time.
    free_from: AtomicU64,
}

impl Probes {
    /// Takes it, if nobody did a moment ago.
    fn take(&self, now: Mono) -> bool {
        let next = |free_from| (free_from <= now.nanos()).then(|| now.plus(PROBES_APART).nanos());
        self.free_from.fetch_update(Ordering::AcqRel, Ordering::Acquire, next).is_ok()
    }
}

impl Larder {
    /// Why the backend is not asked about a document that was never seen, if it is not: its model is in no list.
    pub(super) fn turned_away(&self, key: &DocumentKey, now: Mono) -> Option<NoDocument> {
        let id = key.id.as_ref()?;
        let list = self.list();
        let is_listed = list.as_ref().and_then(|(_, list)| list.document.lists(id));
        let is_current = list.is_some_and(|(key, list)| !self.may_be_asked_about(&key, &list, now));
        match is_listed {
            Some(true) => None,
            Some(false) if is_current && self.upstream.lists_all_models() => Some(NoDocument::NoSuchModel),
            Some(false) | None => (!self.probes.take(now)).then_some(NoDocument::Unlisted),
        }
    }

    /// Whether the model of a document is there, where the backend's answer leaves that open: by the list, or, if there is
    /// none, because the document was there before.
    pub(super) fn is_known(&self, key: &DocumentKey, was_there: bool) -> bool {
        let is_listed = |id| self.list().and_then(|(_, list)| list.document.lists(id));
        key.id.as_ref().and_then(is_listed).unwrap_or(was_there)
    }

    /// Waits for a list that is newer than the one at hand, if the backend may be asked for it. Whether it came.
    pub(super) async fn lists_anew(self: &Arc<Self>, deadline: Mono, sake: Sake) -> bool {
        let now = self.clock.now().mono;
        let wanted = match self.list() {
            Some((key, list)) if self.may_be_asked_about(&key, &list, now) => key,
            Some(_) => return false,
            None => DocumentKey::list_of_models(),
        };
        self.wait_until(deadline, &wanted, sake).await.is_ok()
    }

    /// The list of models that was confirmed last. Whatever it is sorted by, it names the same models.
    fn list(&self) -> Option<(DocumentKey, Arc<Stored>)> {
        let lists = DocumentKey::lists_of_models().filter_map(|key| Some((self.cache.get(&key)?, key)));
        let (list, key) = lists.max_by_key(|(list, _)| list.confirmed)?;
        // A list that is needed is worth being kept current.
        list.used();
        Some((key, list))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_question_a_second_goes_out_whoever_asks() {
        let (probes, at) = (Probes::default(), |millis: u64| Mono::from_nanos(millis * 1_000_000));
        let taken = [0, 0, 999, 1_000, 1_001, 5_000, 5_999].map(|millis| probes.take(at(millis)));
        assert_eq!(taken, [true, false, false, true, false, true, false]);
    }
}
