//! Incidents: their records, and the scans that open and resolve them.

pub mod degradation_scan;
pub mod incident;
pub mod incidents;
pub mod outage_scan;
