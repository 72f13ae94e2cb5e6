//! `scoregate explain`: shows how a running server would answer a request now.

use clap::Args;

use crate::{
    admin::{ExplainBody, LiveCommand, RequestsCommand},
    gateway::{Explanation, PossibleOutcome, RuleAmounts},
};
use scoregate_base::keys::SHOWN_CHARACTERS;

use super::{
    command_error::CommandOutcome, control::perform_live, group_args::OutputArgs, printer,
};

pub const AFTER_HELP: &str = include_str!("help/explain.txt");

#[derive(Debug, Args)]
pub struct ExplainArgs {
    #[command(flatten)]
    body: ExplainBody,
    #[command(flatten)]
    output: OutputArgs,
}

pub fn run(args: ExplainArgs) -> CommandOutcome {
    let ExplainArgs { mut body, output } = args;
    let config = output.server.settings()?;
    body.key = body
        .key
        .map(|key| key.chars().take(SHOWN_CHARACTERS).collect());
    let command = LiveCommand::Requests(RequestsCommand::Explain(body));
    let reason = "only a running server has the state that determines the answer";
    let explanation = perform_live(&config, &command, reason)?;
    printer::answer(explanation, output.json, |explanation| {
        printer::response(explanation, show)
    })
}

fn show(explanation: &Explanation) -> anyhow::Result<()> {
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
