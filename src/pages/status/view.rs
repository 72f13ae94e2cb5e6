//! The status page as HTML.

use crate::pages::{
    STATUS,
    html::{self, AccountLink, escape, fill, site_header, time},
};
use scoregate_base::clock::Wall;
use scoregate_store::IncidentState;

use super::{
    DataState, ServiceStatus, StatusSite,
    availability::{DayAvailability, in_words, share, total},
    chart::{ChartDay, chart},
    threads::{IncidentThread, name, paragraphs, threads},
};

const TEMPLATE: &str = include_str!("status.html");
/// The style sheet of the page, which is the text of its only `style` element.
pub const STYLE: &str = concat!(include_str!("../docs/page.css"), include_str!("status.css"));
/// Maximum number of resolved incidents that are shown.
const PAST_INCIDENTS: usize = 20;

/// The whole page. It states that it last changed at `changed_at`.
pub fn page(site: &StatusSite, status: &ServiceStatus, changed_at: Wall) -> String {
    let threads = threads(&status.messages);
    let incidents = incident_count(status, &threads);
    let (open, past): (Vec<_>, Vec<_>) = threads.into_iter().partition(IncidentThread::is_open);
    fill(TEMPLATE, |name| {
        Some(match name {
            "css" => STYLE.to_owned(),
            "service" => escape(&site.service),
            "header" => {
                let account = AccountLink::for_all(site.sign_up);
                site_header(&site.service, true, account, STATUS)
            }
            "availability" => availability(status),
            "incidents" => incident_line(&open),
            "notes" => notes(status),
            "open" => open_incidents(&open),
            "data" => data(&status.data),
            "days" => days(status) + &incidents,
            "past" => past_incidents(&past),
            "changed" => time(changed_at),
            _ => return None,
        })
    })
}

/// A sentence that says whether the API is up. It does not depend on the operator's messages.
fn availability(status: &ServiceStatus) -> String {
    let (is_good, words) = if !status.is_ready {
        (false, "The API is down at this gateway")
    } else if status.store_fails {
        (false, "The API is up, but degraded")
    } else if status.data.stale_since.is_some() {
        (false, "The API is up, but its data is stale")
    } else if status.data.newest.is_none() {
        (false, "The API is up, but has no data yet")
    } else {
        (true, "The API is up, and its data is current")
    };
    state_line(is_good, words)
}

/// A sentence about the open incidents, if there are any. It is the headline, because the operator's reports take
/// precedence over measurements.
fn incident_line(open: &[IncidentThread<'_>]) -> String {
    match open {
        [] => String::new(),
        [only] => {
            let state = name(only.state).to_lowercase();
            state_line(
                false,
                &format!("Open incident: {} ({state})", escape(only.title)),
            )
        }
        [_, _, ..] => state_line(false, &format!("{} open incidents", open.len())),
    }
}

/// A line about the state of the service. `words` is HTML.
fn state_line(is_good: bool, words: &str) -> String {
    let (class, mark) = if is_good {
        ("good", "\u{2713}")
    } else {
        ("warn", "!")
    };
    format!(
        "<p class=\"state {class}\"><span aria-hidden=\"true\">{mark}</span> <span dir=\"auto\">{words}</span></p>\n"
    )
}

/// Notes on the problems that this gateway has detected.
fn notes(status: &ServiceStatus) -> String {
    let mut notes = Vec::new();
    if !status.is_ready {
        notes.push(
            "This gateway is starting, stopping or overloaded. Other gateways may serve requests."
                .into(),
        );
    }
    if status.store_fails {
        let end = status
            .counted_until
            .map(|end| format!(" The history ends at {}.", time(end)));
        notes.push(format!(
            "The store of keys and quotas is not responding to this gateway. Some requests may get a 503.{}",
            end.unwrap_or_default()
        ));
    }
    if status.backend_fails {
        notes.push("The data source is not responding; we are serving stored data.".into());
    }
    if let Some(since) = status.data.stale_since {
        let words = "has not arrived. Responses with older data are marked as stale.";
        notes.push(format!(
            "A refresh of the data was expected at {} and {words}",
            time(since)
        ));
    }
    if notes.is_empty() {
        return String::new();
    }
    let items: Vec<String> = notes
        .iter()
        .map(|note| format!("<li>{note}</li>\n"))
        .collect();
    format!("<ul>\n{}</ul>\n", items.concat())
}

fn data(data: &DataState) -> String {
    let state = match (data.stale_since, data.newest) {
        (Some(since), _) => format!("stale since {}", time(since)),
        (None, Some(_)) => "current".into(),
        (None, None) => "no data yet".into(),
    };
    format!(
        "<dl class=\"facts\">\n<dt>State</dt><dd>{state}</dd>\n<dt>Last refresh</dt><dd>{}</dd>\n\
         <dt>Next refresh expected</dt><dd>{}</dd>\n</dl>\n",
        time_if_known(data.newest),
        time_if_known(data.expected)
    )
}

fn time_if_known(at: Option<Wall>) -> String {
    at.map_or_else(|| "not known yet".into(), time)
}

fn open_incidents(open: &[IncidentThread<'_>]) -> String {
    if open.is_empty() {
        return String::new();
    }
    let incidents: String = open.iter().map(incident).collect();
    format!(
        "<section aria-labelledby=\"open-title\">\n<h2 id=\"open-title\">Open incidents</h2>\n{incidents}</section>\n"
    )
}

fn past_incidents(past: &[IncidentThread<'_>]) -> String {
    if past.is_empty() {
        return "<p>None.</p>\n".into();
    }
    past.iter().take(PAST_INCIDENTS).map(incident).collect()
}

fn incident(thread: &IncidentThread<'_>) -> String {
    let number = thread.number;
    let title = escape(thread.title);
    let messages = thread.messages.iter().map(|message| {
        let state = message.state;
        let class = if state == IncidentState::Resolved {
            "method"
        } else {
            "badge"
        };
        format!(
            "<h4><span class=\"{class}\">{}</span> {}</h4>\n{}",
            name(state),
            time(message.at),
            paragraphs(&message.message)
        )
    });
    format!(
        "<article class=\"incident\" id=\"incident-{number}\" aria-labelledby=\"incident-{number}-title\">\n\
         <h3 id=\"incident-{number}-title\" dir=\"auto\">{title}</h3>\n{}</article>\n",
        messages.collect::<String>()
    )
}

fn days(status: &ServiceStatus) -> String {
    let whole = total(&status.days);
    let Some(first) = status.days.first() else {
        return "<p>The history has not been read yet.</p>\n".into();
    };
    let last = status.days.last().unwrap_or(first);
    if whole.counted == 0 {
        return "<p>There is no history yet. It begins a few minutes after the first start.</p>\n"
            .into();
    }
    let ends = format!(
        "<p class=\"ends\"><span>{}</span><span>{}</span></p>\n",
        first.day, last.day
    );
    let up = chart(
        "up",
        "Availability by day",
        &lost(&status.days, "downtime", DayAvailability::down),
        &bars(status, "up", "down", |day| (day.up, day.counted)),
    );
    let availability = share(whole.up, whole.counted);
    let down = whole.down();
    let days = match status.days.iter().filter(|day| day.counted > 0).count() {
        1 => "1 day".into(),
        count => format!("{count} days"),
    };
    let down = if down == 0 {
        format!("No downtime in {days}.")
    } else {
        format!("Down for {} in {days}.", in_words(down))
    };
    format!(
        "<h3>Availability: {availability}</h3>\n<p>{down}</p>\n{up}{ends}{}{}{}",
        freshness(status, &whole, &ends),
        rules(status),
        day_table(&status.days),
    )
}

/// The share of time with current data. Empty if the API was never up.
fn freshness(status: &ServiceStatus, whole: &DayAvailability, ends: &str) -> String {
    if whole.up == 0 {
        return String::new();
    }
    let current = share(whole.fresh, whole.up);
    let stale = match whole.stale() {
        0 => "Never stale while the API was up.".into(),
        stale => format!("Stale for {} while the API was up.", in_words(stale)),
    };
    let words = lost(&status.days, "stale data", DayAvailability::stale);
    let chart = chart(
        "fresh",
        "Freshness of the data by day",
        &words,
        &bars(status, "current", "stale", |day| (day.fresh, day.up)),
    );
    format!("<h3>Data current: {current}</h3>\n<p>{stale}</p>\n{chart}{ends}")
}

/// The number of incidents that began on the days shown.
fn incident_count(status: &ServiceStatus, threads: &[IncidentThread<'_>]) -> String {
    let Some(first) = status.days.first() else {
        return String::new();
    };
    let from = first.day.start();
    let recent = threads
        .iter()
        .filter(|thread| thread.messages.last().is_some_and(|begun| begun.at >= from))
        .count();
    let open = threads.iter().filter(|thread| thread.is_open()).count();
    let words = match open {
        0 => "None is open.".into(),
        1 => "1 is open.".into(),
        _ => format!("{open} are open."),
    };
    format!("<h3>Incidents: {recent}</h3>\n<p>{words}</p>\n")
}

/// The bars of a chart: for each day, the number of good minutes and the number of all minutes that count.
fn bars(
    status: &ServiceStatus,
    good: &str,
    bad: &str,
    minutes: fn(&DayAvailability) -> (u64, u64),
) -> Vec<ChartDay> {
    status
        .days
        .iter()
        .map(|day| {
            let (up, whole) = minutes(day);
            let words = match (whole, whole.saturating_sub(up)) {
                (0, _) => "no data".into(),
                (_, 0) => good.into(),
                (_, lost) => format!("{bad} for {}", in_words(lost)),
            };
            ChartDay {
                label: format!("{}: {words}", day.day),
                good: up,
                whole,
            }
        })
        .collect()
}

/// A description of a chart in words.
fn lost(days: &[DayAvailability], what: &str, lost: fn(&DayAvailability) -> u64) -> String {
    let count = days.iter().filter(|day| lost(day) > 0).count();
    let days = match count {
        0 => format!("No {what}"),
        1 => format!("1 day has {what}"),
        count => format!("{count} days have {what}"),
    };
    format!("A bar for each day. {days}. The table below has the numbers.")
}

fn rules(status: &ServiceStatus) -> String {
    let begun = status
        .begun
        .map(|begun| format!(" The history begins at {}.", time(begun)));
    format!(
        "<p class=\"note\">Solid: up, or data current. Hatched: down, or data stale. Flat: no data. A minute counts as up if any \
         gateway of the service recorded that it was ready, and as down if none did. Days are UTC.{}</p>\n",
        begun.unwrap_or_default()
    )
}

/// The days with data, newest first.
fn day_table(days: &[DayAvailability]) -> String {
    let rows = days.iter().rev().filter(|day| day.counted > 0).map(|day| {
        vec![
            day.day.to_string(),
            share(day.up, day.counted),
            in_words(day.down()),
            in_words(day.stale()),
        ]
    });
    let heads = ["Day", "Available", "Down", "Stale data"];
    let table = html::table("Availability by day", &heads, rows);
    format!("<details>\n<summary>Numbers of each day</summary>\n{table}</details>\n")
}
