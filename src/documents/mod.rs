//! The read-through engine: cached documents, fetches, refreshes, and copies on disk.
//!
//! [`Documents`] never waits. [`Fetcher`] fills it from the backend, [`Refresher`] keeps it current, and [`DiskMirror`]
//! writes its changes to disk. `gateway` handles requests.

mod backend_status;
mod cached_documents;
mod changed_keys;
mod data_refresh;
mod disk_mirror;
mod document_engine;
mod fetch_priority;
mod fetch_span;
mod fetch_task;
mod fetcher;
mod fleet_decision;
mod fleet_documents;
mod found_document;
mod known_models;
mod mirror_record;
mod probe_turns;
mod refresh_schedule;
mod refresher;
mod retention;
mod shared_fetch;

pub use backend_status::{BackendStatus, FetchFailure};
pub use cached_documents::{CachedDocument, Documents};
pub use disk_mirror::{DiskMirror, MirrorWorker};
pub use document_engine::DocumentEngine;
pub(crate) use fetch_priority::FetchPriority;
pub(crate) use fetch_task::FetchError;
pub use fetcher::Fetcher;
pub(crate) use fetcher::{FetchForesight, WaitError};
pub use fleet_documents::SharedFetches;
pub(crate) use found_document::FoundDocument;
pub(crate) use probe_turns::PROBE_INTERVAL;
pub use refresher::Refresher;
pub use retention::{Lifetime, Retention};
