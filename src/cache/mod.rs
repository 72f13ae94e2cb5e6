//! Stored documents, their freshness, and single flights for missing documents.
//!
//! Documents are stored in a moka cache, limited by bytes. [`freshness`] computes freshness with the gateway's clock.
//! [`SingleFlight`] merges concurrent fetches, which `documents` makes.

mod copies;
mod data_marks;
mod declared_fields;
mod document;
mod document_cache;
mod encode;
pub mod freshness;
mod listing;
mod members;
mod negative_cache;
mod paid_field;
mod refresh_interval;
#[cfg(test)]
pub(crate) mod sample;
mod single_flight;
mod stored;

pub use copies::is_current;
pub use data_marks::DataMarks;
pub use document::{
    Document, DocumentContent, DocumentForm, EnvelopeFields, ToolResultWriter, Validators,
};
pub use document_cache::Cache;
pub use encode::{ContentCoding, EncodedBodies, Representation, negotiate, quality};
pub use freshness::{Freshness, StaleWindows};
pub use members::{DuplicateMember, Member, Members};
pub use negative_cache::NegativeCache;
pub use paid_field::{BadContent, PAID_FIELD, without_member};
pub use refresh_interval::RefreshInterval;
pub use single_flight::{FlightCompletion, FlightLeader, FlightRole, SingleFlight};
pub use stored::{PublishedVersion, StoredDocument};
