//! THE table of metrics: each is declared once, with name, kind, labels and meaning.
//!
//! Labels are closed sets whose sizes stand in [`LABELS`], so the largest possible number of series is a sum over this
//! file and a test holds it. Not for: counting.

use crate::telemetry::process;

/// How a metric counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Only ever rises.
    Counter,
    /// Rises and falls.
    Gauge,
    /// How many observations fell below each of these bounds.
    Histogram(&'static [f64]),
}

/// A declared metric.
#[derive(Debug)]
pub struct Row {
    /// Its name, with its unit at the end.
    pub name: &'static str,
    /// How it counts.
    pub kind: Kind,
    /// The labels it has, each a name in [`LABELS`].
    pub labels: &'static [&'static str],
    /// What it says, for the reference page and the scrape.
    pub meaning: &'static str,
}

/// A set of words that a label may have.
#[derive(Debug)]
pub struct LabelRow {
    /// The label's name.
    pub name: &'static str,
    /// How many words it has at the most.
    pub most: usize,
    /// What it distinguishes.
    pub meaning: &'static str,
}

/// Request latencies: from a tenth of a hit to a whole deadline.
const FAST: &[f64] =
    &[0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.05, 0.25, 1.0, 5.0, 30.0];
/// Backend latencies.
const SLOW: &[f64] = &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];
/// Ages of what is served, in seconds.
const AGES: &[f64] = &[1.0, 60.0, 600.0, 1_800.0, 3_600.0, 7_200.0, 21_600.0, 86_400.0, 604_800.0];

/// Every label there is. A stranger can choose none of their words.
#[rustfmt::skip]
pub static LABELS: &[LabelRow] = &[
    LabelRow { name: "endpoint", most: 17, meaning: "the 13 endpoints, the pages without a key, and `none` for what named no endpoint" },
    LabelRow { name: "class", most: 4, meaning: "2xx, 3xx, 4xx or 5xx" },
    LabelRow { name: "tier", most: 9, meaning: "the configured tiers (eight at most), and `none` for callers without a known key" },
    LabelRow { name: "outcome", most: 6, meaning: "where the document came from; the word of `Cache-Status` and the log" },
    LabelRow { name: "code", most: 21, meaning: "the codes of the API's errors" },
    LabelRow { name: "rule", most: 3, meaning: "minute, day or guard" },
    LabelRow { name: "fetched", most: 8, meaning: "how a question to the backend ended; `resting` and `crowded` ones were not asked" },
    LabelRow { name: "decided", most: 2, meaning: "on grace, or refused" },
    LabelRow { name: "work", most: 4, meaning: "what the store was asked to do: grant a lease, take units back, make a change, remember uses of keys" },
    LabelRow { name: "use", most: 4, meaning: "what became of units of a day's quota: leased, delivered, returned, lost to a failure" },
    LabelRow { name: "closed", most: 9, meaning: "why a connection ended: done, failed, a deadline (head, idle, request, unread), displaced by another, refused to its address, no TLS" },
    LabelRow { name: "reload", most: 2, meaning: "settings that were read again: in force, or refused" },
    LabelRow { name: "log", most: 2, meaning: "the access log (standard output) or the event log (standard error)" },
    LabelRow { name: "version", most: 1, meaning: "the version of the program" },
    LabelRow { name: "direction", most: 2, meaning: "forward or backward" },
    LabelRow { name: "room", most: 2, meaning: "requests whose document is at hand, and those that wait for the backend" },
];

/// Every metric there is.
#[rustfmt::skip]
pub static METRICS: &[Row] = &[
    Row { name: "scoregate_requests_total", kind: Kind::Counter, labels: &["endpoint", "class"], meaning: "Requests answered." },
    Row { name: "scoregate_request_duration_seconds", kind: Kind::Histogram(FAST), labels: &["endpoint"], meaning: "From the parsed head to the finished answer." },
    Row { name: "scoregate_tier_requests_total", kind: Kind::Counter, labels: &["tier", "class"], meaning: "Requests answered, by the caller's tier." },
    Row { name: "scoregate_refusals_total", kind: Kind::Counter, labels: &["code"], meaning: "Requests refused, by the code in the body." },
    Row { name: "scoregate_clients_left_total", kind: Kind::Counter, labels: &[], meaning: "Requests whose client left before the answer." },
    Row { name: "scoregate_panics_total", kind: Kind::Counter, labels: &[], meaning: "Requests and fetches whose handling panicked: defects of ours, each in the log." },
    Row { name: "scoregate_requests_in_progress", kind: Kind::Gauge, labels: &[], meaning: "Requests being handled now." },
    Row { name: "scoregate_places_taken", kind: Kind::Gauge, labels: &["room"], meaning: "Places taken of those that requests have to run at once." },
    Row { name: "scoregate_places_limit", kind: Kind::Gauge, labels: &["room"], meaning: "Most requests that can run at once." },
    Row { name: "scoregate_overload_queued_total", kind: Kind::Counter, labels: &["room"], meaning: "Requests that found no free place and queued for one." },
    Row { name: "scoregate_overload_refused_total", kind: Kind::Counter, labels: &["room"], meaning: "Requests refused because there was no place, or none in time." },
    Row { name: "scoregate_documents_served_total", kind: Kind::Counter, labels: &["outcome"], meaning: "Documents served (200 and 304), by where they came from." },
    Row { name: "scoregate_document_age_seconds", kind: Kind::Histogram(AGES), labels: &[], meaning: "How long ago the backend confirmed what is served." },
    Row { name: "scoregate_not_modified_total", kind: Kind::Counter, labels: &[], meaning: "Answers that were a 304." },
    Row { name: "scoregate_cache_documents", kind: Kind::Gauge, labels: &[], meaning: "Documents stored." },
    Row { name: "scoregate_cache_bytes", kind: Kind::Gauge, labels: &[], meaning: "Bytes of stored bodies." },
    Row { name: "scoregate_flights", kind: Kind::Gauge, labels: &[], meaning: "Fetches under way." },
    Row { name: "scoregate_flight_passengers", kind: Kind::Histogram(&[1.0, 2.0, 5.0, 10.0, 50.0, 250.0, 1_000.0, 10_000.0]), labels: &[], meaning: "How many waited for one fetch." },
    Row { name: "scoregate_upstream_calls_total", kind: Kind::Counter, labels: &["fetched"], meaning: "Questions to the backend, by how they ended." },
    Row { name: "scoregate_upstream_duration_seconds", kind: Kind::Histogram(SLOW), labels: &[], meaning: "How long questions to the backend took, their time in line included." },
    Row { name: "scoregate_upstream_retries_total", kind: Kind::Counter, labels: &[], meaning: "Questions that went out once more, because their connection was being closed." },
    Row { name: "scoregate_upstream_waiting", kind: Kind::Gauge, labels: &[], meaning: "Questions that wait for their turn to be asked." },
    Row { name: "scoregate_upstream_health", kind: Kind::Gauge, labels: &[], meaning: "The backend: 0 works, 1 is on trial, 2 rests and is not asked." },
    Row { name: "scoregate_refreshes_total", kind: Kind::Counter, labels: &[], meaning: "Refreshes of the backend that were seen." },
    Row { name: "scoregate_refresh_overdue_seconds", kind: Kind::Gauge, labels: &[], meaning: "How long the backend's next refresh is overdue; 0 while it is not." },
    Row { name: "scoregate_next_refresh_seconds", kind: Kind::Gauge, labels: &[], meaning: "How long until the backend's next refresh is expected; 0 once it is overdue, and before anything was fetched." },
    Row { name: "scoregate_shelf_bytes", kind: Kind::Gauge, labels: &[], meaning: "Bytes of documents kept on disk." },
    Row { name: "scoregate_shelf_failures_total", kind: Kind::Counter, labels: &[], meaning: "Documents that could not be written to disk, or removed from it." },
    Row { name: "scoregate_limited_total", kind: Kind::Counter, labels: &["rule", "tier"], meaning: "Requests refused by a limit." },
    Row { name: "scoregate_quota_units_total", kind: Kind::Counter, labels: &["use"], meaning: "Units of day quotas." },
    Row { name: "scoregate_ledger_away", kind: Kind::Gauge, labels: &[], meaning: "1 while the ledger cannot be reached or written, else 0." },
    Row { name: "scoregate_ledger_away_decisions_total", kind: Kind::Counter, labels: &["decided"], meaning: "Requests that found no leased unit while the ledger was away, by what was decided." },
    Row { name: "scoregate_lease_waits_total", kind: Kind::Counter, labels: &[], meaning: "Requests that waited for a lease." },
    Row { name: "scoregate_store_duration_seconds", kind: Kind::Histogram(SLOW), labels: &["work"], meaning: "How long the store took for some work, waiting for its turn included." },
    Row { name: "scoregate_store_failures_total", kind: Kind::Counter, labels: &["work"], meaning: "Work that the store could not do because it failed." },
    Row { name: "scoregate_store_misplaced", kind: Kind::Gauge, labels: &[], meaning: "1 while the store's file or its log is missing, or another file is in its place: changes are refused and no units are leased." },
    Row { name: "scoregate_store_damaged", kind: Kind::Gauge, labels: &[], meaning: "1 if the store was found to be damaged since the start: the log says the way back." },
    Row { name: "scoregate_store_skipped_records", kind: Kind::Gauge, labels: &[], meaning: "Records of applications or keys that could not be read and were passed over." },
    Row { name: "scoregate_keys", kind: Kind::Gauge, labels: &[], meaning: "Keys that are known, revoked ones that are still remembered included." },
    Row { name: "scoregate_connections", kind: Kind::Gauge, labels: &[], meaning: "Open connections on the public port." },
    Row { name: "scoregate_connections_limit", kind: Kind::Gauge, labels: &[], meaning: "Most connections that can be open on the public port: the setting, or fewer where the limit of open files is lower." },
    Row { name: "scoregate_connections_total", kind: Kind::Counter, labels: &["closed"], meaning: "Connections ended, by how." },
    Row { name: "scoregate_settings_refused", kind: Kind::Gauge, labels: &[], meaning: "1 while the settings that were read last cannot be used and older ones go on: the log says why." },
    Row { name: "scoregate_reloads_total", kind: Kind::Counter, labels: &["reload"], meaning: "How often it was asked to read the settings again, by what came of it." },
    Row { name: "scoregate_certificate_ends_timestamp_seconds", kind: Kind::Gauge, labels: &[], meaning: "When the first of the certificates in use ends, in seconds since 1970; 0 without TLS." },
    Row { name: "scoregate_certificates_refused", kind: Kind::Gauge, labels: &[], meaning: "1 while the certificates in the files cannot be used and older ones go on: the log says why." },
    Row { name: "scoregate_accept_failures_total", kind: Kind::Counter, labels: &[], meaning: "Connections that could not be accepted." },
    Row { name: "scoregate_log_lines_lost_total", kind: Kind::Counter, labels: &["log"], meaning: "Log lines that were not written because nobody read them in time, or because the disk was full." },
    Row { name: "scoregate_heartbeat_age_seconds", kind: Kind::Gauge, labels: &[], meaning: "Time since the public port's runtime last ran its heartbeat task, which it does twice a second. Above 5 s the side port reports not ready, above 20 s not alive." },
    Row { name: "scoregate_clock_steps_total", kind: Kind::Counter, labels: &["direction"], meaning: "Steps of the wall clock of more than a minute against the boot-time clock." },
    Row { name: "scoregate_data_dir_free_bytes", kind: Kind::Gauge, labels: &[], meaning: "Free space of the data directory's file system, as an unprivileged process can use it." },
    Row { name: "scoregate_data_dir_size_bytes", kind: Kind::Gauge, labels: &[], meaning: "Size of the data directory's file system." },
    Row { name: "scoregate_last_backup_timestamp_seconds", kind: Kind::Gauge, labels: &[], meaning: "When the last `store backup` or `store export` of the data directory succeeded, in seconds since 1970; 0 if none ever did." },
    Row { name: "scoregate_memory_limit_bytes", kind: Kind::Gauge, labels: &[], meaning: "Memory that the process may use: the limit of its control group, or the machine's memory if that is less." },
    Row { name: "scoregate_cpu_limit_cores", kind: Kind::Gauge, labels: &[], meaning: "Processor cores that the process may use, rounded down." },
    Row { name: "scoregate_build_info", kind: Kind::Gauge, labels: &["version"], meaning: "Always 1: which version runs." },
    Row { name: process::CPU, kind: Kind::Counter, labels: &[], meaning: "Seconds that the process has spent on processors." },
    Row { name: "process_resident_memory_bytes", kind: Kind::Gauge, labels: &[], meaning: "Memory of the process that is in use." },
    Row { name: "process_open_fds", kind: Kind::Gauge, labels: &[], meaning: "Open files, connections included." },
    Row { name: "process_max_fds", kind: Kind::Gauge, labels: &[], meaning: "The most files that may be open." },
    Row { name: "process_threads", kind: Kind::Gauge, labels: &[], meaning: "Threads." },
    Row { name: "process_start_time_seconds", kind: Kind::Gauge, labels: &[], meaning: "When the process began to serve, in seconds since 1970." },
];

/// The most series all metrics together can ever have.
pub fn most_series() -> usize {
    METRICS.iter().map(Row::most_series).sum()
}

impl Row {
    fn most_series(&self) -> usize {
        let size = |name: &&str| {
            LABELS.iter().find(|label| label.name == *name).map_or(usize::MAX, |label| label.most)
        };
        let combinations: usize = self.labels.iter().map(size).product();
        let each = match self.kind {
            Kind::Counter | Kind::Gauge => 1,
            Kind::Histogram(bounds) => bounds.len() + 3, // +Inf, sum, count
        };
        combinations * each
    }
}
