//! `scoregate suspects`: lists applications whose usage looks like misuse, and shows the evidence about an application.
//!
//! Uses the Unix socket of a running gateway, or the store if no gateway runs on this machine.

use clap::Args;
use serde_json::Value;

use crate::admin::{
    AdminCommand, EvidenceDayView, EvidenceView, SuspectView, SuspectsCommand, SuspectsView,
};

use super::{command_error::CommandOutcome, control::perform_once, printer, serve::ServerArgs};

pub const AFTER_HELP: &str = include_str!("help/suspects.txt");

/// Block characters for the requests of an hour, from no requests to the maximum of all hours.
const BLOCKS: [char; 9] = ['·', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

#[derive(Debug, Args)]
pub struct SuspectsArgs {
    #[command(subcommand)]
    command: Option<SuspectsCommand>,
    /// Number of days to evaluate, including today.
    #[arg(long, value_name = "DAYS", value_parser = days)]
    since: Option<u32>,
    #[command(flatten)]
    server: ServerArgs,
    /// Print JSON.
    #[arg(long, global = true)]
    json: bool,
}

pub fn run(args: SuspectsArgs) -> CommandOutcome {
    let config = args.server.settings()?;
    let command = args
        .command
        .unwrap_or(SuspectsCommand::List { days: args.since });
    let show: fn(Value) -> anyhow::Result<()> = match command {
        SuspectsCommand::List { .. } => |response| printer::response(response, list),
        SuspectsCommand::Show { letter: true, .. } => {
            |response| printer::response(response, |view| show(view, letter))
        }
        SuspectsCommand::Show { .. } => {
            |response| printer::response(response, |view| show(view, table))
        }
    };
    let response = perform_once(&config, AdminCommand::Suspects(command))?;
    printer::answer(response, args.json, show)
}

/// A number of days, such as `7d`.
fn days(text: &str) -> Result<u32, String> {
    let number = text
        .strip_suffix('d')
        .and_then(|number| number.parse().ok());
    number.ok_or_else(|| "write days, such as 7d".into())
}

fn list(view: &SuspectsView) -> anyhow::Result<()> {
    let from = &view.from;
    let to = &view.to;
    if view.suspects.is_empty() {
        printer::message(&format!(
            "no suspects among {} applications from {from} to {to}",
            view.applications
        ));
        return Ok(());
    }
    let text: String = view.suspects.iter().map(described).collect();
    let ids: Vec<&str> = view
        .suspects
        .iter()
        .map(|suspect| suspect.application.as_str())
        .collect();
    let first = ids.first().copied().unwrap_or_default();
    printer::data(&text)?;
    printer::message(&format!(
        "Before you act, look at the evidence and ask the owner:\n  scoregate suspects show {first}\n  \
         scoregate suspects show {first} --letter > letter.txt\n  \
         scoregate accounts contact --application {first} --subject 'Your use of the API' --message letter.txt\n  \
         scoregate keys set-limits {first} --minute 10 --until TIME\n  scoregate keys revoke {first}"
    ));
    Ok(())
}

/// The text of a finding: its sentence and the other applications in its group.
fn described(suspect: &SuspectView) -> String {
    let SuspectView {
        application,
        name,
        tier,
        suspicion,
        rule,
        sentence,
        others,
        ..
    } = suspect;
    let others = if others.is_empty() {
        String::new()
    } else {
        format!("  with {}\n", others.join(", "))
    };
    format!("{application} {suspicion} ({rule}) {tier} {name}\n  {sentence}\n{others}")
}

fn show(view: &EvidenceView, text: fn(&EvidenceView) -> String) -> anyhow::Result<()> {
    if view.days.is_empty() {
        let application = &view.application;
        printer::message(&format!(
            "no evidence for {application} yet; each hour appears a few minutes after it ends"
        ));
        return Ok(());
    }
    printer::data(&text(view))
}

/// The figures for each day, with the requests of each hour.
fn table(view: &EvidenceView) -> String {
    let EvidenceView {
        application,
        name,
        tier,
        days,
        suspects,
        advice,
    } = view;
    let most = days
        .iter()
        .flat_map(|day| &day.hours)
        .map(|hour| hour.requests)
        .max()
        .unwrap_or_default();
    let mut text = format!("{application} {tier} {name}\n\nday         00    06    12    18    ");
    text += "  delivered  304  again  models  networks  products\n";
    text.extend(days.iter().map(|day| row(day, most)));
    text.extend(
        suspects
            .iter()
            .map(|suspect| format!("\n{}", described(suspect))),
    );
    text.extend(
        advice
            .iter()
            .map(|sentence| format!("\nAdvice to the owner: {sentence}\n")),
    );
    text
}

/// A letter to the owner with the findings and the figures for each day.
fn letter(view: &EvidenceView) -> String {
    let EvidenceView {
        application,
        name,
        days,
        suspects,
        advice,
        ..
    } = view;
    let mut text = format!(
        "Hello,\n\nwe have a question about how your application {name} ({application}) uses the API.\n\n"
    );
    text.extend(
        suspects
            .iter()
            .map(|suspect| format!("- {}\n\n", suspect.sentence)),
    );
    text += "Its requests by day (UTC):\n\n";
    text.extend(days.iter().map(|day| {
        let EvidenceDayView { day, delivered, repeated, unchanged, models, networks, .. } = day;
        let models = models * 100.0;
        let networks = number(*networks);
        format!(
            "{day}: {delivered} documents, {repeated} of them delivered before; {unchanged} responses with 304; \
             {models:.0} % of the models; networks: {networks}\n"
        )
    }));
    text.extend(advice.iter().map(|sentence| format!("\n{sentence}\n")));
    text + "\nPlease write to us and describe what the application does. If you did not expect this use, somebody \
             else may have the key: replace it on your account page.\n"
}

/// Formats an estimate. `None` is a number above the range of estimates.
fn number(number: Option<u32>) -> String {
    number.map_or("many".into(), |number| number.to_string())
}

fn row(day: &EvidenceDayView, most: u32) -> String {
    let hours: String = day
        .hours
        .iter()
        .map(|hour| block(hour.requests, most))
        .collect();
    format!(
        "{}  {hours}  {:>9}  {:>3}  {:>5}  {:>6}  {:>8}  {:>8}\n",
        day.day,
        day.delivered,
        day.unchanged,
        day.repeated,
        format!("{:.0} %", day.models * 100.0),
        number(day.networks),
        number(day.products)
    )
}

/// The block character for a number of requests, on a logarithmic scale.
fn block(requests: u32, most: u32) -> char {
    let steps = [0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875];
    let part = if requests == 0 {
        -1.0
    } else {
        f64::from(requests).ln_1p() / f64::from(most).ln_1p().max(f64::MIN_POSITIVE)
    };
    let index = if part < 0.0 {
        0
    } else {
        1 + steps.iter().filter(|step| part > **step).count()
    };
    BLOCKS.get(index).copied().unwrap_or('█')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_are_drawn_on_a_logarithmic_scale() {
        let drawn: String = [0, 1, 10, 100, 1_000]
            .map(|requests| block(requests, 1_000))
            .iter()
            .collect();
        assert_eq!(drawn, "·▁▃▆█");
    }

    #[test]
    fn a_letter_has_the_findings_the_figures_and_the_advice() {
        let view = serde_json::json!({
            "application": "app_1", "name": "Weather", "tier": "pro", "advice": ["Send If-None-Match."],
            "days": [{
                "day": "2026-11-27", "delivered": 70, "unchanged": 3, "repeated": 20, "limited": 0, "bytes": 9,
                "models": 0.853, "networks": null, "products": 1, "concurrent_networks": 1, "hours": [],
            }],
            "suspects": [{
                "application": "app_1", "name": "Weather", "tier": "pro", "suspicion": "mirror",
                "rule": "each_refresh", "sentence": "It requested most models.", "others": [], "figures": [],
                "days": 3, "of_days": 7,
            }],
        });
        let letter = letter(&serde_json::from_value(view).unwrap());
        for part in [
            "your application Weather (app_1)",
            "- It requested most models.\n",
            "2026-11-27: 70 documents, 20 of them delivered before; 3 responses with 304; 85 % of the models; networks: \
             many\n",
            "Send If-None-Match.\n",
        ] {
            assert!(letter.contains(part), "{part}: {letter}");
        }
    }

    #[test]
    fn days_are_written_with_their_unit() {
        assert_eq!(
            (days("7d"), days("7").is_err(), days("xd").is_err()),
            (Ok(7), true, true)
        );
    }
}
