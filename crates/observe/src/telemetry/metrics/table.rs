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

const fn label(name: &'static str, most: usize) -> LabelRow {
    LabelRow { name, most }
}

type Labels = &'static [&'static str];

const fn counter(name: &'static str, labels: Labels, meaning: &'static str) -> MetricRow {
    metric(name, MetricKind::Counter, labels, meaning)
}

const fn gauge(name: &'static str, labels: Labels, meaning: &'static str) -> MetricRow {
    metric(name, MetricKind::Gauge, labels, meaning)
}

const fn histogram(
    name: &'static str,
    bounds: &'static [f64],
    labels: Labels,
    meaning: &'static str,
) -> MetricRow {
    metric(name, MetricKind::Histogram(bounds), labels, meaning)
}

const fn metric(
    name: &'static str,
    kind: MetricKind,
    labels: Labels,
    meaning: &'static str,
) -> MetricRow {
    MetricRow {
        name,
        kind,
        labels,
        meaning,
    }
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
    label("endpoint", 49), // one of the 13 built-in endpoints, one of up to 32 configured endpoints, a public page, `options`, or `none` for other paths
    label("class", 4), // status class: 2xx, 3xx, 4xx or 5xx
    label("tier", 9), // a configured tier (at most eight), or `none` without a known key
    label("outcome", 6), // cache outcome; the same values are in `Cache-Status` and the access log
    label("code", 23), // error code of the API
    label("rule", LimitRule::ALL.len()), // name of a limit, such as minute, day, month, owner_day or guard
    label("address", 16), // host and port of a configured address of the backend; `built-in` for the built-in one
    label("result", 8), // result of an upstream request (`circuit_open` and `queue_full`: not sent), a reload, the export of spans, an attempt to send an email, a step of signing in, or a report of a leaked key
    label("change", 10), // create, describe or close an application; add, revoke or keep a key (cancel its expiry); rotate all keys; choose notices; add, remove or change a webhook; delete the account
    label("decision", 2), // served on grace, or refused
    label("operation", 7), // lease or return units, change keys, record key uses, record usage, record and read the status, or read the mail queue
    label("use", 4), // leased, delivered, returned, or lost to a failure
    label("reason", 10), // done, failed, a timeout (head, idle, request, write), displaced by another connection, address limit, application limit, failed TLS handshake
    label("scope", 2), // limit on pending responses that was reached: per connection or per process
    label("setting", 8), // setting that names the files: tls, upstream (certificates for the backend), store.password, admin.token, upstream.credential, mail.password, operator.webhook_secret, leaks.public_keys
    label("log", 2), // the access log (standard output) or the event log (standard error)
    label("table", 7), // table of the shared store whose rows change in normal operation: ledger_days, ledger_nodes, minute_pools, keys, request_nodes, documents or document_contents
    label("version", 1), // version of the program
    label("suspicion", 4), // mirror, shared_key, several_accounts or inefficient_poller
    label("direction", 2), // forward or backward
    label("kind", 8), // purpose of a message: a sign-in link, a message from the operator, a notice of a kind that the owner chose, or a message to a webhook
    label("pool", 2), // requests served from the cache, and requests that wait for the backend or the ledger
];

/// All metrics.
#[rustfmt::skip]
pub static METRICS: &[MetricRow] = &[
    counter("scoregate_requests_total", &["endpoint", "class"], "Responses sent, by endpoint and status class."),
    histogram("scoregate_request_duration_seconds", FAST, &["endpoint"], "Time from the parsed request head to the finished response."),
    counter("scoregate_tier_requests_total", &["tier", "class"], "Responses sent, by tier of the caller and status class."),
    counter("scoregate_refusals_total", &["code"], "Refused requests, by error code."),
    counter("scoregate_client_disconnects_total", &[], "Requests whose client disconnected before the response."),
    counter("scoregate_panics_total", &[], "Panics during a request or a fetch. Each is a bug, and has a line in the event log."),
    gauge("scoregate_requests_in_progress", &[], "Requests that wait for keys, a slot, units or the backend. Other requests are answered without waiting."),
    gauge("scoregate_concurrency_in_use", &["pool"], "Concurrency slots in use."),
    gauge("scoregate_concurrency_limit", &["pool"], "Number of concurrency slots."),
    counter("scoregate_overload_queued_total", &["pool"], "Requests that were queued because no concurrency slot was free."),
    counter("scoregate_overload_refused_total", &["pool"], "Requests refused because the queue was full or its timeout expired."),
    counter("scoregate_documents_served_total", &["outcome"], "Documents served (200 and 304), by cache outcome."),
    histogram("scoregate_document_age_seconds", AGES, &[], "Time since the backend last confirmed the served document."),
    counter("scoregate_not_modified_total", &[], "Responses with status 304."),
    gauge("scoregate_cache_documents", &[], "Stored documents."),
    gauge("scoregate_cache_bytes", &[], "Size of stored bodies."),
    gauge("scoregate_fetches_in_progress", &[], "Fetches in progress."),
    histogram("scoregate_fetch_waiters", &[1.0, 2.0, 5.0, 10.0, 50.0, 250.0, 1_000.0, 10_000.0], &[], "Number of requests that waited for each fetch."),
    counter("scoregate_upstream_requests_total", &["result"], "Requests to the backend, by result."),
    histogram("scoregate_upstream_duration_seconds", SLOW, &[], "Duration of requests to the backend, queueing included."),
    counter("scoregate_upstream_retries_total", &[], "Requests to the backend that were repeated because an idle connection had been closed."),
    counter("scoregate_upstream_address_requests_total", &["address"], "Requests sent to the backend, by address."),
    counter("scoregate_upstream_address_failures_total", &["address"], "Failed requests to the backend (unreachable, timeout or error status), by address."),
    gauge("scoregate_upstream_address_usable", &["address"], "1 while the circuit breaker of an address of the backend is closed, else 0."),
    counter("scoregate_upstream_failovers_total", &[], "Failed requests that were repeated at another address of the backend."),
    gauge("scoregate_upstream_queue_length", &[], "Requests queued for the backend."),
    gauge("scoregate_upstream_breaker_state", &[], "State of the circuit breaker: 0 closed, 1 half-open, 2 open; with several addresses, the state of the most usable address."),
    counter("scoregate_shared_fetches_total", &["result"], "Fetches that gateways share: taken from another gateway, claimed by this gateway, rejected because a newer claim existed, failed at another gateway, or made alone because the store could not be used."),
    counter("scoregate_refreshes_total", &[], "Detected refreshes of the backend."),
    gauge("scoregate_refresh_overdue_seconds", &[], "Time since the backend's refresh was due; 0 if it is not overdue."),
    gauge("scoregate_next_refresh_seconds", &[], "Time until the expected refresh of the backend; 0 if it is overdue or unknown."),
    gauge("scoregate_disk_mirror_bytes", &[], "Size of the documents in the disk mirror."),
    counter("scoregate_disk_mirror_failures_total", &[], "Failed writes and removals in the disk mirror."),
    counter("scoregate_limited_total", &["rule", "tier"], "Requests refused by a rate limit or quota."),
    counter("scoregate_quota_units_total", &["use"], "Units of daily quotas: leased, delivered, returned, lost."),
    gauge("scoregate_store_changes_age_seconds", &[], "Time since changes to applications and keys were last read from the shared store; 0 without a shared store."),
    gauge("scoregate_store_clock_offset_seconds", &[], "Difference between the shared store's clock, which the gateway uses, and this machine's clock."),
    gauge("scoregate_store_local_copy", &[], "1 while the gateway serves from the local copy of the keys because the shared store was unreachable at startup, else 0."),
    gauge("scoregate_store_local_copy_age_seconds", &[], "Age of the local copy of the keys on disk; 0 without a shared store."),
    gauge("scoregate_fleet_gateways", &[], "Live gateways on the store, including this gateway, as last read from the store."),
    gauge("scoregate_fleet_gateways_limit", &[], "Maximum number of gateways on the store (`store.gateways`); 1 without a shared store."),
    gauge("scoregate_ledger_unreachable", &[], "1 while the ledger cannot be read or written, else 0."),
    gauge("scoregate_grace_share", &[], "1 while this gateway holds a share of today's grace and can serve paid applications while the ledger is unreachable, else 0."),
    counter("scoregate_ledger_unreachable_decisions_total", &["decision"], "Requests without a leased unit while the ledger was unreachable, by decision."),
    counter("scoregate_lease_waits_total", &[], "Requests that waited for a lease."),
    histogram("scoregate_store_duration_seconds", COMMITS, &["operation"], "Duration of store operations, queueing included."),
    counter("scoregate_store_failures_total", &["operation"], "Failed store operations."),
    counter("scoregate_store_exchanges_total", &[], "Committed shared-store transactions that applied ledger reports."),
    counter("scoregate_store_exchange_reports_total", &[], "Ledger reports applied in committed shared-store transactions."),
    gauge("scoregate_store_standby_missing", &[], "1 while the shared store has no synchronous standby, so that a failover can lose the last changes and grants; else 0, also without a shared store."),
    gauge("scoregate_store_live_rows", &["table"], "Estimated rows in the tables of the shared store."),
    gauge("scoregate_store_dead_rows", &["table"], "Estimated dead rows (outdated versions that were not removed yet) in the tables of the shared store."),
    gauge("scoregate_store_file_invalid", &[], "1 while the store file or its write-ahead log is missing or was replaced: changes are refused and no units are leased."),
    gauge("scoregate_store_damaged", &[], "1 if damage to the store was found since startup; the event log has the recovery steps."),
    gauge("scoregate_store_unreadable_records", &[], "Records of applications or keys that could not be read and were skipped."),
    gauge("scoregate_keys", &[], "Keys in the key directory, including recently revoked keys."),
    counter("scoregate_site_requests_total", &["class"], "Responses of the account pages, by status class."),
    counter("scoregate_sign_in_links_total", &["result"], "Requests for an email link, by result."),
    counter("scoregate_sign_ins_total", &["result"], "Uses of email links, by result."),
    counter("scoregate_account_changes_total", &["change"], "Changes that owners made to their applications, keys and accounts."),
    counter("scoregate_leaked_keys_total", &["result"], "Tokens reported as leaked keys, by result: changed, repeated (all places were reported before), unknown (well-formed, but not a key of this service), foreign (not well-formed)."),
    counter("scoregate_mcp_requests_total", &["result"], "Requests to /mcp, by result: listed (a handshake, a list or a notification), preflight (OPTIONS), answered (a call with data), tool_error (a call that was refused), unauthenticated (a call without a valid key), rejected (anything else). Each call also counts as a request to its endpoint."),
    gauge("scoregate_suspects", &["suspicion"], "Applications that `scoregate suspects` lists for the last 7 complete days, by suspicion; determined once a day by the gateway that was started first; 0 on other gateways."),
    counter("scoregate_mails_total", &["kind", "result"], "Attempts to send an email, by result: sent, refused by the server and removed, deferred, or expired and removed."),
    gauge("scoregate_mail_queue_length", &[], "Messages in the store's mail queue; 0 if mail is not configured."),
    gauge("scoregate_mail_oldest_age_seconds", &[], "Age of the oldest message in the store's mail queue; 0 if it is empty or mail is not configured."),
    gauge("scoregate_connections", &[], "Open connections on the public port."),
    gauge("scoregate_connections_limit", &[], "Maximum number of open connections on the public port: the setting, or less if the limit on open files is lower."),
    counter("scoregate_connections_total", &["reason"], "Closed connections, by reason."),
    counter("scoregate_streams_refused_total", &["scope"], "HTTP/2 requests refused with REFUSED_STREAM because too many responses wait for their clients, by the scope of the limit."),
    counter("scoregate_bodies_refused_total", &[], "Request bodies that were not read because the memory for awaited bodies was used up: 32 MiB in total, 24 MiB for clients without a key."),
    gauge("scoregate_config_rejected", &[], "1 while the newest settings are rejected and the previous settings are in force; the event log has the errors."),
    counter("scoregate_reloads_total", &["result"], "Reloads of the settings, by result."),
    gauge("scoregate_certificate_expiry_timestamp_seconds", &[], "Earliest expiry of the certificates in use (public port, client certificate for the backend), as Unix time; 0 if there are none."),
    gauge("scoregate_files_rejected", &["setting"], "1 while files that a setting names are rejected and their previous contents are in use; the event log has the reason."),
    counter("scoregate_accept_failures_total", &[], "Connections that could not be accepted."),
    counter("scoregate_log_lines_lost_total", &["log"], "Log lines that were dropped because the reader was too slow or the disk was full."),
    counter("scoregate_trace_spans_total", &["result"], "Recorded spans: exported, dropped because the queue was full, or failed because the collector did not accept them."),
    gauge("scoregate_heartbeat_age_seconds", &[], "Time since the last heartbeat of the public port's runtime; there are two per second. Above 5 s the side port reports not ready, above 20 s not alive."),
    counter("scoregate_clock_steps_total", &["direction"], "Steps of the wall clock of more than a minute relative to the boot-time clock."),
    gauge("scoregate_data_dir_free_bytes", &[], "Free space of the data directory's file system for unprivileged processes."),
    gauge("scoregate_data_dir_size_bytes", &[], "Size of the data directory's file system."),
    gauge("scoregate_last_backup_size_bytes", &[], "Size of the last successful `store backup`; 0 if there was none; absent with a shared store."),
    gauge("scoregate_last_backup_timestamp_seconds", &[], "Unix time of the last successful `store backup`; 0 if there was none; absent with a shared store."),
    gauge("scoregate_memory_limit_bytes", &[], "Memory limit of the process: the control group's limit or the machine's memory, whichever is lower."),
    gauge("scoregate_cpu_limit_cores", &[], "Processor cores available to the process, rounded down."),
    gauge("scoregate_build_info", &["version"], "Always 1; the label is the version."),
    counter(process::CPU, &[], "Processor time of the process."),
    gauge("process_resident_memory_bytes", &[], "Resident memory."),
    gauge("process_open_fds", &[], "Open file descriptors."),
    gauge("process_max_fds", &[], "Maximum number of open file descriptors."),
    gauge("process_threads", &[], "Threads."),
    gauge("process_start_time_seconds", &[], "Start time of the process, as Unix time."),
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
