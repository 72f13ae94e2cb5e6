//! `scoregate keys requests`: the requests of an application by day, endpoint and outcome.

use clap::Args;

use crate::admin::{AdminCommand, ApplicationRequestsView};
use crate::cli::exit::Exit;
use crate::cli::printer;
use scoregate_base::clock::{Clock, Day};
use scoregate_base::keys::ApplicationId;
use scoregate_store::{OutcomeCounts, REQUEST_DAYS_KEPT, RequestOutcome};

pub(super) const AFTER_HELP: &str = "Examples:\n  scoregate keys requests app_0123456789a --data-dir DIR\n  \
scoregate keys requests app_0123456789a --days 7 --json --data-dir DIR\n\n\
Requests with a valid key are counted, of all gateways on the store; each records them every minute. Days without\n\
requests are not shown.";

#[derive(Debug, Args)]
pub(super) struct RequestsArgs {
    /// Application id.
    id: ApplicationId,
    /// Number of days, today included.
    #[arg(long, default_value_t = 30, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(REQUEST_DAYS_KEPT)))]
    days: u32,
}

impl RequestsArgs {
    pub(super) fn into_command(self) -> AdminCommand {
        let today = Clock::system().now().wall.day();
        let first = today.number().saturating_sub(self.days - 1);
        AdminCommand::Requests {
            id: self.id,
            first: Some(Day::from_number(first)),
            last: Some(today),
        }
    }
}

/// Prints a table by day and one by endpoint.
pub(super) fn show(view: &ApplicationRequestsView) -> Exit {
    if view.requests == 0 {
        printer::message(&format!(
            "no requests were recorded from {} to {}",
            view.from, view.to
        ));
        return Exit::Done;
    }
    let days = view.days.iter().filter(|day| day.requests > 0);
    let mut by_day: Vec<Vec<String>> = days.map(|day| row(&day.day, &day.outcomes)).collect();
    by_day.push(row("all days", &view.outcomes));
    let by_endpoint = view
        .endpoints
        .iter()
        .map(|endpoint| row(&endpoint.endpoint, &endpoint.outcomes));
    let exits = [
        printer::table(&header("day"), by_day),
        printer::data("\n"),
        printer::table(&header("endpoint"), by_endpoint),
    ];
    if let Some(at) = &view.recorded_at {
        printer::message(&format!(
            "requests after {at} are not yet recorded by all gateways"
        ));
    }
    exits
        .into_iter()
        .find(|exit| *exit != Exit::Done)
        .unwrap_or(Exit::Done)
}

fn header(first: &'static str) -> Vec<&'static str> {
    [first, "requests"]
        .into_iter()
        .chain(RequestOutcome::ALL.map(RequestOutcome::word))
        .collect()
}

fn row(name: &str, counts: &OutcomeCounts) -> Vec<String> {
    let numbers = RequestOutcome::ALL.map(|outcome| counts.of(outcome).to_string());
    [name.to_owned(), counts.total().to_string()]
        .into_iter()
        .chain(numbers)
        .collect()
}
