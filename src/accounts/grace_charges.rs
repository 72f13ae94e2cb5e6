//! Units delivered on grace while the ledger was unreachable: those of this process that have not been charged, and
//! those that earlier processes saved when they stopped.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::clock::Day;
use crate::limits::{NodeReport, NodeTotals};
use crate::store::{Ledger, LedgerExchange, LedgerReport, OwedFile, OwedUnits, StoreError};

use super::account::Account;

/// Units delivered on grace and not charged.
#[derive(Default)]
pub(super) struct GraceCharges {
    /// Accounts that delivered units on grace and have not been charged.
    uncharged: Mutex<Vec<Arc<Account>>>,
    /// Where uncharged units are saved at shutdown.
    owed_file: Option<OwedFile>,
    /// Units delivered on grace by earlier processes and not charged. Nothing is leased before they are.
    carried: tokio::sync::Mutex<Vec<OwedUnits>>,
}

impl GraceCharges {
    /// Reads what an earlier process saved in `file`, and saves uncharged units there at shutdown.
    pub(super) async fn carrying(file: OwedFile) -> Self {
        let (read, mut charges) = (file.clone(), Self::default());
        match tokio::task::spawn_blocking(move || read.read()).await {
            Ok(Ok(owed)) => charges.carried = tokio::sync::Mutex::new(owed),
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
        if let Some(file) = self.owed_file.clone()
            && !matches!(tokio::task::spawn_blocking(move || file.remove()).await, Ok(Ok(())))
        {
            tracing::warn!("scoregate.owed cannot be removed; its entries are not charged again");
        }
        Ok(())
    }

    /// Saves uncharged units for the next start: those of this process and those of earlier ones.
    pub(super) async fn save(&self, node: u64) {
        let entry = |account: &Arc<Account>| {
            let day = account.state().balance.day;
            let granted = day.charge().known.granted;
            let owed = OwedUnits { node, application: account.id, day: day.day(), granted };
            (day.owed() > 0).then_some((owed, day.owed()))
        };
        let (new, units): (Vec<OwedUnits>, Vec<u32>) = self.uncharged.lock().iter().filter_map(entry).unzip();
        let units = units.iter().sum::<u32>();
        let Some(file) = self.owed_file.clone() else { return };
        if units == 0 {
            return; // the earlier ones are in the file already
        }
        let all = [self.carried.lock().await.clone(), new].concat();
        match tokio::task::spawn_blocking(move || file.write(&all)).await {
            Ok(Ok(())) => tracing::warn!(units, "units delivered on grace will be charged at the next start"),
            Ok(Err(error)) => {
                tracing::error!(%error, units, "units delivered on grace cannot be saved and will not be charged");
            }
            Err(_) => tracing::error!(units, "saving units delivered on grace panicked"),
        }
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
            state.is_uncharged = state.balance.day.on(today).owed() > 0;
            state.is_uncharged
        });
        uncharged.clone()
    }
}
