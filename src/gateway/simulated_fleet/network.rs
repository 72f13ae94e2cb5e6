//! The shared ledger: the embedded store behind a network that delays, loses and repeats messages, and with the pools of
//! minute limits, which this engine does not have. Units of late and repeated messages are applied in any order. Tokens
//! are not: `limits::minute_pool` requires order, which the locks of a database ensure.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use scoregate_base::{
    clock::{Day, Wall},
    keys::ApplicationId,
    limits::{GraceClaim, GraceShare, MinutePool},
};
use scoregate_store::{
    HeldGraceShare, Ledger, LedgerExchange, LedgerExchangeReply, Store, StoreError, StoreFuture,
    StoreResult,
};

use super::{
    observer::FleetObserver,
    planted::{HiddenReturns, PlantedBug},
    virtual_time::{SeededNumbers, VirtualTime},
};

/// The number of gateways.
pub const GATEWAYS: usize = 3;
/// Timeout of a call.
pub const TIMEOUT: Duration = Duration::from_secs(2);
/// The owner of messages. Processes have other numbers.
const NETWORK: u64 = 0;

/// The subjects of messages that are not about an application.
const DAY: u64 = u64::MAX;
const CLAIMS: u64 = DAY - 1;
const RETURNS: u64 = DAY - 2;

/// Faults in force, until these times.
#[derive(Default)]
pub struct NetworkFaults {
    /// The store is unreachable for all gateways.
    pub away: Duration,
    /// A gateway cannot reach the store.
    pub cut: [Duration; GATEWAYS],
    /// Some messages are lost.
    pub lossy: Duration,
}

#[derive(Default)]
struct NetworkState {
    faults: NetworkFaults,
    pools: BTreeMap<ApplicationId, MinutePool>,
    /// Number of messages by node and subject.
    sent: BTreeMap<[u64; 2], u64>,
    /// Number of failed calls by node.
    failed: BTreeMap<u64, u64>,
    hidden: HiddenReturns,
    exchanges: u64,
}

/// The network and the store.
pub struct SimulatedNetwork {
    pub store: Store,
    pub time: VirtualTime,
    pub bug: Option<PlantedBug>,
    start: Wall,
    seed: u64,
    observer: Arc<Mutex<FleetObserver>>,
    state: Mutex<NetworkState>,
}

/// The fate of a message. It depends on its node and subject, not on the order in which a process sends messages.
struct MessageFate {
    there: Duration,
    back: Duration,
    /// When the sender gives up.
    noticed: Duration,
    is_request_lost: bool,
    is_reply_lost: bool,
    repeated: Option<Duration>,
}

impl MessageFate {
    fn new(mut numbers: SeededNumbers, is_lossy: bool) -> Self {
        let mut delay = || match numbers.below(60) {
            0 => numbers.millis(1, 5_000),
            1..4 => numbers.millis(1, 400),
            _ => numbers.millis(1, 12),
        };
        let [there, back] = [delay(), delay()];
        let is_lost = is_lossy && numbers.is_one_in(4);
        let is_request_lost = is_lost && numbers.is_one_in(2);
        let is_slow = numbers.is_one_in(3);
        Self {
            there,
            back,
            noticed: if is_slow { TIMEOUT * 4 } else { TIMEOUT },
            is_request_lost,
            is_reply_lost: is_lost && !is_request_lost,
            repeated: numbers.is_one_in(10).then(|| numbers.millis(1, 60_000)),
        }
    }
}

impl SimulatedNetwork {
    pub fn new(
        store: Store,
        time: VirtualTime,
        bug: Option<PlantedBug>,
        start: Wall,
        seed: u64,
        observer: &Arc<Mutex<FleetObserver>>,
    ) -> Self {
        Self {
            store,
            time,
            bug,
            start,
            seed,
            observer: Arc::clone(observer),
            state: Mutex::default(),
        }
    }

    /// The time of the store's clock.
    pub fn wall(&self) -> Wall {
        self.start.plus(self.time.now())
    }

    pub fn change_faults(&self, change: impl FnOnce(&mut NetworkFaults)) {
        change(&mut self.state.lock().faults);
    }

    pub fn is_cut(&self, gateway: usize) -> bool {
        let now = self.time.now();
        let faults = &self.state.lock().faults;
        now < faults.away || now < faults.cut[gateway]
    }

    /// Number of failed calls of a node.
    pub fn failed(&self, node: u64) -> u64 {
        let state = self.state.lock();
        state.failed.get(&node).copied().unwrap_or_default()
    }

    fn fate(&self, node: u64, subject: u64) -> MessageFate {
        let mut state = self.state.lock();
        let is_lossy = self.time.now() < state.faults.lossy;
        let sent = state.sent.entry([node, subject]).or_default();
        *sent += 1;
        let numbers = SeededNumbers::new(&[self.seed, node, subject, *sent]);
        MessageFate::new(numbers, is_lossy)
    }

    /// Sends a message. `act` is what the store does when the message arrives, perhaps late or again.
    fn send<T: Send + 'static>(
        self: &Arc<Self>,
        from: &SimulatedLedger,
        subject: u64,
        act: impl FnMut(&Self, Arrival) -> StoreResult<T> + Send + 'static,
    ) -> StoreFuture<'static, T> {
        let fate = self.fate(from.node, subject);
        let node = from.node;
        let noticed = fate.noticed;
        let (reply, answer) = oneshot::channel();
        let network = Arc::clone(self);
        let carried = Arc::clone(self).carry(from.gateway, fate, act, reply);
        self.time.spawn(NETWORK, carried);
        Box::pin(async move {
            let answered = tokio::select! {
                biased;
                answered = answer => answered.ok(),
                () = network.time.sleep(noticed) => None,
            };
            answered.unwrap_or_else(|| {
                *network.state.lock().failed.entry(node).or_default() += 1;
                let reason = "a message is lost".into();
                let doing = "answer";
                Err(StoreError::Unavailable { doing, reason })
            })
        })
    }

    async fn carry<T: Send>(
        self: Arc<Self>,
        gateway: usize,
        fate: MessageFate,
        mut act: impl FnMut(&Self, Arrival) -> StoreResult<T> + Send,
        reply: oneshot::Sender<StoreResult<T>>,
    ) {
        let time = self.time.clone();
        time.sleep(fate.there).await;
        if fate.is_request_lost || self.is_cut(gateway) {
            // The sender waits for its timeout.
            return time.sleep(TIMEOUT * 4).await;
        }
        let is_late = reply.is_closed();
        let is_slow = fate.there + fate.back > TIMEOUT;
        let arrival = Arrival {
            is_late,
            is_unanswered: is_late || is_slow || fate.is_reply_lost,
        };
        let done = act(&self, arrival);
        time.sleep(fate.back).await;
        if fate.is_reply_lost || self.is_cut(gateway) {
            time.sleep(TIMEOUT * 4).await;
        } else {
            // The sender may have given up.
            drop(reply.send(done));
        }
        if let Some(after) = fate.repeated {
            time.sleep(after).await;
            let again = Arrival {
                is_late: true,
                is_unanswered: false,
            };
            drop(act(&self, again));
        }
    }

    fn apply(&self, sent: &LedgerExchange, arrival: Arrival) -> StoreResult<LedgerExchangeReply> {
        let state = &mut *self.state.lock();
        state.exchanges += 1;
        let mut exchange = sent.clone();
        exchange.today = sent.today.min(self.wall().day());
        if let Some(bug) = self.bug {
            let number = state.exchanges;
            state.hidden.distort(bug, &mut exchange, number);
        }
        let mut reply = pollster::block_on(self.store.exchange(exchange.clone()))?;
        if self.bug == Some(PlantedBug::Reclaims) && arrival.is_unanswered {
            let reclaiming = state.hidden.reclaim(&exchange, &reply);
            pollster::block_on(self.store.exchange(reclaiming))?;
        }
        if self.bug.is_some() {
            state.hidden.hide(sent, &mut reply);
        }
        if !arrival.is_late {
            self.exchange_tokens(state, sent, &mut reply);
        }
        let mut observer = self.observer.lock();
        observer.now = self.time.now();
        observer.count("exchanges");
        observer.trace(|| format!("{arrival:?} {sent:?} {reply:?}"));
        Ok(reply)
    }

    fn exchange_tokens(
        &self,
        state: &mut NetworkState,
        sent: &LedgerExchange,
        reply: &mut LedgerExchangeReply,
    ) {
        if self.bug == Some(PlantedBug::ForgetsPools) && state.exchanges.is_multiple_of(8) {
            state.pools.clear();
        }
        let now = i64::try_from(self.time.now().as_micros()).unwrap();
        let granted = sent.reports.iter().map(|report| {
            let minute = report.minute?;
            let full = || MinutePool::new(minute.limit, now);
            let pool = state.pools.entry(report.application).or_insert_with(full);
            Some(pool.apply(sent.node, &minute, now))
        });
        reply.minutes = granted.collect();
    }
}

/// How a message arrives.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    /// Its sender has given up, or it arrives again.
    is_late: bool,
    /// Its sender gets no reply in time.
    is_unanswered: bool,
}

/// The ledger as a process reaches it.
pub struct SimulatedLedger {
    pub network: Arc<SimulatedNetwork>,
    pub gateway: usize,
    pub node: u64,
}

impl Ledger for SimulatedLedger {
    fn day(&self) -> StoreFuture<'_, Option<Day>> {
        self.network.send(self, DAY, |network, _| {
            pollster::block_on(network.store.day())
        })
    }

    fn exchange(&self, exchange: LedgerExchange) -> StoreFuture<'_, LedgerExchangeReply> {
        let subject = exchange.reports[0].application.number();
        self.network.send(self, subject, move |network, arrival| {
            network.apply(&exchange, arrival)
        })
    }

    fn claim_grace(&self, claim: GraceClaim) -> StoreFuture<'_, Option<GraceShare>> {
        self.network.send(self, CLAIMS, move |network, _| {
            pollster::block_on(network.store.claim_grace(claim))
        })
    }

    fn return_grace(&self, share: HeldGraceShare) -> StoreFuture<'_, ()> {
        self.network.send(self, RETURNS, move |network, _| {
            pollster::block_on(network.store.return_grace(share))
        })
    }
}
