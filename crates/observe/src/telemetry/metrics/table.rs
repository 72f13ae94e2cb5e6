//! The table of metrics. Each metric is declared once, with name, type, labels and meaning.
//!
//! Labels are closed sets with the sizes in [`LABELS`], so this file determines the maximum number of series. A test
//! limits this number.

use crate::telemetry::process;
use scoregate_base::limits::LimitRule;

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MetricKind {
    /// A value that only increases.
    Counter,
    /// A value that increases and decreases.
    Gauge,
    /// Counts of observations up to each of these bounds.
    Histogram(&'static [f64]),
}

/// A declared metric.
#[derive(Debug)]
pub struct MetricRow {
    /// The name, which ends with the unit.
    pub name: &'static str,
    /// The type.
    pub kind: MetricKind,
    /// The names of the labels, each of which has a row in [`LABELS`].
    pub labels: &'static [&'static str],
    /// The help text, for the reference and the scrape.
    pub meaning: &'static str,
}

/// A label.
#[derive(Debug)]
pub struct LabelRow {
    /// The name.
    pub name: &'static str,
    /// Maximum number of values.
    pub most: usize,
}

/// Request latencies: from a tenth of the latency of a cache hit to the request timeout.
const FAST: &[f64] = &[
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.05, 0.25, 1.0, 5.0, 30.0,
];
/// Backend latencies.
const SLOW: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];
/// Durations of store operations: from the time of a local commit to the timeout of a distant database.
const COMMITS: &[f64] = &[
    0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0,
];
/// Ages of served documents, in seconds.
const AGES: &[f64] = &[
    1.0, 60.0, 600.0, 1_800.0, 3_600.0, 7_200.0, 21_600.0, 86_400.0, 604_800.0,
];

/// All labels. Clients cannot choose any value.
#[rustfmt::skip]
pub static LABELS: &[LabelRow] = &[
    LabelRow { name: "endpoint", most: 49 }, // one of the 13 built-in endpoints, one of up to 32 configured endpoints, a public page, `options`, or `none` for other paths
    LabelRow { name: "class", most: 4 }, // status class: 2xx, 3xx, 4xx or 5xx
    LabelRow { name: "tier", most: 9 }, // a configured tier (at most eight), or `none` without a known key
    LabelRow { name: "outcome", most: 6 }, // cache outcome; the same values are in `Cache-Status` and the access log
    LabelRow { name: "code", most: 23 }, // error code of the API
    LabelRow { name: "rule", most: LimitRule::ALL.len() }, // name of a limit, such as minute, day, month, owner_day or guard
    LabelRow { name: "address", most: 16 }, // host and port of a configured address of the backend; `built-in` for the built-in one
    LabelRow { name: "result", most: 8 }, // result of an upstream request (`circuit_open` and `queue_full`: not sent), a reload, the export of spans, an attempt to send an email, a step of signing in, or a report of a leaked key
    LabelRow { name: "change", most: 10 }, // create, describe or close an application; add, revoke or keep a key (cancel its expiry); rotate all keys; choose notices; add, remove or change a webhook; delete the account
    LabelRow { name: "decision", most: 2 }, // served on grace, or refused
    LabelRow { name: "operation", most: 7 }, // lease or return units, change keys, record key uses, record usage, record and read the status, or read the mail queue
    LabelRow { name: "use", most: 4 }, // leased, delivered, returned, or lost to a failure
    LabelRow { name: "reason", most: 10 }, // done, failed, a timeout (head, idle, request, write), displaced by another connection, address limit, application limit, failed TLS handshake
    LabelRow { name: "scope", most: 2 }, // limit on pending responses that was reached: per connection or per process
    LabelRow { name: "setting", most: 8 }, // setting that names the files: tls, upstream (certificates for the backend), store.password, admin.token, upstream.credential, mail.password, operator.webhook_secret, leaks.public_keys
    LabelRow { name: "log", most: 2 }, // the access log (standard output) or the event log (standard error)
    LabelRow { name: "table", most: 7 }, // table of the shared store whose rows change in normal operation: ledger_days, ledger_nodes, minute_pools, keys, request_nodes, documents or document_contents
    LabelRow { name: "version", most: 1 }, // version of the program
    LabelRow { name: "suspicion", most: 4 }, // mirror, shared_key, several_accounts or inefficient_poller
    LabelRow { name: "direction", most: 2 }, // forward or backward
    LabelRow { name: "kind", most: 8 }, // purpose of a message: a sign-in link, a message from the operator, a notice of a kind that the owner chose, or a message to a webhook
    LabelRow { name: "pool", most: 2 }, // requests served from the cache, and requests that wait for the backend or the ledger
];

/// All metrics.
#[rustfmt::skip]
pub static METRICS: &[MetricRow] = &[
    MetricRow { name: "scoregate_requests_total", kind: MetricKind::Counter, labels: &["endpoint", "class"], meaning: "Responses sent, by endpoint and status class." },
    MetricRow { name: "scoregate_request_duration_seconds", kind: MetricKind::Histogram(FAST), labels: &["endpoint"], meaning: "Time from the parsed request head to the finished response." },
    MetricRow { name: "scoregate_tier_requests_total", kind: MetricKind::Counter, labels: &["tier", "class"], meaning: "Responses sent, by tier of the caller and status class." },
    MetricRow { name: "scoregate_refusals_total", kind: MetricKind::Counter, labels: &["code"], meaning: "Refused requests, by error code." },
    MetricRow { name: "scoregate_client_disconnects_total", kind: MetricKind::Counter, labels: &[], meaning: "Requests whose client disconnected before the response." },
    MetricRow { name: "scoregate_panics_total", kind: MetricKind::Counter, labels: &[], meaning: "Panics during a request or a fetch. Each is a bug, and has a line in the event log." },
    MetricRow { name: "scoregate_requests_in_progress", kind: MetricKind::Gauge, labels: &[], meaning: "Requests that wait for keys, a slot, units or the backend. Other requests are answered without waiting." },
    MetricRow { name: "scoregate_concurrency_in_use", kind: MetricKind::Gauge, labels: &["pool"], meaning: "Concurrency slots in use." },
    MetricRow { name: "scoregate_concurrency_limit", kind: MetricKind::Gauge, labels: &["pool"], meaning: "Number of concurrency slots." },
    MetricRow { name: "scoregate_overload_queued_total", kind: MetricKind::Counter, labels: &["pool"], meaning: "Requests that were queued because no concurrency slot was free." },
    MetricRow { name: "scoregate_overload_refused_total", kind: MetricKind::Counter, labels: &["pool"], meaning: "Requests refused because the queue was full or its timeout expired." },
    MetricRow { name: "scoregate_documents_served_total", kind: MetricKind::Counter, labels: &["outcome"], meaning: "Documents served (200 and 304), by cache outcome." },
    MetricRow { name: "scoregate_document_age_seconds", kind: MetricKind::Histogram(AGES), labels: &[], meaning: "Time since the backend last confirmed the served document." },
    MetricRow { name: "scoregate_not_modified_total", kind: MetricKind::Counter, labels: &[], meaning: "Responses with status 304." },
    MetricRow { name: "scoregate_cache_documents", kind: MetricKind::Gauge, labels: &[], meaning: "Stored documents." },
    MetricRow { name: "scoregate_cache_bytes", kind: MetricKind::Gauge, labels: &[], meaning: "Size of stored bodies." },
    MetricRow { name: "scoregate_fetches_in_progress", kind: MetricKind::Gauge, labels: &[], meaning: "Fetches in progress." },
    MetricRow { name: "scoregate_fetch_waiters", kind: MetricKind::Histogram(&[1.0, 2.0, 5.0, 10.0, 50.0, 250.0, 1_000.0, 10_000.0]), labels: &[], meaning: "Number of requests that waited for each fetch." },
    MetricRow { name: "scoregate_upstream_requests_total", kind: MetricKind::Counter, labels: &["result"], meaning: "Requests to the backend, by result." },
    MetricRow { name: "scoregate_upstream_duration_seconds", kind: MetricKind::Histogram(SLOW), labels: &[], meaning: "Duration of requests to the backend, queueing included." },
    MetricRow { name: "scoregate_upstream_retries_total", kind: MetricKind::Counter, labels: &[], meaning: "Requests to the backend that were repeated because an idle connection had been closed." },
    MetricRow { name: "scoregate_upstream_address_requests_total", kind: MetricKind::Counter, labels: &["address"], meaning: "Requests sent to the backend, by address." },
    MetricRow { name: "scoregate_upstream_address_failures_total", kind: MetricKind::Counter, labels: &["address"], meaning: "Failed requests to the backend (unreachable, timeout or error status), by address." },
    MetricRow { name: "scoregate_upstream_address_usable", kind: MetricKind::Gauge, labels: &["address"], meaning: "1 while the circuit breaker of an address of the backend is closed, else 0." },
    MetricRow { name: "scoregate_upstream_failovers_total", kind: MetricKind::Counter, labels: &[], meaning: "Failed requests that were repeated at another address of the backend." },
    MetricRow { name: "scoregate_upstream_queue_length", kind: MetricKind::Gauge, labels: &[], meaning: "Requests queued for the backend." },
    MetricRow { name: "scoregate_upstream_breaker_state", kind: MetricKind::Gauge, labels: &[], meaning: "State of the circuit breaker: 0 closed, 1 half-open, 2 open; with several addresses, the state of the most usable address." },
    MetricRow { name: "scoregate_shared_fetches_total", kind: MetricKind::Counter, labels: &["result"], meaning: "Fetches that gateways share: taken from another gateway, claimed by this gateway, rejected because a newer claim existed, failed at another gateway, or made alone because the store could not be used." },
    MetricRow { name: "scoregate_refreshes_total", kind: MetricKind::Counter, labels: &[], meaning: "Detected refreshes of the backend." },
    MetricRow { name: "scoregate_refresh_overdue_seconds", kind: MetricKind::Gauge, labels: &[], meaning: "Time since the backend's refresh was due; 0 if it is not overdue." },
    MetricRow { name: "scoregate_next_refresh_seconds", kind: MetricKind::Gauge, labels: &[], meaning: "Time until the expected refresh of the backend; 0 if it is overdue or unknown." },
    MetricRow { name: "scoregate_disk_mirror_bytes", kind: MetricKind::Gauge, labels: &[], meaning: "Size of the documents in the disk mirror." },
    MetricRow { name: "scoregate_disk_mirror_failures_total", kind: MetricKind::Counter, labels: &[], meaning: "Failed writes and removals in the disk mirror." },
    MetricRow { name: "scoregate_limited_total", kind: MetricKind::Counter, labels: &["rule", "tier"], meaning: "Requests refused by a rate limit or quota." },
    MetricRow { name: "scoregate_quota_units_total", kind: MetricKind::Counter, labels: &["use"], meaning: "Units of daily quotas: leased, delivered, returned, lost." },
    MetricRow { name: "scoregate_store_changes_age_seconds", kind: MetricKind::Gauge, labels: &[], meaning: "Time since changes to applications and keys were last read from the shared store; 0 without a shared store." },
    MetricRow { name: "scoregate_store_clock_offset_seconds", kind: MetricKind::Gauge, labels: &[], meaning: "Difference between the shared store's clock, which the gateway uses, and this machine's clock." },
    MetricRow { name: "scoregate_store_local_copy", kind: MetricKind::Gauge, labels: &[], meaning: "1 while the gateway serves from the local copy of the keys because the shared store was unreachable at startup, else 0." },
    MetricRow { name: "scoregate_store_local_copy_age_seconds", kind: MetricKind::Gauge, labels: &[], meaning: "Age of the local copy of the keys on disk; 0 without a shared store." },
    MetricRow { name: "scoregate_fleet_gateways", kind: MetricKind::Gauge, labels: &[], meaning: "Live gateways on the store, including this gateway, as last read from the store." },
    MetricRow { name: "scoregate_fleet_gateways_limit", kind: MetricKind::Gauge, labels: &[], meaning: "Maximum number of gateways on the store (`store.gateways`); 1 without a shared store." },
    MetricRow { name: "scoregate_ledger_unreachable", kind: MetricKind::Gauge, labels: &[], meaning: "1 while the ledger cannot be read or written, else 0." },
    MetricRow { name: "scoregate_grace_share", kind: MetricKind::Gauge, labels: &[], meaning: "1 while this gateway holds a share of today's grace and can serve paid applications while the ledger is unreachable, else 0." },
    MetricRow { name: "scoregate_ledger_unreachable_decisions_total", kind: MetricKind::Counter, labels: &["decision"], meaning: "Requests without a leased unit while the ledger was unreachable, by decision." },
    MetricRow { name: "scoregate_lease_waits_total", kind: MetricKind::Counter, labels: &[], meaning: "Requests that waited for a lease." },
    MetricRow { name: "scoregate_store_duration_seconds", kind: MetricKind::Histogram(COMMITS), labels: &["operation"], meaning: "Duration of store operations, queueing included." },
    MetricRow { name: "scoregate_store_failures_total", kind: MetricKind::Counter, labels: &["operation"], meaning: "Failed store operations." },
    MetricRow { name: "scoregate_store_exchanges_total", kind: MetricKind::Counter, labels: &[], meaning: "Committed shared-store transactions that applied ledger reports." },
    MetricRow { name: "scoregate_store_exchange_reports_total", kind: MetricKind::Counter, labels: &[], meaning: "Ledger reports applied in committed shared-store transactions." },
    MetricRow { name: "scoregate_store_standby_missing", kind: MetricKind::Gauge, labels: &[], meaning: "1 while the shared store has no synchronous standby, so that a failover can lose the last changes and grants; else 0, also without a shared store." },
    MetricRow { name: "scoregate_store_live_rows", kind: MetricKind::Gauge, labels: &["table"], meaning: "Estimated rows in the tables of the shared store." },
    MetricRow { name: "scoregate_store_dead_rows", kind: MetricKind::Gauge, labels: &["table"], meaning: "Estimated dead rows (outdated versions that were not removed yet) in the tables of the shared store." },
    MetricRow { name: "scoregate_store_file_invalid", kind: MetricKind::Gauge, labels: &[], meaning: "1 while the store file or its write-ahead log is missing or was replaced: changes are refused and no units are leased." },
    MetricRow { name: "scoregate_store_damaged", kind: MetricKind::Gauge, labels: &[], meaning: "1 if damage to the store was found since startup; the event log has the recovery steps." },
    MetricRow { name: "scoregate_store_unreadable_records", kind: MetricKind::Gauge, labels: &[], meaning: "Records of applications or keys that could not be read and were skipped." },
    MetricRow { name: "scoregate_keys", kind: MetricKind::Gauge, labels: &[], meaning: "Keys in the key directory, including recently revoked keys." },
    MetricRow { name: "scoregate_site_requests_total", kind: MetricKind::Counter, labels: &["class"], meaning: "Responses of the account pages, by status class." },
    MetricRow { name: "scoregate_sign_in_links_total", kind: MetricKind::Counter, labels: &["result"], meaning: "Requests for an email link, by result." },
    MetricRow { name: "scoregate_sign_ins_total", kind: MetricKind::Counter, labels: &["result"], meaning: "Uses of email links, by result." },
    MetricRow { name: "scoregate_account_changes_total", kind: MetricKind::Counter, labels: &["change"], meaning: "Changes that owners made to their applications, keys and accounts." },
    MetricRow { name: "scoregate_leaked_keys_total", kind: MetricKind::Counter, labels: &["result"], meaning: "Tokens reported as leaked keys, by result: changed, repeated (all places were reported before), unknown (well-formed, but not a key of this service), foreign (not well-formed)." },
    MetricRow { name: "scoregate_mcp_requests_total", kind: MetricKind::Counter, labels: &["result"], meaning: "Requests to /mcp, by result: listed (a handshake, a list or a notification), preflight (OPTIONS), answered (a call with data), tool_error (a call that was refused), unauthenticated (a call without a valid key), rejected (anything else). Each call also counts as a request to its endpoint." },
    MetricRow { name: "scoregate_suspects", kind: MetricKind::Gauge, labels: &["suspicion"], meaning: "Applications that `scoregate suspects` lists for the last 7 complete days, by suspicion; determined once a day by the gateway that was started first; 0 on other gateways." },
    MetricRow { name: "scoregate_mails_total", kind: MetricKind::Counter, labels: &["kind", "result"], meaning: "Attempts to send an email, by result: sent, refused by the server and removed, deferred, or expired and removed." },
    MetricRow { name: "scoregate_mail_queue_length", kind: MetricKind::Gauge, labels: &[], meaning: "Messages in the store's mail queue; 0 if mail is not configured." },
    MetricRow { name: "scoregate_mail_oldest_age_seconds", kind: MetricKind::Gauge, labels: &[], meaning: "Age of the oldest message in the store's mail queue; 0 if it is empty or mail is not configured." },
    MetricRow { name: "scoregate_connections", kind: MetricKind::Gauge, labels: &[], meaning: "Open connections on the public port." },
    MetricRow { name: "scoregate_connections_limit", kind: MetricKind::Gauge, labels: &[], meaning: "Maximum number of open connections on the public port: the setting, or less if the limit on open files is lower." },
    MetricRow { name: "scoregate_connections_total", kind: MetricKind::Counter, labels: &["reason"], meaning: "Closed connections, by reason." },
    MetricRow { name: "scoregate_streams_refused_total", kind: MetricKind::Counter, labels: &["scope"], meaning: "HTTP/2 requests refused with REFUSED_STREAM because too many responses wait for their clients, by the scope of the limit." },
    MetricRow { name: "scoregate_bodies_refused_total", kind: MetricKind::Counter, labels: &[], meaning: "Request bodies that were not read because the memory for awaited bodies was used up: 32 MiB in total, 24 MiB for clients without a key." },
    MetricRow { name: "scoregate_config_rejected", kind: MetricKind::Gauge, labels: &[], meaning: "1 while the newest settings are rejected and the previous settings are in force; the event log has the errors." },
    MetricRow { name: "scoregate_reloads_total", kind: MetricKind::Counter, labels: &["result"], meaning: "Reloads of the settings, by result." },
    MetricRow { name: "scoregate_certificate_expiry_timestamp_seconds", kind: MetricKind::Gauge, labels: &[], meaning: "Earliest expiry of the certificates in use (public port, client certificate for the backend), as Unix time; 0 if there are none." },
    MetricRow { name: "scoregate_files_rejected", kind: MetricKind::Gauge, labels: &["setting"], meaning: "1 while files that a setting names are rejected and their previous contents are in use; the event log has the reason." },
    MetricRow { name: "scoregate_accept_failures_total", kind: MetricKind::Counter, labels: &[], meaning: "Connections that could not be accepted." },
    MetricRow { name: "scoregate_log_lines_lost_total", kind: MetricKind::Counter, labels: &["log"], meaning: "Log lines that were dropped because the reader was too slow or the disk was full." },
    MetricRow { name: "scoregate_trace_spans_total", kind: MetricKind::Counter, labels: &["result"], meaning: "Recorded spans: exported, dropped because the queue was full, or failed because the collector did not accept them." },
    MetricRow { name: "scoregate_heartbeat_age_seconds", kind: MetricKind::Gauge, labels: &[], meaning: "Time since the last heartbeat of the public port's runtime; there are two per second. Above 5 s the side port reports not ready, above 20 s not alive." },
    MetricRow { name: "scoregate_clock_steps_total", kind: MetricKind::Counter, labels: &["direction"], meaning: "Steps of the wall clock of more than a minute relative to the boot-time clock." },
    MetricRow { name: "scoregate_data_dir_free_bytes", kind: MetricKind::Gauge, labels: &[], meaning: "Free space of the data directory's file system for unprivileged processes." },
    MetricRow { name: "scoregate_data_dir_size_bytes", kind: MetricKind::Gauge, labels: &[], meaning: "Size of the data directory's file system." },
    MetricRow { name: "scoregate_last_backup_size_bytes", kind: MetricKind::Gauge, labels: &[], meaning: "Size of the last successful `store backup`; 0 if there was none; absent with a shared store." },
    MetricRow { name: "scoregate_last_backup_timestamp_seconds", kind: MetricKind::Gauge, labels: &[], meaning: "Unix time of the last successful `store backup`; 0 if there was none; absent with a shared store." },
    MetricRow { name: "scoregate_memory_limit_bytes", kind: MetricKind::Gauge, labels: &[], meaning: "Memory limit of the process: the control group's limit or the machine's memory, whichever is lower." },
    MetricRow { name: "scoregate_cpu_limit_cores", kind: MetricKind::Gauge, labels: &[], meaning: "Processor cores available to the process, rounded down." },
    MetricRow { name: "scoregate_build_info", kind: MetricKind::Gauge, labels: &["version"], meaning: "Always 1; the label is the version." },
    MetricRow { name: process::CPU, kind: MetricKind::Counter, labels: &[], meaning: "Processor time of the process." },
    MetricRow { name: "process_resident_memory_bytes", kind: MetricKind::Gauge, labels: &[], meaning: "Resident memory." },
    MetricRow { name: "process_open_fds", kind: MetricKind::Gauge, labels: &[], meaning: "Open file descriptors." },
    MetricRow { name: "process_max_fds", kind: MetricKind::Gauge, labels: &[], meaning: "Maximum number of open file descriptors." },
    MetricRow { name: "process_threads", kind: MetricKind::Gauge, labels: &[], meaning: "Threads." },
    MetricRow { name: "process_start_time_seconds", kind: MetricKind::Gauge, labels: &[], meaning: "Start time of the process, as Unix time." },
];

/// Maximum number of series of all metrics together.
pub fn max_series() -> usize {
    METRICS.iter().map(MetricRow::most_series).sum()
}

impl MetricRow {
    fn most_series(&self) -> usize {
        let combinations: usize = self
            .labels
            .iter()
            .map(|name| {
                LABELS
                    .iter()
                    .find(|label| label.name == *name)
                    .map_or(usize::MAX, |label| label.most)
            })
            .product();
        let each = match self.kind {
            MetricKind::Counter | MetricKind::Gauge => 1,
            MetricKind::Histogram(bounds) => bounds.len() + 3, // +Inf, sum, count
        };
        combinations * each
    }
}
