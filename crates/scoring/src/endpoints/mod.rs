//! The endpoints' data, one file each: a snapshot becomes items with exactly the fields of `routes::shapes`. A field
//! without a value is omitted: a client reads `null` as zero.
//!
//! Rendered when a snapshot is made, never per query; only the list of incidents is cut to its limit per query.

mod alerts;
mod degradations;
mod drift;
mod history;
mod incidents;
mod index;
mod instants;
mod model;
mod models;
mod providers;
mod recommendations;
mod reliability;
mod snapshot_answers;
mod transparency;

use instants::{instant, maybe_instant};
pub(super) use snapshot_answers::SnapshotAnswers;
