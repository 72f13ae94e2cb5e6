//! Leases from the ledger: at most one call under way for an application, made by a task that belongs to no request;
//! whoever must wait shares it, with a deadline of its own.
//!
//! Not for: how much to lease (`limits::DayBalance`), nor what the ledger promises (`store`).

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use crate::clock::Clock;
use crate::store::{Lease, LeaseAsk, Store};

use super::account::{Account, LeaseCall};
use super::observe::{Instruments, Units};
use super::roster::Roster;

/// How long a request waits for a lease before it is told that the ledger is away.
const PATIENCE: Duration = Duration::from_secs(2);

/// The ledger could not be asked in time, or could not write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the ledger gave no lease")]
pub(super) struct NoLease;

/// The way to the ledger.
pub struct Leases {
    store: Arc<dyn Store>,
    /// This life of this gateway.
    node: u64,
    tasks: TaskTracker,
    clock: Clock,
    instruments: Arc<Instruments>,
}

impl Leases {
    /// Leases from `store` in the name of `node`; calls run as tasks of `tasks`.
    pub fn new(
        store: Arc<dyn Store>,
        node: u64,
        tasks: TaskTracker,
        clock: Clock,
        instruments: Arc<Instruments>,
    ) -> Self {
        Self { store, node, tasks, clock, instruments }
    }

    /// Waits until a ledger call for the account has succeeded: the one under way, or a new one.
    pub(super) async fn lease(self: &Arc<Self>, account: &Arc<Account>) -> Result<(), NoLease> {
        let LeaseCall(mut call) = self.call(account);
        let ended = self.clock.within(PATIENCE, call.wait_for(Option::is_some)).await;
        match ended {
            Ok(Ok(granted)) if *granted == Some(true) => Ok(()),
            Ok(_) | Err(_) => Err(NoLease),
        }
    }

    /// Starts a ledger call for the account, unless one is under way. Nobody waits for it.
    pub(super) fn lease_ahead(self: &Arc<Self>, account: &Arc<Account>) {
        drop(self.call(account));
    }

    fn call(self: &Arc<Self>, account: &Arc<Account>) -> LeaseCall {
        let quota = account.terms().limits.day;
        let mut books = account.books();
        if let Some(call) = books.leasing.as_ref().filter(|call| call.is_under_way()) {
            return call.clone();
        }
        let (ended, call) = watch::channel(None);
        let call = LeaseCall(call);
        books.leasing = Some(call.clone());
        let day = books.balance.day.on(self.clock.now().wall.day());
        let ask = LeaseAsk {
            application: account.id,
            node: self.node,
            day: day.day(),
            want: day.wish(quota),
            quota,
        };
        drop(books);
        let (leases, account) = (Arc::clone(self), Arc::clone(account));
        self.tasks.spawn(async move {
            let granted = leases.ask(&account, ask).await;
            // The call is over before anybody is woken, so that whoever is can make the next one.
            account.books().leasing = None;
            ended.send_replace(Some(granted));
        });
        call
    }

    async fn ask(&self, account: &Account, ask: LeaseAsk) -> bool {
        let started = self.clock.now().mono;
        let answer = self.store.lease(ask).await;
        self.instruments.lease_took(self.clock.now().mono.since(started));
        let mut books = account.books();
        match answer {
            Ok(Lease::Granted { units, total }) => {
                books.balance.day = books.balance.day.grant(ask.day, units, total);
                self.instruments.units(Units::Leased, units);
                true
            }
            Ok(Lease::Closed { newest }) => {
                // The wall clock went backwards; the day that was opened last goes on.
                books.balance.day = books.balance.day.on(newest);
                true
            }
            Err(error) => {
                drop(books);
                self.instruments.lease_failed();
                tracing::error!(%error, application = %account.id, "the ledger granted nothing");
                false
            }
        }
    }

    /// Gives every leased and unspent unit back. What cannot be given back is lost to its caller until midnight.
    pub async fn drain(&self, roster: &Roster) {
        let units = roster.drain(self.node);
        let count = units.iter().map(|back| back.units).sum();
        if count == 0 {
            return;
        }
        match self.store.give_back(units).await {
            Ok(()) => self.instruments.units(Units::Returned, count),
            Err(error) => {
                self.instruments.units(Units::Lost, count);
                tracing::error!(%error, units = count, "leased units could not be given back");
            }
        }
    }
}
