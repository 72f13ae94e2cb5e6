//! Request targets that a thread resolved recently, and their documents. An entry applies to the exact text of the
//! target and to the caller's rights.
//!
//! The size is limited: each target has one possible place among [`PLACES`]. The memo keeps no body in memory, and
//! returns no document that the cache has replaced, removed or evicted. `documents` checks expiry for every request.

use std::{
    cell::RefCell,
    hash::BuildHasher as _,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use foldhash::fast::FixedState;

use crate::{cache::StoredDocument, gateway::stages::parse::ParsedRequest};
use scoregate_base::{clock::Mono, evidence::DocumentMark, plans::Rights, routes::DocumentKey};

/// The number of entries per thread. It is enough for the popular targets, and needs less than 64 KiB.
const PLACES: usize = 128;
/// Longer targets are not kept. Most of them contain unknown parameters.
const MAX_LENGTH: usize = 128;
/// The cache is queried again after this many uses or this time, because it evicts documents that are not used.
const USES_PER_LOOKUP: u32 = 16;
const LOOKUP_INTERVAL: Duration = Duration::from_secs(1);

thread_local! {
    static PLACES_OF_THREAD: RefCell<[Option<ResolvedEntry>; PLACES]> =
        const { RefCell::new([const { None }; PLACES]) };
}

/// The memo of one gateway. After a reload, the new gateway has a different number and does not find the old entries.
#[derive(Debug)]
pub struct TargetMemo {
    generation: u64,
}

/// A resolved target.
struct ResolvedEntry {
    generation: u64,
    rights: Rights,
    target: Box<str>,
    key: DocumentKey,
    mark: DocumentMark,
    document: Weak<StoredDocument>,
    /// When the cache was last queried, and the number of uses since.
    looked_up: Mono,
    uses: u32,
}

/// The result of a lookup.
#[derive(Debug)]
pub struct MemoEntry {
    pub(crate) key: DocumentKey,
    pub(crate) mark: DocumentMark,
    /// The document, unless the cache has to be queried.
    pub(crate) document: Option<Arc<StoredDocument>>,
}

impl Default for TargetMemo {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            // Relaxed ordering is enough: the number only has to be unique.
            generation: NEXT.fetch_add(1, Ordering::Relaxed),
        }
    }
}

impl TargetMemo {
    /// Looks up a target.
    pub(crate) fn recall(&self, target: &str, rights: Rights, now: Mono) -> Option<MemoEntry> {
        PLACES_OF_THREAD.with_borrow_mut(|places| {
            let entry = places.get_mut(place(target, rights))?.as_mut()?;
            if !entry.is_for(self, target, rights) {
                return None;
            }
            entry.uses += 1;
            let asks =
                entry.uses >= USES_PER_LOOKUP || now.since(entry.looked_up) >= LOOKUP_INTERVAL;
            let document = if asks { None } else { entry.document.upgrade() };
            Some(MemoEntry {
                key: entry.key.clone(),
                mark: entry.mark,
                document: document.filter(|document| !document.is_withdrawn()),
            })
        })
    }

    /// Remembers the document that the cache has for a target. A target with unknown parameters is not kept.
    pub(crate) fn remember(
        &self,
        request: &ParsedRequest<'_>,
        rights: Rights,
        key: &DocumentKey,
        document: &Arc<StoredDocument>,
        now: Mono,
    ) {
        let target = request.target;
        PLACES_OF_THREAD.with_borrow_mut(|places| {
            let Some(place) = places.get_mut(place(target, rights)) else {
                return;
            };
            match place {
                Some(entry) if entry.is_for(self, target, rights) => {
                    entry.document = Arc::downgrade(document);
                    entry.looked_up = now;
                    entry.uses = 0;
                }
                _ if target.len() <= MAX_LENGTH
                    && has_only_known_parameters(request.query, key) =>
                {
                    *place = Some(ResolvedEntry {
                        generation: self.generation,
                        rights,
                        target: target.into(),
                        key: key.clone(),
                        mark: DocumentMark::of(key),
                        document: Arc::downgrade(document),
                        looked_up: now,
                        uses: 0,
                    });
                }
                _ => {}
            }
        });
    }
}

impl ResolvedEntry {
    fn is_for(&self, memo: &TargetMemo, target: &str, rights: Rights) -> bool {
        self.generation == memo.generation && self.rights == rights && *self.target == *target
    }
}

/// The position in the memo of a target for callers with these rights.
fn place(target: &str, rights: Rights) -> usize {
    let hash = FixedState::default().hash_one(target.as_bytes()) ^ rights.mark();
    usize::try_from(hash % PLACES as u64).unwrap_or_default()
}

fn has_only_known_parameters(query: Option<&str>, key: &DocumentKey) -> bool {
    let Some(query) = query else {
        return true;
    };
    let takes = key.route.endpoint().takes;
    query.split('&').all(|pair| {
        let name = pair.split_once('=').map_or(pair, |(name, _)| name);
        takes.iter().any(|param| param.name() == name)
    })
}

#[cfg(test)]
mod tests {
    use http::Request;
    use http::request::Parts;

    use super::*;
    use crate::cache::Cache;
    use crate::cache::sample::{key, stored};
    use crate::gateway::stages::parse::{ReceivedRequest, parse};

    const PAID: Rights = Rights::PAID;

    fn head(target: &str) -> Parts {
        Request::get(target)
            .header("host", "a")
            .body(())
            .unwrap()
            .into_parts()
            .0
    }

    fn parsed(head: &Parts) -> ParsedRequest<'_> {
        parse(ReceivedRequest::new(head, false)).unwrap()
    }

    fn remember(
        memo: &TargetMemo,
        target: &str,
        key: &DocumentKey,
        document: &Arc<StoredDocument>,
    ) {
        memo.remember(&parsed(&head(target)), PAID, key, document, Mono::default());
    }

    fn recalled(memo: &TargetMemo, target: &str) -> Option<Arc<StoredDocument>> {
        memo.recall(target, PAID, Mono::default())
            .and_then(|entry| entry.document)
    }

    #[test]
    fn a_target_is_recalled_by_its_exact_text_with_the_same_rights_on_the_same_gateway() {
        let memo = TargetMemo::default();
        let other = TargetMemo::default();
        let key = key(1);
        let target = "/api/v1/models/model-1";
        let document = stored(&key);
        remember(&memo, target, &key, &document);
        let known = memo.recall(target, PAID, Mono::default()).unwrap();
        assert!(
            known.key == key
                && known.mark == DocumentMark::of(&key)
                && Arc::ptr_eq(&known.document.unwrap(), &document)
        );
        assert!(memo.recall(target, Rights::FREE, Mono::default()).is_none());
        assert!(
            memo.recall("/api/v1/models/model%2d1", PAID, Mono::default())
                .is_none()
        );
        assert!(other.recall(target, PAID, Mono::default()).is_none());
    }

    #[test]
    fn long_targets_and_those_with_unknown_parameters_are_not_kept() {
        let memo = TargetMemo::default();
        let list = DocumentKey::list_of_models();
        let document = stored(&key(1));
        let long = format!("/api/v1/models?{}", ["period=24h"; 11].join("&"));
        for (target, is_kept) in [
            ("/api/v1/models", true),
            ("/api/v1/models?period=24h&sortBy=price", true),
            ("/api/v1/models?period=24h&_=7", false),
            ("/api/v1/models?", false),
            ("/api/v1/models?%70eriod=24h", false),
            (&long, false),
        ] {
            remember(&memo, target, &list, &document);
            assert_eq!(
                memo.recall(target, PAID, Mono::default()).is_some(),
                is_kept,
                "{target}"
            );
        }
    }

    #[test]
    fn a_document_that_the_cache_replaced_or_removed_is_not_recalled() {
        let memo = TargetMemo::default();
        let cache = Cache::new(1 << 20, |_| {});
        let key = key(1);
        let target = "/api/v1/models/model-1";
        for change in ["put", "replace", "remove", "remove_all_if"] {
            let document = stored(&key);
            cache.put(key.clone(), Arc::clone(&document));
            remember(&memo, target, &key, &document);
            assert!(recalled(&memo, target).is_some());
            match change {
                "put" => cache.put(key.clone(), stored(&key)),
                "replace" => cache.replace(&key, &document, stored(&key)),
                "remove" => cache.remove(&key),
                _ => assert_eq!(cache.remove_all_if(|_, _| true).len(), 1),
            }
            assert!(
                recalled(&memo, target).is_none(),
                "{change}: it is in use elsewhere, but no longer stored"
            );
        }
    }

    #[test]
    fn the_memo_keeps_no_document_in_memory() {
        let memo = TargetMemo::default();
        let key = key(1);
        let document = stored(&key);
        remember(&memo, "/api/v1/models/model-1", &key, &document);
        assert_eq!(Arc::strong_count(&document), 1);
        drop(document);
        assert!(recalled(&memo, "/api/v1/models/model-1").is_none());
    }

    #[test]
    fn the_cache_is_asked_after_a_second_or_after_some_uses() {
        let memo = TargetMemo::default();
        let key = key(1);
        let target = "/api/v1/models/model-1";
        let document = stored(&key);
        let is_remembered = |now| memo.recall(target, PAID, now).unwrap().document.is_some();
        let later = Mono::default().plus(LOOKUP_INTERVAL);
        remember(&memo, target, &key, &document);
        assert!(is_remembered(Mono::default()) && !is_remembered(later));
        remember(&memo, target, &key, &document);
        let uses = (0..USES_PER_LOOKUP)
            .filter(|_| is_remembered(Mono::default()))
            .count();
        assert_eq!(uses, 15);
    }

    #[test]
    fn a_popular_document_survives_a_sweep_of_the_catalogue() {
        let memo = TargetMemo::default();
        let wanted = key(1_000);
        let target = "/api/v1/models/model-1000";
        let size = stored(&key(1_001)).document.bytes() as u64;
        let cache = Cache::new(20 * size, |_| {});
        cache.put(wanted.clone(), stored(&wanted));
        let mut lookups = 0;
        for number in 1_001..2_000 {
            if recalled(&memo, target).is_none() {
                lookups += 1;
                let found = cache
                    .get(&wanted)
                    .unwrap_or_else(|| panic!("it was evicted for {number}"));
                remember(&memo, target, &wanted, &found);
            }
            cache.put(key(number), stored(&key(number)));
            cache.evict_excess();
        }
        assert!((999 / 16..999 / 12).contains(&lookups), "{lookups}");
    }
}
