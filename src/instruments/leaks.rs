//! The outcomes of reports of leaked keys.

use scoregate_observe::telemetry::metrics::metric_label;

metric_label! {
    /// The result of a report of a token as a leaked key.
    pub enum LeakOutcome: "result" {
        /// The key was revoked, or its expiry is set.
        Changed = "changed",
        /// All its places were reported before.
        Repeated = "repeated",
        /// It has the form of a key, and is none.
        Unknown = "unknown",
        /// It has another form.
        Foreign = "foreign",
    }
}
