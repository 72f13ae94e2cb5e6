//! The requests of an application: the chart, its legend, and tables with the numbers.

use super::{
    frame,
    usage_chart::{OutcomeGroup, chart, sample},
};
use crate::pages::html::{code, escape, grouped, table};
use scoregate_base::clock::Day;
use scoregate_store::{OutcomeCounts, RequestList, RequestOutcome, RequestQuery};

/// The section about requests. `requests` is `None` if the store did not return them.
pub fn section(requests: Option<&RequestList>, days: &RequestQuery) -> String {
    let count = days.days().count();
    let content = match requests {
        None => {
            "<p>Requests are temporarily unavailable. Reload the page in a minute.</p>\n".into()
        }
        Some(requests) if requests.sum().total() == 0 => {
            "<p>No requests yet. Requests appear here within about a minute.</p>\n".into()
        }
        Some(requests) => content(requests, days),
    };
    frame::section(
        "requests",
        &format!("Requests in the last {count} days"),
        &content,
    )
}

fn content(requests: &RequestList, query: &RequestQuery) -> String {
    let days = requests.by_day(query);
    format!(
        "<div class=\"usage\">\n{}{}</div>\n<p class=\"hint\">Days are in UTC. Requests appear within about a minute. 304 responses, refused and failed \
         requests, and requests to <code>/api/v1/me</code> are included; they do not count toward the daily quota.</p>\n{}{}",
        legend(&requests.sum()),
        chart(&days),
        by_day(&days),
        by_endpoint(requests)
    )
}

fn legend(sum: &OutcomeCounts) -> String {
    format!(
        "<ul class=\"legend\">\n{}</ul>\n",
        OutcomeGroup::ALL
            .map(|group| {
                let count = grouped(group.of(sum));
                let word = group.word();
                format!(
                    "<li>{} <strong>{count}</strong> {word}</li>\n",
                    sample(group)
                )
            })
            .concat()
    )
}

/// The days with requests, newest first.
fn by_day(days: &[(Day, OutcomeCounts)]) -> String {
    let rows = days
        .iter()
        .rev()
        .filter(|(_, counts)| counts.total() > 0)
        .map(|(day, counts)| {
            let groups = OutcomeGroup::ALL.map(|group| grouped(group.of(counts)));
            [day.to_string(), grouped(counts.total())]
                .into_iter()
                .chain(groups)
                .collect()
        });
    let heads = [
        "Day",
        "Total",
        "Successful",
        "Refused",
        "Failed",
        "Disconnected",
    ];
    let table = table("Requests by day", &heads, rows);
    format!("<details class=\"numbers\">\n<summary>Requests by day</summary>\n{table}</details>\n")
}

fn by_endpoint(requests: &RequestList) -> String {
    let rows = requests
        .by_endpoint()
        .into_iter()
        .map(|(endpoint, counts)| {
            let outcomes = RequestOutcome::ALL.map(|outcome| grouped(counts.of(outcome)));
            let endpoint = if endpoint == "none" {
                "other paths".into()
            } else {
                code(endpoint)
            };
            [endpoint, grouped(counts.total())]
                .into_iter()
                .chain(outcomes)
                .collect()
        });
    let heads: Vec<&str> = ["Endpoint", "Total"]
        .into_iter()
        .chain(RequestOutcome::ALL.map(head))
        .collect();
    let table = table("Requests by endpoint", &heads, rows);
    format!(
        "<details class=\"numbers\">\n<summary>Requests by endpoint and outcome</summary>\n{table}<p class=\"hint\">{}</p>\n</details>\n",
        escape(
            "Successful: OK (200) and not modified (304). Refused: client errors (4xx), and 429 because of the limit per \
             minute or the daily quota. Failed: server errors (5xx). Disconnected: the client disconnected before the response."
        )
    )
}

const fn head(outcome: RequestOutcome) -> &'static str {
    match outcome {
        RequestOutcome::Ok => "OK",
        RequestOutcome::NotModified => "Not modified",
        RequestOutcome::ClientError => "Client error",
        RequestOutcome::RateLimited => "Rate limited",
        RequestOutcome::QuotaExceeded => "Quota exceeded",
        RequestOutcome::ServerError => "Server error",
        RequestOutcome::Disconnected => "Disconnected",
    }
}
