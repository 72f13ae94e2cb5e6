//! `scoregate keys show --usage`: the usage of an application, counted by the running server.

use serde_json::Value;

use crate::{
    accounts::{CountedRequests, RequestCounts},
    admin::{LiveCommand, UsageCommand},
    cli::{command_error::CommandOutcome, control::request_running, printer},
    config::Config,
    statistics::{ApplicationUse, RemainingAllowance},
};
use scoregate_base::keys::ApplicationId;

/// Requests the usage of an application.
pub async fn fetch(config: &Config, id: ApplicationId) -> CommandOutcome<Value> {
    let command = LiveCommand::Usage(UsageCommand::Show { id });
    request_running(
        config,
        &command,
        "usage is counted only by a running server",
    )
    .await
}

/// Adds the usage to a response.
pub fn merged(mut response: Value, used: Option<Value>) -> Value {
    if let Some(used) = used
        && let Some(fields) = response.as_object_mut()
    {
        fields.insert("usage".into(), used);
    }
    response
}

/// Prints the usage.
pub fn show(used: &ApplicationUse) -> anyhow::Result<()> {
    printer::data("\n")?;
    let header = ["limit", "allowed", "used", "remaining", "resets at"];
    printer::table(
        &header,
        used.limits.iter().map(|allowance: &RemainingAllowance| {
            let used = allowance.limit.saturating_sub(allowance.remaining);
            let limit = allowance.limit.to_string();
            let remaining = allowance.remaining.to_string();
            vec![
                allowance.name.clone(),
                limit,
                used.to_string(),
                remaining,
                allowance.reset_at.clone(),
            ]
        }),
    )?;
    match &used.requests {
        Some(counted) => print_counts(counted),
        None => printer::data("\ntoo few requests today to be counted\n"),
    }
}

fn print_counts(counted: &CountedRequests) -> anyhow::Result<()> {
    let rows = [
        counts_row("last full minute", &counted.last_minute),
        counts_row("today", &counted.today),
    ];
    let names = [
        "period",
        "requests",
        "delivered",
        "waited",
        "unchanged",
        "limited",
        "client errors",
        "failed",
    ];
    printer::data("\n")?;
    if counted.missed > 0 {
        printer::message(&format!(
            "today's counts may be too low by up to {} requests",
            counted.missed
        ));
    }
    printer::table(&names, rows)
}

fn counts_row(period: &str, counts: &RequestCounts) -> Vec<String> {
    let RequestCounts {
        requests,
        delivered,
        waited,
        unchanged,
        limited,
        client_errors,
        failed,
    } = *counts;
    let numbers = [
        requests,
        delivered,
        waited,
        unchanged,
        limited,
        client_errors,
        failed,
    ];
    std::iter::once(period.to_owned())
        .chain(numbers.map(|number| number.to_string()))
        .collect()
}
