//! Label values for reports of leaked keys.

use scoregate_observe::telemetry::metrics::metric_label;

metric_label! {
    /// The result of a report that a token is a leaked key.
    pub enum LeakOutcome: "result" {
        /// The key was revoked, or its expiry was set.
        Changed = "changed",
        /// All locations of the key had already been reported.
        Repeated = "repeated",
        /// The token has the form of a key, but no such key exists.
        Unknown = "unknown",
        /// The token does not have the form of a key.
        Foreign = "foreign",
    }
}
