//! A look at a running server as lines of text: what on-call asks first stands first.
//!
//! Pure: figures in, lines out. Not for: the terminal they are shown on (`screen`).

use crate::admin::{AllowanceView, ApplicationUseView};

use super::figures::{RequestDelta, UsageRates};
use super::words::{count, percent, rate, real, short, size, span, sum, time};

/// The width of the first column.
const NAMES: usize = 11;
const REQUESTS: &str = "scoregate_requests_total";
const SERVED: &str = "scoregate_documents_served_total";
const LIMITED: &str = "scoregate_limited_total";
const CALLS: &str = "scoregate_upstream_requests_total";
const UNITS: &str = "scoregate_quota_units_total";
const LATENCY: &str = "scoregate_request_duration_seconds";
const UPSTREAM_LATENCY: &str = "scoregate_upstream_duration_seconds";
/// A certificate that ends sooner than this is told of.
const SOON: f64 = 14.0 * 86_400.0;

/// A line, and how much it wants to be seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FrameLine {
    pub(super) text: String,
    pub(super) weight: LineEmphasis,
}

/// How much a line wants to be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineEmphasis {
    Plain,
    /// The head of a table.
    Head,
    /// Something is wrong.
    Alarm,
}

/// All lines, at most so many.
pub(super) fn lines(figures: &UsageRates<'_>, rows: usize) -> Vec<FrameLine> {
    let facts = [
        title(figures),
        requests(figures),
        latency(figures),
        documents(figures),
        backend(figures),
        limits(figures),
        process(figures),
    ];
    let mut lines: Vec<FrameLine> = facts.into_iter().map(FrameLine::plain).collect();
    lines.extend(alarms(figures).into_iter().map(|text| FrameLine { text, weight: LineEmphasis::Alarm }));
    let strangers = strangers(figures);
    // A few strangers below their head are always seen, and the applications have the rest.
    let few = strangers.len().min(7);
    let left = rows.saturating_sub(lines.len() + few);
    lines.extend(applications(figures).into_iter().take(left));
    lines.extend(strangers.into_iter().take(few));
    lines.truncate(rows);
    lines
}

impl FrameLine {
    fn plain(text: String) -> Self {
        Self { text, weight: LineEmphasis::Plain }
    }

    fn head(text: String) -> Self {
        Self { text, weight: LineEmphasis::Head }
    }
}

fn title(figures: &UsageRates<'_>) -> String {
    let version = figures.after.metrics.label("scoregate_build_info", "version").unwrap_or("?");
    let now = figures.after.at.wall;
    let began = figures.gauge("process_start_time_seconds", "");
    format!("scoregate {version}   up {}   {}", span(real(now.seconds()) - began), now.rfc3339())
}

fn requests(figures: &UsageRates<'_>) -> String {
    let class =
        |class: &str| format!("{class} {}", percent(figures.share(REQUESTS, &format!("class=\"{class}\""))));
    let classes = ["2xx", "3xx", "4xx", "5xx"].map(class).join("   ");
    let running = count(figures.gauge("scoregate_requests_in_progress", ""));
    fact("requests", &format!("{}/s   {classes}   running {running}", rate(figures.rate(REQUESTS, ""))))
}

fn latency(figures: &UsageRates<'_>) -> String {
    let quantile = |name: &str, part| format!("{name} {}", time(figures.quantile(LATENCY, part)));
    let quantiles = [quantile("p50", 0.5), quantile("p90", 0.9), quantile("p99", 0.99)];
    let left = rate(figures.rate("scoregate_client_disconnects_total", ""));
    fact("latency", &format!("{}   left by their clients {left}/s", quantiles.join("   ")))
}

fn documents(figures: &UsageRates<'_>) -> String {
    let outcome = |word: &str| figures.share(SERVED, &format!("outcome=\"{word}\""));
    let stale = sum([outcome("stale"), outcome("stale_on_error")]);
    let waited = sum([sum([outcome("miss"), outcome("shared")]), outcome("refreshed")]);
    let served =
        format!("hit {}   stale {}   waited {}", percent(outcome("hit")), percent(stale), percent(waited));
    let stored = count(figures.gauge("scoregate_cache_documents", ""));
    let bytes = size(figures.gauge("scoregate_cache_bytes", ""));
    let overdue = figures.gauge("scoregate_refresh_overdue_seconds", "");
    let left = figures.gauge("scoregate_next_refresh_seconds", "");
    let refresh = match (overdue > 0.0, left > 0.0) {
        (true, _) => format!("refresh overdue for {}", span(overdue)),
        (false, true) => format!("refresh in {}", span(left)),
        (false, false) => "refresh not known yet".into(),
    };
    fact("documents", &format!("{served}   stored {stored} ({bytes})   {refresh}"))
}

fn backend(figures: &UsageRates<'_>) -> String {
    let asked = figures.rate(CALLS, "");
    let fine = figures.rate(CALLS, "result=\"success\"") + figures.rate(CALLS, "result=\"not_found\"");
    let waiting = count(figures.gauge("scoregate_upstream_queue_length", ""));
    let late = time(figures.quantile(UPSTREAM_LATENCY, 0.99));
    let (asked, failed) = (rate(asked), rate(asked - fine));
    let health = health(figures);
    fact(
        "backend",
        &format!("{health}   asked {asked}/s   failed {failed}/s   p99 {late}   waiting {waiting}"),
    )
}

fn health(figures: &UsageRates<'_>) -> &'static str {
    let health = figures.gauge("scoregate_upstream_breaker_state", "");
    if health >= 2.0 {
        "rests"
    } else if health >= 1.0 {
        "on trial"
    } else {
        "works"
    }
}

fn limits(figures: &UsageRates<'_>) -> String {
    let rule = |name: &str| format!("{name} {}/s", rate(figures.rate(LIMITED, &format!("rule=\"{name}\""))));
    let rules = ["minute", "day", "guard"].map(rule).join("   ");
    let units = |what: &str| rate(figures.rate(UNITS, &format!("use=\"{what}\"")));
    let (leased, lost) = (units("leased"), count(figures.gauge(UNITS, "use=\"lost\"")));
    fact("refused by", &format!("{rules}   units leased {leased}/s   lost {lost}"))
}

fn process(figures: &UsageRates<'_>) -> String {
    let cores = figures.rate("process_cpu_seconds_total", "");
    let memory = size(figures.gauge("process_resident_memory_bytes", ""));
    let connections = count(figures.gauge("scoregate_connections", ""));
    let (open, most) =
        (count(figures.gauge("process_open_fds", "")), count(figures.gauge("process_max_fds", "")));
    let keys = count(figures.gauge("scoregate_keys", ""));
    fact(
        "process",
        &format!(
            "{cores:.2} cores   {memory}   {connections} connections   {open} of {most} files   {keys} keys"
        ),
    )
}

/// What is wrong, a line each.
fn alarms(figures: &UsageRates<'_>) -> Vec<String> {
    let is_on = |name: &str| figures.gauge(name, "") > 0.0;
    let ends = figures.gauge("scoregate_certificate_expiry_timestamp_seconds", "");
    let left = ends - real(figures.after.at.wall.seconds());
    let panics = figures.gauge("scoregate_panics_total", "");
    let lost = figures.rate("scoregate_log_lines_lost_total", "");
    let rests = figures.gauge("scoregate_upstream_breaker_state", "") >= 1.0;
    [
        (rests, "the backend fails: answers are stale, or there are none".to_owned()),
        (
            is_on("scoregate_ledger_unreachable"),
            "the ledger is away: quotas are spent from what is leased".into(),
        ),
        (is_on("scoregate_store_damaged"), "the store is damaged: the log says the way back".into()),
        (
            is_on("scoregate_config_rejected"),
            "settings were refused: older ones go on, the log says why".into(),
        ),
        (is_on("scoregate_certificates_rejected"), "certificates were refused: older ones go on".into()),
        (ends > 0.0 && left < SOON, format!("a certificate ends in {}", span(left.max(0.0)))),
        (panics > 0.0, format!("{} panics since the start: each is in the log", count(panics))),
        (lost > 0.0, format!("{}/s log lines are lost: their reader is too slow or has stopped", rate(lost))),
    ]
    .into_iter()
    .filter_map(|(is_so, text)| is_so.then(|| format!("! {text}")))
    .collect()
}

fn applications(figures: &UsageRates<'_>) -> Vec<FrameLine> {
    let head = format!(
        "{:<15}  {:<12} {:>8} {:>8} {:>8} {:>9} {:>8} {:>11} {:>11}  NAME",
        "APPLICATION", "TIER", "ASKS/S", "DATA/S", "304/S", "LIMITED/S", "FAILED/S", "TODAY", "DAY LEFT"
    );
    let row = |(used, change): &(&ApplicationUseView, RequestDelta)| {
        let rates = |of| rate(change.rate(of));
        let today = used.requests.map_or(0, |counted| counted.today.requests);
        let left = |limit: &&AllowanceView| limit.name == "day";
        let left = used.limits.iter().find(left).map_or(0, |limit| limit.remaining);
        format!(
            "{:<15}  {:<12} {:>8} {:>8} {:>8} {:>9} {:>8} {:>11} {:>11}  {}",
            used.application,
            short(&used.tier, 12),
            rates(|tally| tally.requests),
            rates(|tally| tally.delivered),
            rates(|tally| tally.unchanged),
            rates(|tally| tally.limited),
            rates(|tally| tally.failed),
            count(real(today)),
            count(f64::from(left)),
            short(&used.name, 40),
        )
    };
    table(head, figures.applications().iter().map(row).collect())
}

fn strangers(figures: &UsageRates<'_>) -> Vec<FrameLine> {
    let head = format!("{:<40} {:>10} {:>10} {:>11}", "STRANGER", "REFUSED/S", "LIMITED/S", "TODAY");
    let rows = figures.strangers().into_iter().map(|(used, change)| {
        let rates = |of| rate(change.rate(of));
        let today = count(real(used.requests.today.requests));
        let (asks, limited) = (rates(|tally| tally.requests), rates(|tally| tally.limited));
        format!("{:<40} {asks:>10} {limited:>10} {today:>11}", used.address)
    });
    table(head, rows.collect())
}

fn table(head: String, rows: Vec<String>) -> Vec<FrameLine> {
    if rows.is_empty() {
        return Vec::new();
    }
    let rows = rows.into_iter().map(FrameLine::plain);
    [FrameLine::plain(String::new()), FrameLine::head(head)].into_iter().chain(rows).collect()
}

fn fact(name: &str, what: &str) -> String {
    format!("{name:<NAMES$}{what}")
}

#[cfg(test)]
mod tests {
    use super::super::sample::{ScrapedMetrics, ServerSample};
    use super::*;
    use crate::admin::{StrangerUseView, UsageView};
    use crate::clock::{Mono, Now, Wall};
    use crate::gateway::{CountedRequests, RequestCounts};

    fn counted(requests: u64) -> CountedRequests {
        let today = RequestCounts {
            requests,
            delivered: requests / 2,
            limited: requests / 2,
            ..RequestCounts::default()
        };
        CountedRequests { today, last_minute: RequestCounts::default(), missed: 0 }
    }

    fn look(seconds: u64, metrics: &str, applications: &[(&str, u64)]) -> ServerSample {
        let application = |(name, requests): &(&str, u64)| ApplicationUseView {
            application: format!("app_{name}"),
            name: format!("{name}\u{1b}[2J"),
            tier: "pro".into(),
            limits: vec![AllowanceView {
                name: "day".into(),
                limit: 10_000,
                remaining: 9_000,
                reset_at: String::new(),
            }],
            requests: Some(counted(*requests)),
        };
        let strangers = (1..=9).map(|last| StrangerUseView {
            address: format!("192.0.2.{last}"),
            requests: counted(seconds * last),
        });
        let usage = UsageView {
            since: String::new(),
            applications: applications.iter().map(application).collect(),
            unauthenticated: strangers.collect(),
        };
        let at = Now { wall: Wall::from_seconds(seconds), mono: Mono::from_nanos(seconds * 1_000_000_000) };
        ServerSample { at, metrics: ScrapedMetrics::read(metrics), usage }
    }

    fn texts(lines: &[FrameLine]) -> Vec<&str> {
        lines.iter().map(|line| line.text.trim_end()).collect()
    }

    #[test]
    fn a_page_says_what_happened_between_two_looks_in_as_many_rows_as_there_are() {
        let before = look(100, "scoregate_requests_total{class=\"2xx\"} 10", &[("slow", 50), ("fast", 10)]);
        let metrics = "scoregate_build_info{version=\"1.2.3\"} 1\nprocess_start_time_seconds 40\n\
            scoregate_requests_total{class=\"2xx\"} 2478\nscoregate_requests_total{class=\"5xx\"} 22\n\
            scoregate_refresh_overdue_seconds 3700\nprocess_resident_memory_bytes 45200000";
        let after = look(102, metrics, &[("slow", 54), ("fast", 2010)]);
        let page = lines(&UsageRates::of(&before, &after), 20);
        let texts = texts(&page);
        assert_eq!(texts[0], "scoregate 1.2.3   up 1 min 2 s   1970-01-01T00:01:42Z");
        assert_eq!(
            texts[1],
            "requests   1,245/s   2xx 99.1 %   3xx 0.0 %   4xx 0.0 %   5xx 0.9 %   running 0"
        );
        assert!(texts[3].ends_with("refresh overdue for 1 h 1 min"), "{}", texts[3]);
        assert!(texts[6].contains("45.2 MB"), "{}", texts[6]);
        let row = |name: &str| {
            let row = texts.iter().position(|line| line.starts_with(name)).unwrap();
            (row, texts[row].split_whitespace().collect::<Vec<_>>())
        };
        let (fast, slow) = (row("app_fast"), row("app_slow"));
        assert!(fast.0 < slow.0, "whoever asks most is first");
        assert_eq!(fast.1[1..9], ["pro", "1,000", "500", "0", "500", "0", "2,010", "9,000"]);
        assert_eq!(slow.1[1..9], ["pro", "2.0", "1.0", "0", "1.0", "0", "54", "9,000"]);
        assert_eq!(fast.1[9], "fast?[2J", "nothing that a terminal obeys");
        let strangers = texts.iter().filter(|line| line.starts_with("192.0.2.")).count();
        assert_eq!((strangers, page.len()), (5, 18));
        assert_eq!(lines(&UsageRates::of(&before, &after), 9).len(), 9);
    }

    #[test]
    fn whatever_is_wrong_is_told_above_the_tables() {
        let metrics = "scoregate_upstream_breaker_state 2\nscoregate_ledger_unreachable 1\nscoregate_store_damaged 1\n\
            scoregate_config_rejected 1\nscoregate_certificates_rejected 1\nscoregate_panics_total 2\n\
            scoregate_certificate_expiry_timestamp_seconds 86502\nscoregate_log_lines_lost_total{log=\"access\"} 4";
        let (before, after) = (look(100, "", &[]), look(102, metrics, &[]));
        let page = lines(&UsageRates::of(&before, &after), 100);
        let alarms = page.iter().filter(|line| line.weight == LineEmphasis::Alarm).count();
        assert_eq!(alarms, 8, "{page:?}");
        assert!(page.iter().any(|line| line.text == "! a certificate ends in 1 d 0 h"), "{page:?}");
        let well = lines(&UsageRates::of(&before, &before), 100);
        assert!(well.iter().all(|line| line.weight != LineEmphasis::Alarm), "{well:?}");
    }
}
