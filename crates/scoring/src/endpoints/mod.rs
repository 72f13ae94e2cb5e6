//! The data of the endpoints, one file each. A snapshot is converted to items with exactly the fields of
//! `routes::shapes`.
//!
//! The data is rendered once for each snapshot, not for each query. Only the list of incidents is cut to the limit of a
//! query.

mod alerts;
mod degradations;
mod drift;
mod history;
mod incidents;
mod index;
mod item;
mod model;
mod models;
mod providers;
mod recommendations;
mod reliability;
mod snapshot_answers;
mod transparency;

use item::Item;
pub use snapshot_answers::SnapshotAnswers;
