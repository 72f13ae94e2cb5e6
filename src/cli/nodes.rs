//! `scoregate nodes`: lists the gateways that use the store.
//!
//! Uses the Unix socket of a running gateway, or the store if no gateway runs on this machine.

use serde_json::Value;

use crate::admin::{AdminCommand, NodesCommand};

use super::{
    command_error::CommandOutcome,
    control::perform_once,
    group_args::OutputArgs,
    printer::{self, items},
};

pub const AFTER_HELP: &str = include_str!("help/nodes.txt");

const COLUMNS: [(&str, &str); 7] = [
    ("node", "node"),
    ("version", "version"),
    ("since", "started_at"),
    ("seen s ago", "last_seen_seconds_ago"),
    ("live", "live"),
    ("units held", "units_held"),
    ("name", "name"),
];

pub fn run(args: &OutputArgs) -> CommandOutcome {
    let command = AdminCommand::Nodes(NodesCommand::List {});
    let response = perform_once(&args.server.settings()?, command)?;
    printer::answer(response, args.json, |response| list(&response))
}

fn list(listed: &Value) -> anyhow::Result<()> {
    let nodes = items(listed, "nodes");
    if nodes.is_empty() {
        printer::message("no gateway is running");
    }
    printer::objects(&COLUMNS, nodes)
}
