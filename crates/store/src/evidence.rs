//! Evidence of how applications use the service: hours of each gateway, merged into days.
//!
//! A gateway records an hour under its process number, when the hour has ended or the gateway stops. Until an hour is
//! merged, it may be recorded again, for example if the outcome was unknown. After the merge, it would be counted
//! twice. So hours are merged some time after they have ended. An hour that another gateway records later is added to the merged
//! day.
//!
//! Records contain no addresses, only hashes of them. The key of the hashes changes every day and is deleted after two days.
//! After that, the hashes cannot be compared with known addresses. The [`EVIDENCE_DAYS_KEPT`] days before the current day are
//! kept, and unmerged hours are kept for three days.
//!
//! [`EVIDENCE_DAYS_KEPT`]: scoregate_base::evidence::EVIDENCE_DAYS_KEPT

use scoregate_base::{
    clock::Day,
    evidence::{DayEvidence, HourEvidence},
    keys::ApplicationId,
};

/// Days after which the hash key of a day is deleted.
pub const KEY_DAYS: u32 = 2;
/// Days after which unmerged hours are deleted.
pub const HOUR_DAYS: u32 = 3;

/// An hour of an application, as recorded by one gateway.
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
    /// The application; `None` for all.
    pub application: Option<ApplicationId>,
    /// The first day.
    pub first: Day,
    /// The last day.
    pub last: Day,
}

/// A day of an application, merged over all gateways.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DayRecord {
    /// The application.
    pub application: ApplicationId,
    /// The day.
    pub day: Day,
    /// The merged hours.
    pub evidence: DayEvidence,
}
