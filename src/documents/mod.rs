//! The read-through engine: stored documents, their fetches and refreshes, and their copies on disk.
//!
//! Not for: requests (`gateway`), nor for what a document looks like (`cache`).

mod backend_status;
mod disk_mirror;
mod fetch_priority;
mod fetch_task;
mod inventory;
mod known_models;
mod larder;
mod mirror_record;
mod refresh_schedule;
mod refresher;
mod retention;

pub use backend_status::{Failed, Standing};
pub use disk_mirror::Keepsakes;
pub(crate) use fetch_priority::Sake;
pub use inventory::Kept;
pub(crate) use known_models::PROBES_APART;
pub use larder::Larder;
pub(crate) use larder::{Found, InVain, NoDocument};
pub use retention::{Keeping, ShelfLife};
