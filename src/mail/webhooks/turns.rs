//! Selects the receivers that may get messages now. The number of concurrent receivers is limited in total, per owner and per
//! host, and so is the number of slow receivers. A receiver that was slow or failed gets no messages for a while. The code is
//! pure.

use std::{collections::HashMap, time::Duration};

use crate::mail::retry::delay;
use scoregate_base::clock::Mono;

/// Maximum number of receivers served concurrently. A connection with TLS takes about 50 KB.
pub const AT_ONCE: usize = 256;
/// Maximum number of one owner's receivers that are served concurrently. It equals the maximum number of webhooks per owner, but
/// removed and re-added webhooks also count.
const OF_OWNER: usize = 2;
/// Maximum number of receivers served concurrently on one host. Also the maximum number of concurrently served
/// receivers that were slow or failed before. The other half of [`AT_ONCE`] remains for all other receivers.
const HALF: usize = AT_ONCE / 2;
/// If more slow receivers than this are stored, the entries whose pause has ended are removed.
const REMEMBERED: usize = 4_096;
/// Response time from which a receiver counts as slow.
const SLOW: Duration = Duration::from_secs(5);
/// Maximum pause. A receiver that has recovered gets its next message within this time.
const MAX_REST: Duration = Duration::from_mins(5);

/// The receivers that are being served and the receivers that are paused.
#[derive(Debug, Default)]
pub struct ReceiverTurns {
    served: HashMap<String, ServedReceiver>,
    slow: HashMap<String, SlowReceiver>,
}

#[derive(Debug)]
struct ServedReceiver {
    owner: String,
    host: String,
    is_slow: bool,
}

/// A receiver that was slow or failed at the last attempt.
#[derive(Debug)]
struct SlowReceiver {
    times: u32,
    rests_until: Mono,
}

/// The speed of a receiver's last response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiverPace {
    Fast,
    /// The response was slow, or there was none.
    Slow,
}

impl ReceiverPace {
    /// The pace for a response time; `None` if the host did not respond.
    pub fn of(answered: Option<Duration>) -> Self {
        match answered {
            Some(took) if took < SLOW => Self::Fast,
            Some(_) | None => Self::Slow,
        }
    }
}

impl ReceiverTurns {
    /// The number of additional receivers that can be served.
    pub fn room(&self) -> usize {
        AT_ONCE.saturating_sub(self.served.len())
    }

    /// The receivers to which no further message may be sent now.
    pub fn waiting(&self, now: Mono) -> Vec<String> {
        let is_full = self.count(|served| served.is_slow) >= HALF;
        let rest = self
            .slow
            .iter()
            .filter(|(_, slow)| is_full || slow.rests_until > now)
            .map(|(webhook, _)| webhook);
        self.served.keys().chain(rest).cloned().collect()
    }

    /// Starts to serve a receiver; `attempt` is the attempt number of its message. Returns false if the
    /// receiver has to wait.
    pub fn begin(&mut self, webhook: &str, owner: &str, host: &str, attempt: u32) -> bool {
        let is_slow = attempt > 1 || self.slow.contains_key(webhook);
        let may = self.count(|served| served.owner == owner) < OF_OWNER
            && self.count(|served| served.host == host) < HALF
            && (!is_slow || self.count(|served| served.is_slow) < HALF);
        if may {
            let served = ServedReceiver {
                owner: owner.to_owned(),
                host: host.to_owned(),
                is_slow,
            };
            self.served.insert(webhook.to_owned(), served);
        }
        may
    }

    /// Records that the current deliveries to a receiver have ended. If they were slow or failed, a pause follows, which is twice as long each time.
    pub fn end(&mut self, webhook: &str, pace: ReceiverPace, now: Mono) {
        self.served.remove(webhook);
        let before = self.slow.remove(webhook);
        if pace == ReceiverPace::Fast {
            return;
        }
        if self.slow.len() >= REMEMBERED {
            self.slow.retain(|_, slow| slow.rests_until > now);
        }
        let times = before.map_or(0, |slow| slow.times).saturating_add(1);
        let rests_until = now.plus(delay(times, MAX_REST));
        let slow = SlowReceiver { times, rests_until };
        self.slow.insert(webhook.to_owned(), slow);
    }

    fn count(&self, is_counted: impl Fn(&ServedReceiver) -> bool) -> usize {
        self.served
            .values()
            .filter(|served| is_counted(served))
            .count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Mono = Mono::from_nanos(0);

    fn after(seconds: u64) -> Mono {
        START.plus(Duration::from_secs(seconds))
    }

    /// Begins to serve receivers, each with a different owner and host. Returns the number of receivers that did not
    /// have to wait.
    fn begun(turns: &mut ReceiverTurns, receivers: std::ops::Range<usize>, attempt: u32) -> usize {
        let begins = |number: &usize| {
            let name = format!("{attempt}.{number}");
            turns.begin(&name, &name, &name, attempt)
        };
        receivers.filter(begins).count()
    }

    #[test]
    fn an_owner_and_a_host_have_shares_and_half_is_for_receivers_that_were_not_slow() {
        let mut turns = ReceiverTurns::default();
        let of_owner = ["a", "b", "c"].map(|webhook| turns.begin(webhook, "ann", webhook, 1));
        assert_eq!(of_owner, [true, true, false]);
        let at_host = (0..200).filter(|number| {
            let name = format!("hook_{number}");
            turns.begin(&name, &name, "hooks.example.org", 1)
        });
        assert_eq!(at_host.count(), 128);
        let mut turns = ReceiverTurns::default();
        assert_eq!(begun(&mut turns, 0..999, 2), 128, "slow ones");
        assert_eq!(turns.room(), 128);
        assert_eq!(begun(&mut turns, 0..128, 1), 128);
        assert_eq!(turns.room(), 0);
    }

    #[test]
    fn a_slow_receiver_rests_twice_as_long_each_time_and_a_fast_one_not_at_all() {
        let mut turns = ReceiverTurns::default();
        let mut now = START;
        for seconds in [5, 10, 20, 40, 80, 160, 300, 300] {
            assert!(turns.begin("hook", "ann", "host", 1));
            assert_eq!(turns.waiting(now), ["hook"], "it is served");
            turns.end("hook", ReceiverPace::of(None), now);
            let end = now.plus(Duration::from_secs(seconds));
            assert_eq!(turns.waiting(Mono::from_nanos(end.nanos() - 1)), ["hook"]);
            assert!(turns.waiting(end).is_empty());
            now = end;
        }
        turns.begin("hook", "ann", "host", 1);
        turns.end("hook", ReceiverPace::of(Some(Duration::from_secs(4))), now);
        assert!(turns.waiting(now).is_empty());
        turns.begin("hook", "ann", "host", 1);
        turns.end("hook", ReceiverPace::of(Some(SLOW)), now);
        assert_eq!(turns.waiting(now.plus(Duration::from_secs(4))), ["hook"]);
    }

    #[test]
    fn while_too_many_slow_receivers_are_served_no_other_slow_one_is_asked_for() {
        let mut turns = ReceiverTurns::default();
        turns.end("slow", ReceiverPace::Slow, START);
        assert!(turns.waiting(after(9)).is_empty());
        begun(&mut turns, 0..128, 2);
        assert!(turns.waiting(after(9)).contains(&"slow".to_owned()));
    }

    #[test]
    fn failures_of_many_receivers_are_forgotten_once_they_no_longer_rest() {
        let mut turns = ReceiverTurns::default();
        for number in 0..REMEMBERED {
            turns.end(&number.to_string(), ReceiverPace::Slow, START);
        }
        assert_eq!(turns.slow.len(), REMEMBERED);
        turns.end("last", ReceiverPace::Slow, after(5));
        assert_eq!(turns.waiting(after(5)), ["last"]);
        assert_eq!(turns.slow.len(), 1);
    }
}
