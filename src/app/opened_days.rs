//! At start: compares the newest UTC day opened in the ledger with the machine's clock.
//!
//! At start there is no earlier reading of the boot-time clock, so a wrong wall clock can be detected only here. Days
//! are closed in `store::maintenance`.

use std::path::Path;

use scoregate_base::clock::Wall;
use scoregate_store::{Ledger as _, Store, StoreError, maintenance};

/// A ledger not written for longer than this causes a warning.
const LONG_IDLE_DAYS: u32 = 7;

/// Logs a day that has not begun yet, with the command that closes it, and a clock that is days ahead of the ledger.
pub(super) async fn report(store: &Store, data_dir: &Path, now: Wall) -> Result<(), StoreError> {
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
