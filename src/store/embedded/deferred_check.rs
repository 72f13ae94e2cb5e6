//! The whole check of a large file, while it serves already.
//!
//! It ends early if the store is closed first. Not for: a small file, which is checked before it is opened (`sound`).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use rusqlite::{InterruptHandle, OpenFlags};

use super::fault::{OpenFile, StoreFault};
use super::{file, sound};
use crate::store::StoreError;

/// A check that begins once the machine is free for it.
#[derive(Debug, Default)]
pub(super) struct DeferredCheck {
    /// The file, if it was too large to be checked whole before.
    file: Option<OpenFile>,
    watch: OnceLock<IntegrityCheck>,
}

impl DeferredCheck {
    pub(super) fn new(file: Option<OpenFile>) -> Self {
        Self { file, watch: OnceLock::new() }
    }

    /// Begins it, unless it has begun. To be called where waiting for the disk holds nobody up.
    pub(super) fn begin(&self) {
        let Some(file) = self.file.as_ref().filter(|_| self.watch.get().is_none()) else { return };
        match IntegrityCheck::begin(file) {
            Ok(watch) => drop(self.watch.set(watch)),
            Err(error) => tracing::warn!(%error, "full store check skipped"),
        }
    }
}

/// A check under way.
pub(super) struct IntegrityCheck {
    is_over: Arc<AtomicBool>,
    interrupt: InterruptHandle,
    thread: Option<JoinHandle<()>>,
}

impl IntegrityCheck {
    /// Begins it, on a connection and a thread of its own.
    pub(super) fn begin(file: &OpenFile) -> Result<Self, StoreError> {
        let told = |fault: StoreFault| fault.told("begin its check", &file.path);
        let connection = file::connect(&file.path, OpenFlags::SQLITE_OPEN_READ_ONLY)
            .map_err(|error| told(error.into()))?;
        let (is_over, interrupt) = (Arc::new(AtomicBool::new(false)), connection.get_interrupt_handle());
        let (ends, file) = (Arc::clone(&is_over), file.clone());
        let check = move || {
            if ends.load(Ordering::Acquire) {
                return;
            }
            match sound::whole(&connection) {
                Err(fault @ StoreFault::Record(_)) => file.is_damaged(&fault.told("be checked", &file.path)),
                // Some damage ends the check itself; all else is an interruption.
                Err(fault) => drop(fault.told_at_work("be checked", &file)),
                Ok(()) => {}
            }
        };
        let thread = std::thread::Builder::new().name("store-check".into()).spawn(check);
        let thread = thread.map_err(|error| fault_of_thread(&error))?;
        Ok(Self { is_over, interrupt, thread: Some(thread) })
    }
}

fn fault_of_thread(error: &std::io::Error) -> StoreError {
    StoreError::Unavailable { doing: "start its threads", reason: error.to_string() }
}

impl Drop for IntegrityCheck {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else { return };
        // An interruption ends only what has begun, and the check may be about to begin.
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
