//! THE table of metrics: each is declared once, with name, kind, labels and meaning.
//!
//! Labels are closed sets whose sizes stand in [`LABELS`], so the largest possible number of series is a sum over this
//! file and a test holds it. Not for: counting.

use crate::telemetry::process;

/// How a metric counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MetricKind {
    /// Only ever rises.
    Counter,
    /// Rises and falls.
    Gauge,
    /// How many observations fell below each of these bounds.
    Histogram(&'static [f64]),
}

/// A declared metric.
#[derive(Debug)]
pub struct MetricRow {
    /// Its name, with its unit at the end.
    pub name: &'static str,
    /// How it counts.
    pub kind: MetricKind,
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
    LabelRow { name: "result", most: 8, meaning: "result of an upstream request (`circuit_open` and `queue_full` requests were not sent), or of a reload" },
    LabelRow { name: "decision", most: 2, meaning: "on grace, or refused" },
    LabelRow { name: "operation", most: 4, meaning: "what the store was asked to do: grant a lease, take units back, make a change, remember uses of keys" },
    LabelRow { name: "use", most: 4, meaning: "what became of units of a day's quota: leased, delivered, returned, lost to a failure" },
    LabelRow { name: "reason", most: 9, meaning: "why a connection ended: done, failed, a deadline (head, idle, request, unread), displaced by another, refused to its address, no TLS" },
    LabelRow { name: "log", most: 2, meaning: "the access log (standard output) or the event log (standard error)" },
    LabelRow { name: "version", most: 1, meaning: "the version of the program" },
    LabelRow { name: "direction", most: 2, meaning: "forward or backward" },
    LabelRow { name: "pool", most: 2, meaning: "requests whose document is at hand, and those that wait for the backend" },
];

/// Every metric there is.
#[rustfmt::skip]
pub static METRICS: &[MetricRow] = &[
    MetricRow { name: "scoregate_requests_total", kind: MetricKind::Counter, labels: &["endpoint", "class"], meaning: "Requests answered." },
    MetricRow { name: "scoregate_request_duration_seconds", kind: MetricKind::Histogram(FAST), labels: &["endpoint"], meaning: "From the parsed head to the finished answer." },
    MetricRow { name: "scoregate_tier_requests_total", kind: MetricKind::Counter, labels: &["tier", "class"], meaning: "Requests answered, by the caller's tier." },
    MetricRow { name: "scoregate_refusals_total", kind: MetricKind::Counter, labels: &["code"], meaning: "Requests refused, by the code in the body." },
    MetricRow { name: "scoregate_client_disconnects_total", kind: MetricKind::Counter, labels: &[], meaning: "Requests whose client left before the answer." },
    MetricRow { name: "scoregate_panics_total", kind: MetricKind::Counter, labels: &[], meaning: "Requests and fetches whose handling panicked: defects of ours, each in the log." },
    MetricRow { name: "scoregate_requests_in_progress", kind: MetricKind::Gauge, labels: &[], meaning: "Requests being handled now." },
    MetricRow { name: "scoregate_concurrency_in_use", kind: MetricKind::Gauge, labels: &["pool"], meaning: "Places taken of those that requests have to run at once." },
    MetricRow { name: "scoregate_concurrency_limit", kind: MetricKind::Gauge, labels: &["pool"], meaning: "Most requests that can run at once." },
    MetricRow { name: "scoregate_overload_queued_total", kind: MetricKind::Counter, labels: &["pool"], meaning: "Requests that found no free place and queued for one." },
    MetricRow { name: "scoregate_overload_refused_total", kind: MetricKind::Counter, labels: &["pool"], meaning: "Requests refused because there was no place, or none in time." },
    MetricRow { name: "scoregate_documents_served_total", kind: MetricKind::Counter, labels: &["outcome"], meaning: "Documents served (200 and 304), by where they came from." },
    MetricRow { name: "scoregate_document_age_seconds", kind: MetricKind::Histogram(AGES), labels: &[], meaning: "How long ago the backend confirmed what is served." },
    MetricRow { name: "scoregate_not_modified_total", kind: MetricKind::Counter, labels: &[], meaning: "Answers that were a 304." },
    MetricRow { name: "scoregate_cache_documents", kind: MetricKind::Gauge, labels: &[], meaning: "Documents stored." },
    MetricRow { name: "scoregate_cache_bytes", kind: MetricKind::Gauge, labels: &[], meaning: "Bytes of stored bodies." },
    MetricRow { name: "scoregate_fetches_in_progress", kind: MetricKind::Gauge, labels: &[], meaning: "Fetches under way." },
    MetricRow { name: "scoregate_fetch_waiters", kind: MetricKind::Histogram(&[1.0, 2.0, 5.0, 10.0, 50.0, 250.0, 1_000.0, 10_000.0]), labels: &[], meaning: "How many waited for one fetch." },
    MetricRow { name: "scoregate_upstream_requests_total", kind: MetricKind::Counter, labels: &["result"], meaning: "Questions to the backend, by how they ended." },
    MetricRow { name: "scoregate_upstream_duration_seconds", kind: MetricKind::Histogram(SLOW), labels: &[], meaning: "How long questions to the backend took, their time in line included." },
    MetricRow { name: "scoregate_upstream_retries_total", kind: MetricKind::Counter, labels: &[], meaning: "Questions that went out once more, because their connection was being closed." },
    MetricRow { name: "scoregate_upstream_queue_length", kind: MetricKind::Gauge, labels: &[], meaning: "Questions that wait for their turn to be asked." },
    MetricRow { name: "scoregate_upstream_breaker_state", kind: MetricKind::Gauge, labels: &[], meaning: "The backend: 0 works, 1 is on trial, 2 rests and is not asked." },
    MetricRow { name: "scoregate_refreshes_total", kind: MetricKind::Counter, labels: &[], meaning: "Refreshes of the backend that were seen." },
    MetricRow { name: "scoregate_refresh_overdue_seconds", kind: MetricKind::Gauge, labels: &[], meaning: "How long the backend's next refresh is overdue; 0 while it is not." },
    MetricRow { name: "scoregate_next_refresh_seconds", kind: MetricKind::Gauge, labels: &[], meaning: "How long until the backend's next refresh is expected; 0 once it is overdue, and before anything was fetched." },
    MetricRow { name: "scoregate_disk_mirror_bytes", kind: MetricKind::Gauge, labels: &[], meaning: "Bytes of documents kept on disk." },
    MetricRow { name: "scoregate_disk_mirror_failures_total", kind: MetricKind::Counter, labels: &[], meaning: "Documents that could not be written to disk, or removed from it." },
    MetricRow { name: "scoregate_limited_total", kind: MetricKind::Counter, labels: &["rule", "tier"], meaning: "Requests refused by a limit." },
    MetricRow { name: "scoregate_quota_units_total", kind: MetricKind::Counter, labels: &["use"], meaning: "Units of day quotas." },
    MetricRow { name: "scoregate_ledger_unreachable", kind: MetricKind::Gauge, labels: &[], meaning: "1 while the ledger cannot be reached or written, else 0." },
    MetricRow { name: "scoregate_ledger_unreachable_decisions_total", kind: MetricKind::Counter, labels: &["decision"], meaning: "Requests that found no leased unit while the ledger was away, by what was decided." },
    MetricRow { name: "scoregate_lease_waits_total", kind: MetricKind::Counter, labels: &[], meaning: "Requests that waited for a lease." },
    MetricRow { name: "scoregate_store_duration_seconds", kind: MetricKind::Histogram(SLOW), labels: &["operation"], meaning: "How long the store took for some work, waiting for its turn included." },
    MetricRow { name: "scoregate_store_failures_total", kind: MetricKind::Counter, labels: &["operation"], meaning: "Work that the store could not do because it failed." },
    MetricRow { name: "scoregate_store_file_invalid", kind: MetricKind::Gauge, labels: &[], meaning: "1 while the store's file or its log is missing, or another file is in its place: changes are refused and no units are leased." },
    MetricRow { name: "scoregate_store_damaged", kind: MetricKind::Gauge, labels: &[], meaning: "1 if the store was found to be damaged since the start: the log says the way back." },
    MetricRow { name: "scoregate_store_unreadable_records", kind: MetricKind::Gauge, labels: &[], meaning: "Records of applications or keys that could not be read and were passed over." },
    MetricRow { name: "scoregate_keys", kind: MetricKind::Gauge, labels: &[], meaning: "Keys that are known, revoked ones that are still remembered included." },
    MetricRow { name: "scoregate_connections", kind: MetricKind::Gauge, labels: &[], meaning: "Open connections on the public port." },
    MetricRow { name: "scoregate_connections_limit", kind: MetricKind::Gauge, labels: &[], meaning: "Most connections that can be open on the public port: the setting, or fewer where the limit of open files is lower." },
    MetricRow { name: "scoregate_connections_total", kind: MetricKind::Counter, labels: &["reason"], meaning: "Connections ended, by how." },
    MetricRow { name: "scoregate_config_rejected", kind: MetricKind::Gauge, labels: &[], meaning: "1 while the settings that were read last cannot be used and older ones go on: the log says why." },
    MetricRow { name: "scoregate_reloads_total", kind: MetricKind::Counter, labels: &["result"], meaning: "How often it was asked to read the settings again, by what came of it." },
    MetricRow { name: "scoregate_certificate_expiry_timestamp_seconds", kind: MetricKind::Gauge, labels: &[], meaning: "When the first of the certificates in use ends, in seconds since 1970; 0 without TLS." },
    MetricRow { name: "scoregate_certificates_rejected", kind: MetricKind::Gauge, labels: &[], meaning: "1 while the certificates in the files cannot be used and older ones go on: the log says why." },
    MetricRow { name: "scoregate_accept_failures_total", kind: MetricKind::Counter, labels: &[], meaning: "Connections that could not be accepted." },
    MetricRow { name: "scoregate_log_lines_lost_total", kind: MetricKind::Counter, labels: &["log"], meaning: "Log lines that were not written because nobody read them in time, or because the disk was full." },
    MetricRow { name: "scoregate_heartbeat_age_seconds", kind: MetricKind::Gauge, labels: &[], meaning: "Time since the public port's runtime last ran its heartbeat task, which it does twice a second. Above 5 s the side port reports not ready, above 20 s not alive." },
    MetricRow { name: "scoregate_clock_steps_total", kind: MetricKind::Counter, labels: &["direction"], meaning: "Steps of the wall clock of more than a minute against the boot-time clock." },
    MetricRow { name: "scoregate_data_dir_free_bytes", kind: MetricKind::Gauge, labels: &[], meaning: "Free space of the data directory's file system, as an unprivileged process can use it." },
    MetricRow { name: "scoregate_data_dir_size_bytes", kind: MetricKind::Gauge, labels: &[], meaning: "Size of the data directory's file system." },
    MetricRow { name: "scoregate_last_backup_timestamp_seconds", kind: MetricKind::Gauge, labels: &[], meaning: "When the last `store backup` or `store export` of the data directory succeeded, in seconds since 1970; 0 if none ever did." },
    MetricRow { name: "scoregate_memory_limit_bytes", kind: MetricKind::Gauge, labels: &[], meaning: "Memory that the process may use: the limit of its control group, or the machine's memory if that is less." },
    MetricRow { name: "scoregate_cpu_limit_cores", kind: MetricKind::Gauge, labels: &[], meaning: "Processor cores that the process may use, rounded down." },
    MetricRow { name: "scoregate_build_info", kind: MetricKind::Gauge, labels: &["version"], meaning: "Always 1: which version runs." },
    MetricRow { name: process::CPU, kind: MetricKind::Counter, labels: &[], meaning: "Seconds that the process has spent on processors." },
    MetricRow { name: "process_resident_memory_bytes", kind: MetricKind::Gauge, labels: &[], meaning: "Memory of the process that is in use." },
    MetricRow { name: "process_open_fds", kind: MetricKind::Gauge, labels: &[], meaning: "Open files, connections included." },
    MetricRow { name: "process_max_fds", kind: MetricKind::Gauge, labels: &[], meaning: "The most files that may be open." },
    MetricRow { name: "process_threads", kind: MetricKind::Gauge, labels: &[], meaning: "Threads." },
    MetricRow { name: "process_start_time_seconds", kind: MetricKind::Gauge, labels: &[], meaning: "When the process began to serve, in seconds since 1970." },
];

/// The most series all metrics together can ever have.
pub fn most_series() -> usize {
    METRICS.iter().map(MetricRow::most_series).sum()
}

impl MetricRow {
    fn most_series(&self) -> usize {
        let size = |name: &&str| {
            LABELS.iter().find(|label| label.name == *name).map_or(usize::MAX, |label| label.most)
        };
        let combinations: usize = self.labels.iter().map(size).product();
        let each = match self.kind {
            MetricKind::Counter | MetricKind::Gauge => 1,
            MetricKind::Histogram(bounds) => bounds.len() + 3, // +Inf, sum, count
        };
        combinations * each
    }
}
