//! `scoregate explain`: how a running server would answer a request now, or how it answered one that is in the access log.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{ArgGroup, Args};
use http::Method;

use crate::admin::{EXPLAIN, ExplainBody};
use crate::gateway::{Explanation, PossibleOutcome, RuleAmounts};
use scoregate_base::keys::{ApplicationId, SHOWN_CHARACTERS};

use super::command_error::CommandOutcome;
use super::control::{block_on, request_running};
use super::exit::Exit;
use super::logged_request;
use super::printer;
use super::serve::ServerArgs;

pub(super) const AFTER_HELP: &str = include_str!("help/explain.txt");

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("caller").multiple(true))]
pub(super) struct ExplainArgs {
    /// Method and target, such as `GET /api/v1/models`.
    #[arg(
        value_name = "REQUEST",
        required_unless_present = "logged",
        requires = "caller"
    )]
    text: Option<String>,
    /// The first characters of the key; the rest is not sent.
    #[arg(long, value_name = "PREFIX", group = "caller")]
    key: Option<String>,
    /// The application; without --key its newest valid key is used.
    #[arg(long, value_name = "APP", group = "caller")]
    app: Option<ApplicationId>,
    /// A header field of the request, except for the key.
    #[arg(long, value_name = "NAME: VALUE")]
    header: Vec<String>,
    /// The address that the request comes from; loopback if absent.
    #[arg(long, value_name = "IP")]
    client: Option<IpAddr>,
    /// The id of a past request, which its response has as `X-Request-ID`.
    #[arg(long = "request", id = "logged", value_name = "ID", requires = "log", conflicts_with_all = ["text", "caller"])]
    logged: Option<String>,
    /// The access log with that request; - for standard input.
    #[arg(long, value_name = "FILE|-", requires = "logged")]
    log: Option<PathBuf>,
    #[command(flatten)]
    server: ServerArgs,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: ExplainArgs) -> CommandOutcome {
    let ExplainArgs {
        text,
        key,
        app,
        header,
        client,
        logged,
        log,
        server,
        json,
    } = args;
    let config = server.settings()?;
    let explanation = if let (Some(id), Some(log)) = (logged, log) {
        serde_json::to_value(logged_request::find(&id, &log, &config)?)
    } else {
        let body = ExplainBody {
            request: text.unwrap_or_default(),
            headers: header,
            key: key.map(|key| key.chars().take(SHOWN_CHARACTERS).collect()),
            application: app.map(|id| id.to_string()),
            client,
        };
        let body = serde_json::to_vec(&body).expect("strings are valid JSON");
        let reason = "it alone knows the state that decides";
        Ok(block_on(request_running(
            &config,
            (Method::POST, EXPLAIN.into(), body),
            reason,
        ))?)
    };
    let explanation = explanation.expect("strings and numbers are valid JSON");
    Ok(if json {
        printer::json(&explanation)
    } else {
        printer::response(explanation, show)
    })
}

fn show(explanation: &Explanation) -> Exit {
    let mut blocks = vec![format!("{}\nat {}\n", explanation.request, explanation.at)];
    for stage in &explanation.stages {
        let facts = stage.facts.iter().map(|(name, value)| (&**name, &**value));
        blocks.push(block(&stage.stage, facts));
    }
    let count = explanation.outcomes.len();
    for (number, outcome) in (1..).zip(&explanation.outcomes) {
        let title = match (count, &*outcome.condition) {
            (1, "") => "answer".into(),
            (1, condition) => format!("answer: {condition}"),
            (_, "") => format!("answer {number} of {count}"),
            (_, condition) => format!("answer {number} of {count}: {condition}"),
        };
        let mut facts = outcome_facts(outcome);
        if count == 1 {
            let headers = outcome
                .headers
                .iter()
                .map(|(name, value)| format!("{name}: {value}"));
            facts.extend(headers.map(|header| ("header", header)));
        }
        blocks.push(block(
            &title,
            facts.iter().map(|(name, value)| (*name, &**value)),
        ));
    }
    printer::data(&blocks.join("\n"))
}

fn outcome_facts(outcome: &PossibleOutcome) -> Vec<(&'static str, String)> {
    let amounts =
        |RuleAmounts { minute, day, guard }| format!("minute {minute}, day {day}, guard {guard}");
    let facts = [
        ("status", Some(outcome.status.to_string())),
        ("code", outcome.code.clone()),
        ("message", outcome.message.clone()),
        ("source", outcome.outcome.clone()),
        ("cost", Some(amounts(outcome.cost))),
        ("left", outcome.left.map(amounts)),
    ];
    let facts = facts
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    facts.collect()
}

fn block<'f>(title: &str, facts: impl Iterator<Item = (&'f str, &'f str)>) -> String {
    let lines = facts.map(|(name, value)| format!("  {name:<16} {value}\n"));
    std::iter::once(format!("{title}\n")).chain(lines).collect()
}
