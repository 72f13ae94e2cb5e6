//! Limits requests for unlisted models to one per second. Callers take turns. Invented model ids therefore cost the
//! backend very little, and no caller can use up the turns of others.

use std::{collections::VecDeque, time::Duration};

use parking_lot::Mutex;

use scoregate_base::{clock::Mono, keys::ApplicationId};

/// Interval between two fetches of unlisted models.
pub const PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// Time for which a refused caller keeps its turn without another request. `Retry-After` is one interval, and clients
/// may be a little late.
const TURN_TTL: Duration = Duration::from_secs(2);
/// Maximum number of callers that wait for a turn. Further callers have no place in the queue, but may take a free
/// turn.
// The search for a caller visits all waiting callers, so their number is limited.
const MAX_WAITING: usize = 64;

/// Assigns turns to callers in the order in which they were refused.
#[derive(Debug, Default)]
pub struct ProbeTurns(Mutex<CallerTurns>);

#[derive(Debug, Default)]
struct CallerTurns {
    free_from: Mono,
    /// The caller that took the last turn.
    last: Option<ApplicationId>,
    /// Refused callers, oldest first, each with the time of its last request.
    waiting: VecDeque<(ApplicationId, Mono)>,
}

impl ProbeTurns {
    /// Takes the turn for a caller if the turn is free and no other caller has waited longer.
    pub fn take(&self, caller: Option<ApplicationId>, now: Mono) -> bool {
        self.0.lock().take(caller, now)
    }
}

impl CallerTurns {
    fn take(&mut self, caller: Option<ApplicationId>, now: Mono) -> bool {
        self.waiting
            .retain(|(_, requested_at)| now.since(*requested_at) <= TURN_TTL);
        let index = self
            .waiting
            .iter()
            .position(|(waiting, _)| Some(*waiting) == caller);
        if self.free_from <= now && !self.is_behind_another(caller, index) {
            index.and_then(|index| self.waiting.remove(index));
            self.free_from = now.plus(PROBE_INTERVAL);
            self.last = caller;
            return true;
        }
        if let Some((_, requested_at)) = index.and_then(|index| self.waiting.get_mut(index)) {
            *requested_at = now;
        } else if self.waiting.len() < MAX_WAITING {
            self.waiting.extend(caller.map(|caller| (caller, now)));
        }
        false
    }

    /// Whether another caller has waited longer. The caller that took the last turn comes after all others.
    fn is_behind_another(&self, caller: Option<ApplicationId>, index: Option<usize>) -> bool {
        let ahead = if self.had_last_turn(caller) {
            None
        } else {
            index
        };
        let mut before = self
            .waiting
            .iter()
            .take(ahead.unwrap_or(self.waiting.len()));
        before.any(|(other, _)| Some(*other) != caller && !self.had_last_turn(Some(*other)))
    }

    fn had_last_turn(&self, caller: Option<ApplicationId>) -> bool {
        caller.is_some() && caller == self.last
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
    fn one_request_per_second_is_sent_for_any_number_of_callers() {
        let probes = ProbeTurns::default();
        let one = caller();
        let taken =
            [0, 0, 999, 1_000, 1_001, 5_000, 5_999].map(|millis| probes.take(one, at(millis)));
        assert_eq!(taken, [true, false, false, true, false, true, false]);
    }

    #[test]
    fn callers_take_turns_regardless_of_their_request_counts() {
        let probes = ProbeTurns::default();
        let greedy = caller();
        let patient = caller();
        let mut of_greedy = 0;
        let mut of_patient = 0;
        for millis in 0..20_000 {
            of_greedy += u32::from(probes.take(greedy, at(millis)));
            // The patient caller returns a little late every time.
            if millis % 1_100 == 300 {
                of_patient += u32::from(probes.take(patient, at(millis)));
            }
        }
        assert!(
            of_patient >= 6 && of_greedy >= 6,
            "{of_patient} {of_greedy}"
        );
    }

    #[test]
    fn absent_caller_loses_its_turn_and_memory_is_bounded() {
        let probes = ProbeTurns::default();
        let one = caller();
        assert!(probes.take(one, at(0)));
        for _ in 0..10_000 {
            assert!(!probes.take(caller(), at(500)));
        }
        assert_eq!(probes.0.lock().waiting.len(), MAX_WAITING);
        assert!(!probes.take(one, at(2_500)), "others go first");
        assert!(probes.take(one, at(2_501)), "other turns have expired");
        assert!(probes.0.lock().waiting.is_empty());
    }
}
