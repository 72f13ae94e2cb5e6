//! Units delivered on grace while the ledger was unreachable: those of this process that have not been charged, and
//! those that earlier processes saved when they stopped.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::clock::Day;
use crate::limits::{NodeReport, NodeTotals};
use crate::store::{Ledger, LedgerExchange, LedgerReport, OwedFile, OwedUnits, StoreError};

use super::account::Account;

/// Units delivered on grace and not charged.
#[derive(Default)]
pub(super) struct GraceCharges {
    /// Identifies this process in the ledger.
    node: u64,
    /// Accounts that delivered units on grace and have not been charged.
    uncharged: Mutex<Vec<Arc<Account>>>,
    /// Where uncharged units are saved.
    owed_file: Option<OwedFile>,
    /// Units delivered on grace by earlier processes and not charged. Nothing is leased before they are.
    carried: tokio::sync::Mutex<Vec<OwedUnits>>,
    /// The content of the file. Locked while it is written.
    saved: tokio::sync::Mutex<Vec<OwedUnits>>,
    is_failing: AtomicBool,
}

impl GraceCharges {
    /// Reads what an earlier process saved in `file`, and saves uncharged units of `node` there.
    pub(super) async fn carrying(file: OwedFile, node: u64) -> Self {
        let (read, mut charges) = (file.clone(), Self { node, ..Self::default() });
        match tokio::task::spawn_blocking(move || read.read()).await {
            Ok(Ok(owed)) => {
                charges.saved = tokio::sync::Mutex::new(owed.clone());
                charges.carried = tokio::sync::Mutex::new(owed);
            }
            Ok(Err(error)) => {
                tracing::error!(%error, "scoregate.owed cannot be read; units delivered on grace are not charged");
            }
            Err(_) => tracing::error!("reading scoregate.owed panicked"),
        }
        charges.owed_file = Some(file);
        charges
    }

    /// Charges units that earlier processes delivered on grace. A failed charge is repeated before the next lease.
    pub(super) async fn charge_carried(&self, ledger: &dyn Ledger, today: Day) -> Result<(), StoreError> {
        let mut carried = self.carried.lock().await;
        if carried.is_empty() {
            return Ok(());
        }
        for owed in carried.iter() {
            let totals = NodeReport {
                known: NodeTotals { granted: owed.granted, ..NodeTotals::default() },
                ..NodeReport::default()
            };
            let report = LedgerReport::of_units(owed.application, owed.day, totals);
            ledger.exchange(LedgerExchange { node: owed.node, today, reports: vec![report] }).await?;
        }
        let applications = carried.len();
        carried.clear();
        drop(carried);
        tracing::info!(applications, "charged the units delivered on grace before the last shutdown");
        if self.write().await.is_err() {
            tracing::warn!("scoregate.owed cannot be removed; its entries are not charged again");
        }
        Ok(())
    }

    /// Saves uncharged units: those of this process and those of earlier ones. A failure is logged when it begins.
    pub(super) async fn save(&self) {
        let failure = self.write().await.err();
        let was_failing = self.is_failing.swap(failure.is_some(), Ordering::Relaxed);
        if let Some(error) = failure.filter(|_| !was_failing) {
            tracing::error!(%error, "units delivered on grace cannot be saved; a crash would lose their charge");
        }
    }

    /// Saves uncharged units for the next start.
    pub(super) async fn save_at_shutdown(&self) {
        let units = self.own().iter().map(|(_, units)| units).sum::<u32>();
        if units == 0 || self.owed_file.is_none() {
            return; // those of earlier processes are in the file already
        }
        match self.write().await {
            Ok(()) => tracing::warn!(units, "units delivered on grace will be charged at the next start"),
            Err(error) => {
                tracing::error!(%error, units, "units delivered on grace cannot be saved and will not be charged");
            }
        }
    }

    /// Uncharged units of this process, and their numbers.
    fn own(&self) -> Vec<(OwedUnits, u32)> {
        let entry = |account: &Arc<Account>| {
            let day = account.state().day();
            let granted = day.charge().known.granted;
            let owed = OwedUnits { node: self.node, application: account.id, day: day.day(), granted };
            (day.owed() > 0).then_some((owed, day.owed()))
        };
        self.uncharged.lock().iter().filter_map(entry).collect()
    }

    /// Writes the file unless it has this content.
    async fn write(&self) -> io::Result<()> {
        let Some(file) = self.owed_file.clone() else { return Ok(()) };
        let mut saved = self.saved.lock().await;
        let mut all = self.carried.lock().await.clone();
        all.extend(self.own().into_iter().map(|(owed, _)| owed));
        if all == *saved {
            return Ok(());
        }
        let content = all.clone();
        let write = move || if content.is_empty() { file.remove() } else { file.write(&content) };
        tokio::task::spawn_blocking(write).await.map_err(io::Error::other)??;
        *saved = all;
        Ok(())
    }

    /// Records that the account delivers units on grace.
    pub(super) fn add(&self, account: &Arc<Account>) {
        if !std::mem::replace(&mut account.state().is_uncharged, true) {
            self.uncharged.lock().push(Arc::clone(account));
        }
    }

    /// Accounts that owe units of this day. Units of a past day can no longer be charged: the ledger has closed it.
    pub(super) fn uncharged_on(&self, today: Day) -> Vec<Arc<Account>> {
        let mut uncharged = self.uncharged.lock();
        uncharged.retain(|account| {
            let mut state = account.state();
            state.is_uncharged = state.day().on(today).owed() > 0;
            state.is_uncharged
        });
        uncharged.clone()
    }
}
