//! Incidents: their records, and the scans that open and resolve them.

pub(super) mod degradation_scan;
pub(super) mod incident;
pub(super) mod incidents;
pub(super) mod outage_scan;
