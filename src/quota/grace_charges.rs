//! Units delivered on grace while the ledger was unreachable: uncharged units of this process, and units of earlier
//! processes with the same data directory.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use scoregate_base::{
    clock::{Day, Now},
    limits::{NodeReport, NodeTotals},
};
use scoregate_store::{
    HeldGraceShare, Ledger, LedgerExchange, LedgerReport, LocalFile, OwedRecords, OwedUnits,
    ReportOutcome, StoreResult,
};

use crate::{
    accounts::Account,
    quota::{
        grace_book::GraceBook,
        grace_writer::{GraceWriter, NewContent},
    },
};

/// Number of applications per exchange that charges units.
// This limits the size of an exchange, which has one timeout regardless of the number of applications.
const CHARGED_AT_ONCE: usize = 256;

/// Units that were delivered on grace and not charged, and the shares that permit further units.
#[derive(Default)]
pub struct GraceCharges {
    /// Identifies this process in the ledger.
    node: u64,
    pub book: Arc<GraceBook>,
    /// Writes the file; `None` if grace is disabled.
    writer: Option<GraceWriter>,
    /// Whether, according to the last claims, this process lacks a share of today or tomorrow and other live gateways
    /// hold some.
    others_hold: AtomicBool,
    /// Whether units are written to the file before they are spent, so that the next process takes over the shares.
    is_durable: bool,
    /// Whether the units of earlier processes have been charged. Nothing is leased until then.
    has_charged: tokio::sync::Mutex<bool>,
    /// Whether this process has stopped making claims. Locked during claims, so that no claim follows the return of a
    /// share.
    is_finished: tokio::sync::Mutex<bool>,
}

impl GraceCharges {
    /// Reads the state that an earlier process saved in `file`, and saves units of `node` there: before they are spent
    /// if `is_durable`, otherwise at shutdown. If the store is a file, an outage may be a failure of the disk, so grace
    /// must not depend on the disk.
    pub async fn opened(file: Arc<LocalFile>, node: u64, is_durable: bool) -> Self {
        let read = Arc::clone(&file);
        // The disk may be slow, and other startup tasks need this thread.
        let reading = tokio::task::spawn_blocking(move || read.grace());
        let read = reading.await.map_err(io::Error::other).flatten();
        let Ok(mut records) = read.inspect_err(|error| {
            tracing::error!(%error, "cannot read grace from local.db; grace is disabled");
        }) else {
            return Self {
                node,
                ..Self::default()
            };
        };
        // Units of the earlier process were reserved in memory only, so this process cannot take over its shares.
        if !is_durable {
            records.shares.clear();
        }
        let book = Arc::new(GraceBook::continuing(&records));
        let saved = OwedRecords {
            shares: Vec::new(),
            ..records
        };
        let writer = GraceWriter::start(file, saved, node, &book, is_durable);
        let writer = writer.inspect_err(|error| {
            tracing::error!(%error, "cannot start the thread that writes grace; grace is disabled");
        });
        let charges = Self {
            node,
            book,
            writer: writer.ok(),
            is_durable,
            ..Self::default()
        };
        // Before the shares are used, the file must record that this process continues them.
        if is_durable
            && !charges.book.shares(Day::default()).is_empty()
            && charges.save(Day::default()).await.is_err()
        {
            charges.book.take_shares(Day::default());
        }
        charges
    }

    /// Reserves units that may be delivered to the account on grace. Returns whether any units are reserved.
    pub async fn reserve(&self, account: &Arc<Account>) -> bool {
        match &self.writer {
            Some(writer) => writer.reserve(account).await,
            None => false,
        }
    }

    /// Claims shares of today and tomorrow that are due.
    pub async fn claim(&self, ledger: &dyn Ledger, gateways: u32, now: Now) {
        let is_finished = self.is_finished.lock().await;
        if *is_finished {
            return;
        }
        let today = now.wall.day();
        let claims = self
            .book
            .due_claims(today, self.node, gateways, now.mono, || {
                getrandom::u64().ok()
            });
        if claims.is_empty() {
            return;
        }
        let mut others_hold = false;
        for claim in claims {
            let share = match ledger.claim_grace(claim).await {
                Ok(share) => share,
                Err(error) => {
                    tracing::debug!(%error, "no grace share can be claimed yet");
                    // The last reply about other gateways remains valid, because an outage does not change the holders
                    // of shares.
                    return;
                }
            };
            if share.is_none() {
                let holders = ledger.others_hold_grace(claim.day, self.node);
                others_hold |= holders.await.unwrap_or_default();
                if claim.held.is_some() {
                    tracing::warn!(
                        day = %claim.day,
                        "another process holds this gateway's grace share for the day; grace is disabled until another \
                         share is free"
                    );
                }
            }
            if self.book.claimed(&claim, share) && self.is_durable {
                drop(self.save(today).await);
            }
        }
        // Only the readiness check reads this value, independently of other values, so no ordering is needed.
        self.others_hold.store(others_hold, Ordering::Relaxed);
    }

    /// Whether, according to the last claims, this process lacks a share of today or tomorrow and other live gateways
    /// hold some.
    pub fn others_hold(&self) -> bool {
        self.others_hold.load(Ordering::Relaxed)
    }

    /// Charges units that earlier processes delivered on grace. A failed charge is repeated before the next lease.
    pub async fn charge_carried(&self, ledger: &dyn Ledger, today: Day) -> StoreResult<()> {
        // The lock is held during the charge, so that new leases wait until earlier units are charged.
        let mut has_charged = self.has_charged.lock().await;
        if *has_charged {
            return Ok(());
        }
        let carried = self.book.carried(Day::default());
        // Totals in the ledger belong to one process, so each exchange is on behalf of one process.
        for of_node in carried.chunk_by(|one, next| one.node == next.node) {
            for owed in of_node.chunks(CHARGED_AT_ONCE) {
                let Some(OwedUnits { node, .. }) = owed.first() else {
                    continue;
                };
                let reports = owed.iter().map(charge).collect();
                let reply = ledger
                    .exchange(LedgerExchange {
                        node: *node,
                        today,
                        reports,
                    })
                    .await?;
                for (one, outcome) in owed.iter().zip(&reply.outcomes) {
                    // Units beyond the quota count as grace of the day, which must not be delivered again.
                    if matches!(outcome, ReportOutcome::Applied { granted, .. } if *granted <= one.quota.into())
                    {
                        self.book.settle_carried(one);
                    }
                }
            }
        }
        *has_charged = true;
        drop(has_charged);
        if !carried.is_empty() {
            tracing::info!(
                entries = carried.len(),
                "charged the units delivered on grace before the last shutdown"
            );
            // A failure is logged by the writer. Repeated charges change nothing.
            drop(self.save(today).await);
        }
        Ok(())
    }

    /// Ends grace in this process. Saves units for the next start. Returns the shares if the ledger is reachable and no
    /// process with this data directory owes units that may exceed the quota.
    pub async fn finish(&self, ledger: &dyn Ledger, is_unreachable: bool, today: Day) {
        // This waits for claims in flight. A claim after this point would take a share that is never returned.
        *self.is_finished.lock().await = true;
        // From here on, nothing is delivered on grace.
        let shares = self.book.take_shares(today);
        let units: u32 = self
            .book
            .listed()
            .iter()
            .map(|account| account.state().day().on(today).owed())
            .sum();
        let is_owing = units > 0 || !self.book.carried(today).is_empty();
        // If a share is no longer in the file and cannot be returned, it is lost.
        let keeps = is_owing || is_unreachable || ledger.day().await.is_err();
        let (kept, returned) = if keeps {
            (shares, Vec::new())
        } else {
            (Vec::new(), shares)
        };
        if let Err(error) = self.replace(kept, today, true).await {
            tracing::error!(%error, units, "units delivered on grace cannot be saved and will not be charged");
            return;
        }
        if units > 0 {
            tracing::warn!(
                units,
                "units delivered on grace will be charged at the next start"
            );
        }
        self.give_back(ledger, returned).await;
    }

    /// Returns shares to the ledger. The file no longer contains them, so no later process uses them.
    async fn give_back(&self, ledger: &dyn Ledger, shares: Vec<HeldGraceShare>) {
        for share in shares {
            if let Err(error) = ledger.return_grace(share).await {
                tracing::warn!(%error, day = %share.day, "cannot release the grace share; it stays taken until the end of that day");
            }
        }
    }

    /// Writes the file.
    async fn save(&self, today: Day) -> io::Result<()> {
        self.replace(self.book.shares(today), today, false).await
    }

    async fn replace(
        &self,
        shares: Vec<HeldGraceShare>,
        today: Day,
        is_last: bool,
    ) -> io::Result<()> {
        let Some(writer) = &self.writer else {
            return Ok(());
        };
        let shares = if self.is_durable { shares } else { Vec::new() };
        writer
            .replace(NewContent {
                shares,
                today,
                is_last,
            })
            .await
    }

    /// Accounts that owe units of this day. Units of a past day can no longer be charged, because the ledger has closed
    /// the day. Accounts that no longer owe units are removed from the file.
    pub async fn uncharged_on(&self, today: Day) -> Vec<Arc<Account>> {
        let mut listed = self.book.listed();
        let before = listed.len();
        listed.retain(|account| account.state().owes_on(today));
        if listed.len() < before {
            // A failure is logged by the writer.
            drop(self.save(today).await);
        }
        listed
    }
}

fn charge(owed: &OwedUnits) -> LedgerReport {
    let known = NodeTotals {
        granted: owed.granted,
        ..NodeTotals::default()
    };
    LedgerReport::of_units(
        owed.application,
        owed.day,
        NodeReport {
            known,
            ..NodeReport::default()
        },
    )
}
