//! Which models there are, as far as the backend has listed them: an identifier that somebody made up reaches neither the
//! backend nor the memory.
//!
//! Not for: what the backend says of a model that it is asked about (`errand`).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::cache::Stored;
use crate::clock::Mono;
use crate::keys::ApplicationId;
use crate::routes::DocumentKey;

use super::fetch_priority::Sake;
use super::larder::{InVain, Larder, NoDocument};

/// At most one unlisted model in this time is asked about.
pub(crate) const PROBES_APART: Duration = Duration::from_secs(1);
/// A caller who was turned away keeps its turn for so long without asking again: it is asked to come back after one
/// interval, and a client needs some time for that.
const TURN_KEPT: Duration = Duration::from_secs(2);
/// The most callers that wait for their turn. Further ones have no turn of their own, and may take one that is free.
const MOST_WAITING: usize = 64;

/// The right to ask the backend about a model that is in no list: one caller in each interval, in the order in which they
/// were turned away, so that a caller who asks all the time does not take it from the others.
#[derive(Debug, Default)]
pub(super) struct Probes(Mutex<Turns>);

#[derive(Debug, Default)]
struct Turns {
    free_from: Mono,
    /// The caller who took it last.
    last: Option<ApplicationId>,
    /// Callers who were turned away, the first one first, each with the time it last asked.
    waiting: VecDeque<(ApplicationId, Mono)>,
}

impl Probes {
    /// Takes the right for a caller, if it is free and nobody waits longer for it.
    fn take(&self, caller: Option<ApplicationId>, now: Mono) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take(caller, now)
    }
}

impl Turns {
    fn take(&mut self, caller: Option<ApplicationId>, now: Mono) -> bool {
        self.waiting.retain(|(_, asked)| now.since(*asked) <= TURN_KEPT);
        let place = self.waiting.iter().position(|(waiting, _)| Some(*waiting) == caller);
        if self.free_from <= now && !self.is_behind_another(caller, place) {
            place.and_then(|place| self.waiting.remove(place));
            self.free_from = now.plus(PROBES_APART);
            self.last = caller;
            return true;
        }
        if let Some((_, asked)) = place.and_then(|place| self.waiting.get_mut(place)) {
            *asked = now;
        } else if self.waiting.len() < MOST_WAITING {
            self.waiting.extend(caller.map(|caller| (caller, now)));
        }
        false
    }

    /// Whether another caller waits longer. Who took it last comes after all others.
    fn is_behind_another(&self, caller: Option<ApplicationId>, place: Option<usize>) -> bool {
        let took_last = |who: Option<ApplicationId>| who.is_some() && who == self.last;
        let before_it = if took_last(caller) { None } else { place };
        let mut before = self.waiting.iter().take(before_it.unwrap_or(self.waiting.len()));
        before.any(|(other, _)| Some(*other) != caller && !took_last(Some(*other)))
    }
}

impl Larder {
    /// Why the backend is not asked about a document that was never seen, if it is not: its model is in no list.
    pub(super) fn turned_away(
        &self,
        key: &DocumentKey,
        caller: Option<ApplicationId>,
        now: Mono,
    ) -> Option<NoDocument> {
        let id = key.id.as_ref()?;
        let list = self.list();
        let is_listed = list.as_ref().and_then(|(_, list)| list.document.lists(id));
        let is_current = list.is_some_and(|(key, list)| !self.may_be_asked_about(&key, &list, now));
        match is_listed {
            Some(true) => None,
            Some(false) if is_current && self.upstream.lists_all_models() => Some(NoDocument::NoSuchModel),
            Some(false) | None => (!self.probes.take(caller, now)).then_some(NoDocument::Unlisted),
        }
    }

    /// Whether the model of a document is there, where the backend's answer leaves that open: by the list, or, if there is
    /// none, because the document was there before.
    pub(super) fn is_known(&self, key: &DocumentKey, was_there: bool) -> bool {
        let is_listed = |id| self.list().and_then(|(_, list)| list.document.lists(id));
        key.id.as_ref().and_then(is_listed).unwrap_or(was_there)
    }

    /// Waits for a list that is newer than the one at hand, if the backend may be asked for it. Whether it came; and why
    /// there is none, where there was none before: nothing can be said of a model without any list.
    pub(super) async fn lists_anew(self: &Arc<Self>, deadline: Mono, sake: Sake) -> Result<bool, InVain> {
        let now = self.clock.now().mono;
        match self.list() {
            Some((key, list)) if self.may_be_asked_about(&key, &list, now) => {
                Ok(self.wait_until(deadline, &key, sake).await.is_ok())
            }
            Some(_) => Ok(false),
            None => match self.wait_until(deadline, &DocumentKey::list_of_models(), sake).await {
                Ok(_) => Ok(true),
                Err(InVain::Without(NoDocument::NoSuchModel | NoDocument::Unlisted)) => Ok(false),
                Err(why) => Err(why),
            },
        }
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

    fn at(millis: u64) -> Mono {
        Mono::from_nanos(millis * 1_000_000)
    }

    fn caller() -> Option<ApplicationId> {
        ApplicationId::mint().ok()
    }

    #[test]
    fn one_question_a_second_goes_out_whoever_asks() {
        let (probes, one) = (Probes::default(), caller());
        let taken = [0, 0, 999, 1_000, 1_001, 5_000, 5_999].map(|millis| probes.take(one, at(millis)));
        assert_eq!(taken, [true, false, false, true, false, true, false]);
    }

    #[test]
    fn callers_take_turns_however_often_one_of_them_asks() {
        let (probes, greedy, patient) = (Probes::default(), caller(), caller());
        let (mut of_greedy, mut of_patient) = (0, 0);
        for millis in 0..20_000 {
            of_greedy += u32::from(probes.take(greedy, at(millis)));
            // It comes back a moment late each time.
            if millis % 1_100 == 300 {
                of_patient += u32::from(probes.take(patient, at(millis)));
            }
        }
        assert!(of_patient >= 6 && of_greedy >= 6, "{of_patient} {of_greedy}");
    }

    #[test]
    fn a_caller_who_does_not_come_back_loses_its_turn_and_the_memory_is_bounded() {
        let (probes, one) = (Probes::default(), caller());
        assert!(probes.take(one, at(0)));
        for _ in 0..10_000 {
            assert!(!probes.take(caller(), at(500)));
        }
        assert_eq!(probes.0.lock().unwrap().waiting.len(), MOST_WAITING);
        assert!(!probes.take(one, at(2_500)), "others are first");
        assert!(probes.take(one, at(2_501)), "they did not come back");
        assert!(probes.0.lock().unwrap().waiting.is_empty());
    }
}
