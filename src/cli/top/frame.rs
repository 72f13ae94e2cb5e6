//! Renders a page of `top` as lines of text, most important first. Does no I/O.

use super::callers::{applications, unauthenticated};
use super::figures::UsageRates;
use super::frame_line::FrameLine;
use super::words::{as_f64, count, percent, rate, size, span, sum, time};

/// Width of the first column.
const LABEL_WIDTH: usize = 11;
const REQUESTS: &str = "scoregate_requests_total";
const SERVED: &str = "scoregate_documents_served_total";
const LIMITED: &str = "scoregate_limited_total";
const CALLS: &str = "scoregate_upstream_requests_total";
const ADDRESS_CALLS: &str = "scoregate_upstream_address_requests_total";
const UNITS: &str = "scoregate_quota_units_total";
const LATENCY: &str = "scoregate_request_duration_seconds";
const UPSTREAM_LATENCY: &str = "scoregate_upstream_duration_seconds";
/// Seconds before the expiry of a certificate from which it is reported.
const EXPIRY_WARNING: f64 = 14.0 * 86_400.0;

/// The lines of a page, at most `rows`.
pub(super) fn lines(figures: &UsageRates<'_>, rows: usize) -> Vec<FrameLine> {
    let summary = [
        title(figures),
        requests(figures),
        latency(figures),
        documents(figures),
        backend(figures),
    ];
    let summary = summary
        .into_iter()
        .chain(addresses(figures))
        .chain([limits(figures), process(figures)]);
    let mut lines: Vec<FrameLine> = summary.map(FrameLine::plain).collect();
    lines.extend(alarms(figures).iter().map(|text| FrameLine::alarm(text)));
    let usage = &figures.after.usage;
    let unauthenticated = unauthenticated(&usage.unauthenticated);
    // The table of addresses is always shown, with at most five rows; applications get the remaining space.
    let reserved = unauthenticated.len().min(7);
    let available = rows.saturating_sub(lines.len() + reserved);
    let applications = applications(&usage.applications);
    lines.extend(applications.into_iter().take(available));
    lines.extend(unauthenticated.into_iter().take(reserved));
    lines.truncate(rows);
    lines
}

fn title(figures: &UsageRates<'_>) -> String {
    let version = figures
        .after
        .metrics
        .label("scoregate_build_info", "version")
        .unwrap_or("?");
    let now = figures.after.at.wall;
    let started = figures.gauge("process_start_time_seconds", "");
    format!(
        "scoregate {version}   up {}   {}",
        span(as_f64(now.seconds()) - started),
        now.rfc3339()
    )
}

fn requests(figures: &UsageRates<'_>) -> String {
    let classes = ["2xx", "3xx", "4xx", "5xx"]
        .map(|class: &str| {
            format!(
                "{class} {}",
                percent(figures.share(REQUESTS, &format!("class=\"{class}\"")))
            )
        })
        .join("   ");
    let waiting = count(figures.gauge("scoregate_requests_in_progress", ""));
    row(
        "requests",
        &format!(
            "{}/s   {classes}   waiting {waiting}",
            rate(figures.rate(REQUESTS, ""))
        ),
    )
}

fn latency(figures: &UsageRates<'_>) -> String {
    let quantile = |name: &str, part| format!("{name} {}", time(figures.quantile(LATENCY, part)));
    let quantiles = [
        quantile("p50", 0.5),
        quantile("p90", 0.9),
        quantile("p99", 0.99),
    ];
    let disconnects = rate(figures.rate("scoregate_client_disconnects_total", ""));
    row(
        "latency",
        &format!(
            "{}   client disconnects {disconnects}/s",
            quantiles.join("   ")
        ),
    )
}

fn documents(figures: &UsageRates<'_>) -> String {
    let outcome = |label: &str| figures.share(SERVED, &format!("outcome=\"{label}\""));
    let stale = sum([outcome("stale"), outcome("stale_on_error")]);
    let waited = sum([
        sum([outcome("miss"), outcome("shared")]),
        outcome("refreshed"),
    ]);
    let served = format!(
        "hit {}   stale {}   waited {}",
        percent(outcome("hit")),
        percent(stale),
        percent(waited)
    );
    let stored = count(figures.gauge("scoregate_cache_documents", ""));
    let bytes = size(figures.gauge("scoregate_cache_bytes", ""));
    let overdue = figures.gauge("scoregate_refresh_overdue_seconds", "");
    let next = figures.gauge("scoregate_next_refresh_seconds", "");
    let refresh = match (overdue > 0.0, next > 0.0) {
        (true, _) => format!("refresh overdue for {}", span(overdue)),
        (false, true) => format!("refresh in {}", span(next)),
        (false, false) => "refresh not scheduled yet".into(),
    };
    row(
        "documents",
        &format!("{served}   stored {stored} ({bytes})   {refresh}"),
    )
}

fn backend(figures: &UsageRates<'_>) -> String {
    let requests = figures.rate(CALLS, "");
    let succeeded =
        figures.rate(CALLS, "result=\"success\"") + figures.rate(CALLS, "result=\"not_found\"");
    let queued = count(figures.gauge("scoregate_upstream_queue_length", ""));
    let p99 = time(figures.quantile(UPSTREAM_LATENCY, 0.99));
    let failed = rate(requests - succeeded);
    let requests = rate(requests);
    let breaker = breaker(figures);
    row(
        "backend",
        &format!(
            "circuit breaker {breaker}   requests {requests}/s   failed {failed}/s   p99 {p99}   queued {queued}"
        ),
    )
}

/// The addresses of a backend with several, one line each.
fn addresses(figures: &UsageRates<'_>) -> Vec<String> {
    let names: Vec<&str> = figures
        .after
        .metrics
        .labels(ADDRESS_CALLS, "address")
        .collect();
    let line = |name: &&str| {
        let with = format!("address=\"{name}\"");
        let requests = rate(figures.rate(ADDRESS_CALLS, &with));
        let failed = rate(figures.rate("scoregate_upstream_address_failures_total", &with));
        let is_usable = figures.gauge("scoregate_upstream_address_usable", &with) > 0.0;
        let state = if is_usable { "usable" } else { "not usable" };
        row(
            "",
            &format!("{name}   {state}   requests {requests}/s   failed {failed}/s"),
        )
    };
    if names.len() > 1 {
        names.iter().map(line).collect()
    } else {
        Vec::new()
    }
}

fn breaker(figures: &UsageRates<'_>) -> &'static str {
    let state = figures.gauge("scoregate_upstream_breaker_state", "");
    if state >= 2.0 {
        "open"
    } else if state >= 1.0 {
        "half-open"
    } else {
        "closed"
    }
}

fn limits(figures: &UsageRates<'_>) -> String {
    let rules = ["minute", "day", "guard"]
        .map(|name: &str| {
            format!(
                "{name} {}/s",
                rate(figures.rate(LIMITED, &format!("rule=\"{name}\"")))
            )
        })
        .join("   ");
    let leased = rate(figures.rate(UNITS, "use=\"leased\""));
    let lost = count(figures.gauge(UNITS, "use=\"lost\""));
    row(
        "refused by",
        &format!("{rules}   units leased {leased}/s   lost {lost}"),
    )
}

fn process(figures: &UsageRates<'_>) -> String {
    let cores = figures.rate("process_cpu_seconds_total", "");
    let memory = size(figures.gauge("process_resident_memory_bytes", ""));
    let connections = count(figures.gauge("scoregate_connections", ""));
    let open = count(figures.gauge("process_open_fds", ""));
    let max = count(figures.gauge("process_max_fds", ""));
    let keys = count(figures.gauge("scoregate_keys", ""));
    row(
        "process",
        &format!(
            "cpu {cores:.2} cores   memory {memory}   connections {connections}   files {open} of {max}   keys {keys}"
        ),
    )
}

/// Active problems, one line each.
fn alarms(figures: &UsageRates<'_>) -> Vec<String> {
    let is_on = |name: &str| figures.gauge(name, "") > 0.0;
    let expiry = figures.gauge("scoregate_certificate_expiry_timestamp_seconds", "");
    let remaining = expiry - as_f64(figures.after.at.wall.seconds());
    let panics = figures.gauge("scoregate_panics_total", "");
    let lost = figures.rate("scoregate_log_lines_lost_total", "");
    let breaker = breaker(figures);
    [
        (
            breaker != "closed",
            format!("circuit breaker {breaker}: responses are stale or fail"),
        ),
        (
            is_on("scoregate_ledger_unreachable"),
            "ledger unreachable: requests are charged to leased units only".into(),
        ),
        (
            is_on("scoregate_store_damaged"),
            "store damaged: the repair steps are in the log".into(),
        ),
        (
            is_on("scoregate_config_rejected"),
            "settings rejected: the previous settings stay active; the reason is in the log".into(),
        ),
        (
            is_on("scoregate_files_rejected"),
            "files rejected: the previous contents stay in use; the reason is in the log".into(),
        ),
        (
            expiry > 0.0 && remaining < EXPIRY_WARNING,
            format!("a certificate expires in {}", span(remaining.max(0.0))),
        ),
        (
            panics > 0.0,
            format!("{} panics since the start; see the log", count(panics)),
        ),
        (
            lost > 0.0,
            format!(
                "{}/s log lines lost: the log reader is too slow or has stopped",
                rate(lost)
            ),
        ),
    ]
    .into_iter()
    .filter_map(|(is_active, text)| is_active.then_some(text))
    .collect()
}

fn row(name: &str, text: &str) -> String {
    format!("{name:<LABEL_WIDTH$}{text}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounts::{CountedRequests, RequestCounts};
    use crate::admin::UsageView;
    use crate::cli::top::frame_line::LineEmphasis;
    use crate::cli::top::sample::{ScrapedMetrics, ServerSample};
    use crate::statistics::{ApplicationUse, RemainingAllowance, UnauthenticatedUse};
    use scoregate_base::clock::{Mono, Now, Wall};

    fn counted(requests: u64) -> CountedRequests {
        let today = RequestCounts {
            requests,
            delivered: requests / 2,
            limited: requests / 2,
            ..RequestCounts::default()
        };
        CountedRequests {
            today,
            last_minute: today,
            missed: 0,
        }
    }

    fn sample(seconds: u64, metrics: &str, applications: &[(&str, u64)]) -> ServerSample {
        let application = |(name, requests): &(&str, u64)| ApplicationUse {
            application: format!("app_{name}"),
            name: format!("{name}\u{1b}[2J"),
            tier: "pro".into(),
            limits: vec![RemainingAllowance {
                name: "day".into(),
                limit: 10_000,
                remaining: 9_000,
                reset_at: String::new(),
            }],
            requests: Some(counted(*requests)),
        };
        let unauthenticated = (1..=9).map(|last| UnauthenticatedUse {
            address: format!("192.0.2.{last}"),
            requests: counted(seconds * last),
        });
        let usage = UsageView {
            since: String::new(),
            applications: applications.iter().map(application).collect(),
            unauthenticated: unauthenticated.collect(),
        };
        let at = Now {
            wall: Wall::from_seconds(seconds),
            mono: Mono::from_nanos(seconds * 1_000_000_000),
        };
        ServerSample {
            at,
            metrics: ScrapedMetrics::read(metrics),
            usage,
        }
    }

    fn texts(lines: &[FrameLine]) -> Vec<&str> {
        lines.iter().map(|line| line.text.trim_end()).collect()
    }

    #[test]
    fn a_page_shows_the_rates_between_two_samples_and_fits_the_rows() {
        let before = sample(100, "scoregate_requests_total{class=\"2xx\"} 10", &[]);
        let metrics = "scoregate_build_info{version=\"1.2.3\"} 1\nprocess_start_time_seconds 40\n\
            scoregate_requests_total{class=\"2xx\"} 2478\nscoregate_requests_total{class=\"5xx\"} 22\n\
            scoregate_refresh_overdue_seconds 3700\nprocess_resident_memory_bytes 45200000";
        let after = sample(102, metrics, &[("slow", 120), ("fast", 60_000)]);
        let page = lines(&UsageRates::new(&before, &after), 20);
        let texts = texts(&page);
        assert_eq!(
            texts[0],
            "scoregate 1.2.3   up 1 min 2 s   1970-01-01T00:01:42Z"
        );
        assert_eq!(
            texts[1],
            "requests   1,245/s   2xx 99.1 %   3xx 0.0 %   4xx 0.0 %   5xx 0.9 %   waiting 0"
        );
        assert!(
            texts[3].ends_with("refresh overdue for 1 h 1 min"),
            "{}",
            texts[3]
        );
        assert!(texts[6].contains("45.2 MB"), "{}", texts[6]);
        let row = |name: &str| {
            let row = texts
                .iter()
                .position(|line| line.starts_with(name))
                .unwrap();
            (row, texts[row].split_whitespace().collect::<Vec<_>>())
        };
        let fast = row("app_fast");
        let slow = row("app_slow");
        assert!(fast.0 < slow.0, "the highest rate is first");
        assert_eq!(
            fast.1[1..9],
            ["pro", "1,000", "500", "0", "500", "0", "60,000", "9,000"]
        );
        assert_eq!(
            slow.1[1..9],
            ["pro", "2.0", "1.0", "0", "1.0", "0", "120", "9,000"]
        );
        assert_eq!(fast.1[9], "fast?[2J", "control characters are replaced");
        for header in texts
            .iter()
            .filter(|line| line.starts_with("APPLICATION") || line.starts_with("UNAUTHENTICATED"))
        {
            assert_eq!(
                header.matches("TODAY").count(),
                header.matches("REQUESTS TODAY").count(),
                "{header}"
            );
        }
        let addresses = texts
            .iter()
            .filter(|line| line.starts_with("192.0.2."))
            .count();
        assert_eq!((addresses, page.len()), (5, 18));
        assert_eq!(lines(&UsageRates::new(&before, &after), 9).len(), 9);
    }

    #[test]
    fn the_addresses_of_a_backend_are_shown_if_there_are_several() {
        let series = |name: &str, requests: u32, usable: u32| {
            format!(
                "scoregate_upstream_address_requests_total{{address=\"{name}\"}} {requests}\n\
                 scoregate_upstream_address_usable{{address=\"{name}\"}} {usable}\n"
            )
        };
        let [one, two] = [series("a:80", 20, 1), series("b:80", 0, 0)];
        let page = |metrics: &str| {
            let before = sample(100, "", &[]);
            let after = sample(102, metrics, &[]);
            let page = lines(&UsageRates::new(&before, &after), 100);
            page.into_iter().map(|line| line.text).collect::<Vec<_>>()
        };
        let shown = page(&format!("{one}{two}"));
        assert!(
            shown[5].contains("a:80   usable   requests 10.0/s   failed 0/s"),
            "{shown:?}"
        );
        assert!(shown[6].contains("b:80   not usable"), "{shown:?}");
        assert!(!page(&one).iter().any(|line| line.contains("a:80")));
    }

    #[test]
    fn problems_are_shown_above_the_tables() {
        let metrics = "scoregate_upstream_breaker_state 2\nscoregate_ledger_unreachable 1\nscoregate_store_damaged 1\n\
            scoregate_config_rejected 1\nscoregate_files_rejected{setting=\"tls\"} 1\nscoregate_panics_total 2\n\
            scoregate_certificate_expiry_timestamp_seconds 86502\nscoregate_log_lines_lost_total{log=\"access\"} 4";
        let before = sample(100, "", &[]);
        let after = sample(102, metrics, &[]);
        let page = lines(&UsageRates::new(&before, &after), 100);
        let alarms = page
            .iter()
            .filter(|line| line.emphasis == LineEmphasis::Alarm)
            .count();
        assert_eq!(alarms, 8, "{page:?}");
        assert!(
            page.iter()
                .any(|line| line.text == "! a certificate expires in 1 d 0 h"),
            "{page:?}"
        );
        let healthy = lines(&UsageRates::new(&before, &before), 100);
        assert!(
            healthy
                .iter()
                .all(|line| line.emphasis != LineEmphasis::Alarm),
            "{healthy:?}"
        );
    }
}
