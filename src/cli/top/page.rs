//! A page of `top` as lines of text, with the most important lines first. Does no I/O.
//!
//! The template names the metrics of each line. A placeholder has a kind of figure, the name of a metric, and labels:
//! `{{rate scoregate_limited_total rule="day"}}`. It selects the series that have one of the labels.

use crate::pages::fill;

use super::{
    callers::{applications, unauthenticated},
    figures::UsageRates,
    words::{as_f64, count, percent, rate, size, span, time},
};

const TEMPLATE: &str = include_str!("page.txt");
const ADDRESS_CALLS: &str = "scoregate_upstream_address_requests_total";
/// A certificate is reported this many seconds before it expires.
const EXPIRY_WARNING: f64 = 14.0 * 86_400.0;
/// Gauges that are above zero while there is a problem, each with its message.
const FLAGS: [(&str, &str); 4] = [
    (
        "scoregate_ledger_unreachable",
        "ledger unreachable: requests are charged to leased units only",
    ),
    (
        "scoregate_store_damaged",
        "store damaged: the repair steps are in the log",
    ),
    (
        "scoregate_config_rejected",
        "settings rejected: the previous settings stay active; the reason is in the log",
    ),
    (
        "scoregate_files_rejected",
        "files rejected: the previous contents stay in use; the reason is in the log",
    ),
];

/// The lines of a page, at most `rows`.
pub fn lines(figures: &UsageRates<'_>, rows: usize) -> Vec<String> {
    let summary = fill(TEMPLATE, |placeholder| figure(figures, placeholder));
    let mut lines: Vec<String> = summary.lines().map(str::to_owned).collect();
    lines.extend(alarms(figures).iter().map(|text| alarm(text)));
    let usage = &figures.after.usage;
    let unauthenticated = unauthenticated(&usage.unauthenticated);
    // The table of addresses is always shown, with at most five rows. Applications get the remaining space.
    let reserved = unauthenticated.len().min(7);
    let available = rows.saturating_sub(lines.len() + reserved);
    let applications = applications(&usage.applications);
    lines.extend(applications.into_iter().take(available));
    lines.extend(unauthenticated.into_iter().take(reserved));
    lines.truncate(rows);
    lines
}

/// The line of a problem.
pub fn alarm(text: &str) -> String {
    format!("! {text}")
}

/// The text for a placeholder; `None` if there is no such figure.
fn figure(figures: &UsageRates<'_>, placeholder: &str) -> Option<String> {
    let mut words = placeholder.split(' ');
    let kind = words.next()?;
    let name = words.next().unwrap_or_default();
    let with: Vec<&str> = words.collect();
    Some(match kind {
        "version" => version(figures),
        "uptime" => uptime(figures),
        "now" => figures.after.at.wall.rfc3339(),
        "refresh" => refresh(figures),
        "breaker" => breaker(figures).to_owned(),
        "addresses" => addresses(figures),
        "count" => count(figures.gauge(name, &with)),
        "size" => size(figures.gauge(name, &with)),
        "rate" => rate(figures.rate(name, &with)),
        "percent" => percent(Some(figures.rate(name, &with))),
        "share" => percent(figures.share(name, &with)),
        "quantile" => time(figures.quantile(name, with.first()?.parse().ok()?)),
        _ => return None,
    })
}

fn version(figures: &UsageRates<'_>) -> String {
    let metrics = &figures.after.metrics;
    let version = metrics.label("scoregate_build_info", "version");
    version.unwrap_or("?").to_owned()
}

fn uptime(figures: &UsageRates<'_>) -> String {
    let now = as_f64(figures.after.at.wall.seconds());
    span(now - figures.gauge("process_start_time_seconds", &[]))
}

fn refresh(figures: &UsageRates<'_>) -> String {
    let overdue = figures.gauge("scoregate_refresh_overdue_seconds", &[]);
    let next = figures.gauge("scoregate_next_refresh_seconds", &[]);
    if overdue > 0.0 {
        format!("refresh overdue for {}", span(overdue))
    } else if next > 0.0 {
        format!("refresh in {}", span(next))
    } else {
        "refresh not scheduled yet".into()
    }
}

/// The addresses of a backend that has several addresses, one per line.
fn addresses(figures: &UsageRates<'_>) -> String {
    let metrics = &figures.after.metrics;
    let names: Vec<&str> = metrics.labels(ADDRESS_CALLS, "address").collect();
    if names.len() < 2 {
        return String::new();
    }
    let lines = names.iter().map(|name| address(figures, name));
    lines.collect()
}

fn address(figures: &UsageRates<'_>, name: &str) -> String {
    let with = format!("address=\"{name}\"");
    let with = [with.as_str()];
    let requests = rate(figures.rate(ADDRESS_CALLS, &with));
    let failed = rate(figures.rate("scoregate_upstream_address_failures_total", &with));
    let state = if figures.gauge("scoregate_upstream_address_usable", &with) > 0.0 {
        "usable"
    } else {
        "not usable"
    };
    format!("           {name}   {state}   requests {requests}/s   failed {failed}/s\n")
}

fn breaker(figures: &UsageRates<'_>) -> &'static str {
    let state = figures.gauge("scoregate_upstream_breaker_state", &[]);
    if state >= 2.0 {
        "open"
    } else if state >= 1.0 {
        "half-open"
    } else {
        "closed"
    }
}

/// Active problems, one per line.
fn alarms(figures: &UsageRates<'_>) -> Vec<String> {
    let mut alarms = Vec::new();
    let breaker = breaker(figures);
    if breaker != "closed" {
        alarms.push(format!(
            "circuit breaker {breaker}: responses are stale or fail"
        ));
    }
    let active = FLAGS
        .iter()
        .filter(|(name, _)| figures.gauge(name, &[]) > 0.0);
    alarms.extend(active.map(|(_, text)| (*text).to_owned()));
    let expiry = figures.gauge("scoregate_certificate_expiry_timestamp_seconds", &[]);
    let left = expiry - as_f64(figures.after.at.wall.seconds());
    if expiry > 0.0 && left < EXPIRY_WARNING {
        alarms.push(format!("a certificate expires in {}", span(left.max(0.0))));
    }
    let panics = figures.gauge("scoregate_panics_total", &[]);
    if panics > 0.0 {
        let panics = count(panics);
        alarms.push(format!("{panics} panics since startup; see the log"));
    }
    let lost = figures.rate("scoregate_log_lines_lost_total", &[]);
    if lost > 0.0 {
        let lost = rate(lost);
        alarms.push(format!(
            "{lost}/s log lines lost: the log reader is too slow or has stopped"
        ));
    }
    alarms
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounts::{CountedRequests, RequestCounts};
    use crate::admin::UsageView;
    use crate::cli::top::sample::{ScrapedMetrics, ServerSample};
    use crate::statistics::{ApplicationUse, RemainingAllowance, UnauthenticatedUse};
    use scoregate_base::clock::{Mono, Now, Wall};
    use scoregate_observe::telemetry::metrics::METRICS;

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

    fn texts(lines: &[String]) -> Vec<&str> {
        lines.iter().map(|line| line.trim_end()).collect()
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
            lines(&UsageRates::new(&before, &after), 100)
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
    fn every_metric_of_the_template_exists() {
        let page = sample(100, "", &[]);
        assert!(
            !lines(&UsageRates::new(&page, &page), 100)
                .concat()
                .contains("{{")
        );
        let names = TEMPLATE.split([' ', '{', '}']);
        for name in names.filter(|name| name.starts_with("scoregate_")) {
            assert!(METRICS.iter().any(|row| row.name == name), "{name}");
        }
    }

    #[test]
    fn problems_are_shown_above_the_tables() {
        let metrics = "scoregate_upstream_breaker_state 2\nscoregate_ledger_unreachable 1\nscoregate_store_damaged 1\n\
            scoregate_config_rejected 1\nscoregate_files_rejected{setting=\"tls\"} 1\nscoregate_panics_total 2\n\
            scoregate_certificate_expiry_timestamp_seconds 86502\nscoregate_log_lines_lost_total{log=\"access\"} 4";
        let before = sample(100, "", &[]);
        let after = sample(102, metrics, &[]);
        let page = lines(&UsageRates::new(&before, &after), 100);
        let alarms = page.iter().filter(|line| line.starts_with("! ")).count();
        assert_eq!(alarms, 8, "{page:?}");
        assert!(
            page.iter()
                .any(|line| line == "! a certificate expires in 1 d 0 h"),
            "{page:?}"
        );
        let healthy = lines(&UsageRates::new(&before, &before), 100);
        assert!(
            !healthy.iter().any(|line| line.starts_with("! ")),
            "{healthy:?}"
        );
    }
}
