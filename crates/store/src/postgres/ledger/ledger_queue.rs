//! Collects ledger exchanges that wait for the connection, and sends them together.
//!
//! While an exchange is in progress, later ones queue. So the number of transactions depends on the speed of the
//! database and not on the number of callers.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::error::SqlState;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::{
    ExchangeCounts, LedgerExchange, LedgerExchangeReply, StoreError, StoreResult,
    postgres::{
        connection::{link::DatabaseLink, open_failure::OpenFailure},
        ledger::day_ledger,
    },
    statements::{Fault, SchemaClient},
};

/// Maximum number of reports per transaction.
const MAX_REPORTS: usize = 256;
/// Maximum queue length. Further callers wait until there is space.
const QUEUE: usize = 1_024;

/// Number of retries of an exchange that the server aborted because of a deadlock.
const REPEATS: usize = 3;

const EXCHANGE: &str = "exchange ledger reports";

/// The sending side.
pub struct LedgerQueue {
    /// Dropped first, which aborts the worker's current operation.
    _worker: AbortOnDropHandle<()>,
    queue: mpsc::Sender<QueuedExchange>,
    connection: Arc<DatabaseLink>,
    committed: Arc<Mutex<ExchangeCounts>>,
}

struct QueuedExchange {
    exchange: LedgerExchange,
    reply: oneshot::Sender<StoreResult<LedgerExchangeReply>>,
}

/// The receiving side.
struct LedgerWorker {
    connection: Arc<DatabaseLink>,
    /// Exchanges that could not be part of the previous transaction.
    waiting: VecDeque<QueuedExchange>,
    queue: mpsc::Receiver<QueuedExchange>,
    /// Uses only the day of each exchange, not the clock.
    ignores_clock: bool,
    committed: Arc<Mutex<ExchangeCounts>>,
}

impl LedgerQueue {
    /// Starts the worker. Dropping the queue ends it.
    pub(crate) fn start(connection: DatabaseLink, ignores_clock: bool) -> Self {
        let (queue, exchanges) = mpsc::channel(QUEUE);
        let connection = Arc::new(connection);
        let committed = Arc::<Mutex<ExchangeCounts>>::default();
        let worker = LedgerWorker {
            connection: Arc::clone(&connection),
            waiting: VecDeque::new(),
            queue: exchanges,
            ignores_clock,
            committed: Arc::clone(&committed),
        };
        let worker = AbortOnDropHandle::new(TaskTracker::new().spawn(worker.run()));
        Self {
            _worker: worker,
            queue,
            connection,
            committed,
        }
    }

    /// Connects, unless already connected.
    pub(crate) async fn connect(&self, doing: &'static str) -> Result<(), OpenFailure> {
        self.connection.connect(doing).await
    }

    /// Sends an exchange and waits for its reply. The exchange is carried out even if the caller stops waiting.
    pub(crate) async fn exchange(
        &self,
        exchange: LedgerExchange,
    ) -> StoreResult<LedgerExchangeReply> {
        let (reply, answer) = oneshot::channel();
        self.queue
            .send(QueuedExchange { exchange, reply })
            .await
            .map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())?
    }

    /// Number of committed transactions, and number of reports in them.
    pub(crate) fn counts(&self) -> ExchangeCounts {
        *self.committed.lock()
    }
}

fn stopped() -> StoreError {
    StoreError::Unavailable {
        doing: EXCHANGE,
        reason: "its task has stopped".into(),
    }
}

impl LedgerWorker {
    async fn run(mut self) {
        while let Some(group) = self.next_group().await {
            let Some(first) = group.first() else { continue };
            let LedgerExchange { node, today, .. } = first.exchange;
            let reports = group
                .iter()
                .flat_map(|queued| queued.exchange.reports.iter().cloned())
                .collect();
            let whole = LedgerExchange {
                node,
                today,
                reports,
            };
            let done = Box::pin(self.exchange(&whole)).await;
            answer(group, &done);
        }
    }

    async fn exchange(&self, exchange: &LedgerExchange) -> StoreResult<LedgerExchangeReply> {
        let ignores_clock = self.ignores_clock;
        let reply = Box::pin(
            self.connection
                .run(EXCHANGE, async |client: SchemaClient<'_>| {
                    for _ in 0..REPEATS {
                        match day_ledger::exchange(client, exchange, ignores_clock).await {
                            Err(Fault::Database(error)) if was_rolled_back(&error) => {}
                            done => return done,
                        }
                    }
                    day_ledger::exchange(client, exchange, ignores_clock).await
                }),
        )
        .await?;
        let reports = u64::try_from(exchange.reports.len()).unwrap_or(u64::MAX);
        let mut committed = self.committed.lock();
        committed.transactions += 1;
        committed.reports += reports;
        Ok(reply)
    }

    /// The next exchanges of one node and day, no two of which need the same row.
    async fn next_group(&mut self) -> Option<Vec<QueuedExchange>> {
        if self.waiting.is_empty() {
            self.waiting.push_back(self.queue.recv().await?);
        }
        while let Ok(more) = self.queue.try_recv() {
            self.waiting.push_back(more);
        }
        let mut group: Vec<QueuedExchange> = Vec::new();
        let mut rows = HashSet::new();
        let mut rest = VecDeque::new();
        for queued in std::mem::take(&mut self.waiting) {
            let LedgerExchange {
                node,
                today,
                reports,
            } = &queued.exchange;
            let fits = rows.len() + reports.len() <= MAX_REPORTS || group.is_empty();
            let is_alike = group
                .first()
                .is_none_or(|first| (first.exchange.node, first.exchange.today) == (*node, *today));
            let keys = || {
                reports
                    .iter()
                    .map(|report| (report.day, report.application))
            };
            if fits && is_alike && keys().all(|key| !rows.contains(&key)) {
                rows.extend(keys());
                group.push(queued);
            } else {
                rest.push_back(queued);
            }
        }
        self.waiting = rest;
        Some(group)
    }
}

/// Whether the server rolled back a transaction because of a deadlock. Upgrades and exchanges lock the tables in different
/// orders.
fn was_rolled_back(error: &tokio_postgres::Error) -> bool {
    let codes = [
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::T_R_SERIALIZATION_FAILURE,
    ];
    error.code().is_some_and(|code| codes.contains(code))
}

/// Answers each exchange with its part of the reply.
fn answer(group: Vec<QueuedExchange>, done: &StoreResult<LedgerExchangeReply>) {
    let whole = done.as_ref().cloned().unwrap_or_default();
    let mut outcomes = whole.outcomes.into_iter();
    let mut windows = whole.windows.into_iter();
    let mut minutes = whole.minutes.into_iter();
    for queued in group {
        let count = queued.exchange.reports.len();
        let own = outcomes.by_ref().take(count).collect();
        let windows = windows.by_ref().take(count).collect();
        let minutes = minutes.by_ref().take(count).collect();
        let reply = match done {
            Ok(_) => Ok(LedgerExchangeReply {
                today: whole.today,
                outcomes: own,
                windows,
                minutes,
            }),
            Err(error) => Err(StoreError::Unavailable {
                doing: EXCHANGE,
                reason: error.to_string(),
            }),
        };
        // The caller may have stopped waiting.
        drop(queued.reply.send(reply));
    }
}
