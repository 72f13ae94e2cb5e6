//! `scoregate cache`: lists and purges the documents of a running server.
//!
//! The server selects the documents to purge; see `routes::Selection`.

use serde_json::Value;

use crate::admin::{CacheCommand, LiveCommand};

use super::{
    command_error::CommandOutcome,
    control::perform_live,
    group_args::GroupArgs,
    printer::{self, field, items},
};

pub const AFTER_HELP: &str = "Examples:\n  \
scoregate cache list --data-dir DIR\n  \
scoregate cache purge /api/v1/models --data-dir DIR\n\n\
DIR is the data directory of the running server; --config FILE uses the directory in the configuration.";

const COLUMNS: [(&str, &str); 5] = [
    ("items", "items"),
    ("bytes", "bytes"),
    ("confirmed s ago", "confirmed_seconds_ago"),
    ("refresh in s", "due_in_seconds"),
    ("document", "document"),
];

pub fn run(args: GroupArgs<CacheCommand>) -> CommandOutcome {
    let config = args.server.settings()?;
    let show: fn(Value) -> anyhow::Result<()> = match args.command {
        CacheCommand::List {} => {
            |response| printer::objects(&COLUMNS, items(&response, "documents"))
        }
        CacheCommand::Purge(_) => {
            |response| printer::data(&format!("purged: {}\n", field(&response, "purged")))
        }
    };
    let reason = "documents are only in the memory of a running server";
    let response = perform_live(&config, &LiveCommand::Cache(args.command), reason)?;
    printer::answer(response, args.json, show)
}
