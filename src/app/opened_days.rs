//! At startup, compares the newest UTC day that was opened in the ledger with the machine's clock.
//!
//! At startup there is no earlier reading of the boot-time clock, so only this comparison can detect a wrong wall
//! clock. Days are closed in `store::maintenance`.

use std::path::Path;

use scoregate_base::clock::Wall;
use scoregate_store::{Ledger as _, Store, StoreError, maintenance};

/// A warning is logged if nothing has been written to the ledger for longer than this.
const LONG_IDLE_DAYS: u32 = 7;

/// Logs an opened day that is in the future, with the command that closes it. Also warns if the clock is days ahead of
/// the ledger.
pub async fn report(store: &Store, data_dir: &Path, now: Wall) -> Result<(), StoreError> {
    let Some(newest) = store.day().await? else {
        return Ok(());
    };
    let today = now.day();
    if newest > today {
        let command = maintenance::close_command(data_dir, today);
        tracing::error!(
            day = %newest, now = now.rfc3339(), command,
            "the ledger has opened a UTC day in the future: requests are charged to it until it ends. If a \
             wrong clock opened it, correct the clock, stop the server and run the command"
        );
    } else if today.number() - newest.number() > LONG_IDLE_DAYS {
        tracing::warn!(
            day = %newest, now = now.rfc3339(),
            "the machine's clock is more than {LONG_IDLE_DAYS} days ahead of the newest UTC day in the ledger: check its \
             time if the server was not idle for that long"
        );
    }
    Ok(())
}
