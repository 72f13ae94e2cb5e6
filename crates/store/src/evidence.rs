//! Evidence of how applications use the service: hours of each gateway, merged into days.
//!
//! A gateway records an hour once it has ended, or when it stops, under the number of its process. An hour may be recorded
//! again, for example if the outcome was unknown, until it is merged: from then on it would be counted twice. So hours are
//! merged some time after they ended. An hour that another gateway delivers even later is added to its day.
//!
//! Records have no addresses. Their hashes have a key for each day, which is deleted after two days, so they cannot be compared
//! with known addresses any more. Days are kept for [`EVIDENCE_DAYS_KEPT`] days before the current one, hours that were not
//! merged for three.
//!
//! [`EVIDENCE_DAYS_KEPT`]: scoregate_base::evidence::EVIDENCE_DAYS_KEPT

use scoregate_base::clock::Day;
use scoregate_base::evidence::{DayEvidence, HourEvidence};
use scoregate_base::keys::ApplicationId;

/// Days after which the key of a day is deleted.
pub(crate) const KEY_DAYS: u32 = 2;
/// Days after which hours that were not merged are deleted.
pub(crate) const HOUR_DAYS: u32 = 3;

/// An hour of an application at one gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HourRecord {
    /// The application.
    pub application: ApplicationId,
    /// The hour.
    pub evidence: HourEvidence,
}

/// A query of days.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvidenceQuery {
    /// The application; all without one.
    pub application: Option<ApplicationId>,
    /// The first day.
    pub first: Day,
    /// The last day.
    pub last: Day,
}

/// A day of an application at all gateways.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DayRecord {
    /// The application.
    pub application: ApplicationId,
    /// The day.
    pub day: Day,
    /// The merged hours.
    pub evidence: DayEvidence,
}
