//! The endpoints' data, one file each: a snapshot becomes items with exactly the fields of `routes::shapes`.
//!
//! Rendered when a snapshot is made, never per query; only the list of incidents is cut to its limit per query.

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
pub(super) use snapshot_answers::SnapshotAnswers;
