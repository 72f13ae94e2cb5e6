//! The complete check of a large file while the server runs. It ends early if the store is closed. A small file is
//! checked before it is opened (`integrity`).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use rusqlite::{InterruptHandle, OpenFlags};

use super::fault::{OpenFile, StoreFault};
use super::worker::unavailable;
use super::{file, integrity};
use crate::StoreResult;

/// A check that starts once the machine is idle enough.
#[derive(Debug, Default)]
pub(super) struct DeferredCheck {
    /// The file, if it was too large for a complete check before.
    file: Option<OpenFile>,
    watch: OnceLock<IntegrityCheck>,
}

impl DeferredCheck {
    pub(super) fn new(file: Option<OpenFile>) -> Self {
        Self {
            file,
            watch: OnceLock::new(),
        }
    }

    /// Starts the check unless it was started. Call it where waiting for the disk blocks nothing.
    pub(super) fn begin(&self) {
        let Some(file) = self.file.as_ref().filter(|_| self.watch.get().is_none()) else {
            return;
        };
        match IntegrityCheck::begin(file) {
            Ok(watch) => drop(self.watch.set(watch)),
            Err(error) => tracing::warn!(%error, "full store check skipped"),
        }
    }
}

/// A running check.
pub(super) struct IntegrityCheck {
    cancelled: Arc<AtomicBool>,
    interrupt: InterruptHandle,
    thread: Option<JoinHandle<()>>,
}

impl IntegrityCheck {
    /// Starts the check on a connection and a thread of its own.
    pub(super) fn begin(file: &OpenFile) -> StoreResult<Self> {
        let to_error = |fault: StoreFault| fault.into_error("start its check", &file.path);
        let connection = file::connect(&file.path, OpenFlags::SQLITE_OPEN_READ_ONLY)
            .map_err(|error| to_error(error.into()))?;
        let cancelled = Arc::new(AtomicBool::new(false));
        let interrupt = connection.get_interrupt_handle();
        let is_cancelled = Arc::clone(&cancelled);
        let file = file.clone();
        let check = move || {
            if is_cancelled.load(Ordering::Acquire) {
                return;
            }
            match integrity::whole(&connection) {
                Err(fault @ StoreFault::Record(_)) => {
                    file.report_damage(&fault.into_error("be checked", &file.path));
                }
                // Some damage ends the check itself; other errors are interruptions.
                Err(fault) => drop(fault.into_error_while_serving("be checked", &file)),
                Ok(()) => {}
            }
        };
        let thread = std::thread::Builder::new()
            .name("store-check".into())
            .spawn(check);
        let thread = thread.map_err(|error| unavailable("start a thread", &error))?;
        Ok(Self {
            cancelled,
            interrupt,
            thread: Some(thread),
        })
    }
}

impl Drop for IntegrityCheck {
    fn drop(&mut self) {
        self.cancelled.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else {
            return;
        };
        // An interruption affects only a running check, and this one may be about to start.
        while !thread.is_finished() {
            self.interrupt.interrupt();
            std::thread::yield_now();
        }
        drop(thread.join());
    }
}

impl std::fmt::Debug for IntegrityCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Watch")
    }
}
