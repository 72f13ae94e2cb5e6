//! `scoregate nodes`: lists the gateways on the store.
//!
//! Over the Unix socket of a running gateway, or on the store if none runs on this machine.

use clap::Args;

use crate::admin::{AdminCommand, NodeView, NodesCommand, NodesView};

use super::command_error::CommandOutcome;
use super::control::perform_once;
use super::exit::Exit;
use super::printer;
use super::serve::ServerArgs;

pub(super) const AFTER_HELP: &str = include_str!("help/nodes.txt");

#[derive(Debug, Args)]
pub(super) struct NodesArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &NodesArgs) -> CommandOutcome {
    let command = AdminCommand::Nodes(NodesCommand::List {});
    let response = perform_once(&args.server.settings()?, command)?;
    Ok(if args.json {
        printer::json(&response)
    } else {
        printer::response(response, list)
    })
}

fn list(view: &NodesView) -> Exit {
    if view.nodes.is_empty() {
        printer::message("no gateway is running");
    }
    let row = |node: &NodeView| {
        let seen = format!("{} s ago", node.last_seen_seconds_ago);
        let live = if node.live { "yes" } else { "no" };
        let since = node.started_at.clone();
        let held = node.units_held.to_string();
        vec![
            node.node.clone(),
            node.version.clone(),
            since,
            seen,
            live.into(),
            held,
            node.name.clone(),
        ]
    };
    let header = [
        "node",
        "version",
        "since",
        "last seen",
        "live",
        "units held",
        "name",
    ];
    printer::table(&header, view.nodes.iter().map(row))
}
