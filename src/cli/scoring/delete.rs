//! `scoregate scoring delete`: deletes runs and incidents. The archive keeps the reason.

use anyhow::Context as _;
use clap::Args;
use serde_json::json;

use crate::cli::{
    command_error::{CommandError, CommandOutcome},
    control::operator,
    printer,
    serve::runtime_of_this_thread,
};
use scoregate_base::clock::Clock;
use scoregate_scoring::{ChangeAuthor, ChangeReason};

use super::archive_place::ArchivePlace;

pub const AFTER_HELP: &str = "Examples:\n  \
scoregate scoring delete r-17 r-18 --reason 'wrong API key' --data-dir DIR\n  \
scoregate scoring delete degradation-m-1789995600 --reason 'wrong API key' --data-dir DIR\n\n\
Deleted runs no longer count. To correct a run, delete it and import it again. A deleted incident is not published again.\n\
If one of the ids is unknown, nothing is deleted. The archive keeps time, user, reason and content.";

#[derive(Debug, Args)]
pub struct DeleteArgs {
    /// Ids of runs and incidents.
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// Reason, which is kept in the archive.
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: ChangeReason,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

fn reason(text: &str) -> Result<ChangeReason, String> {
    ChangeReason::new(text).map_err(|bad| bad.problem)
}

pub fn run(place: &ArchivePlace, args: DeleteArgs) -> CommandOutcome {
    let mut ids = args.ids;
    ids.sort();
    ids.dedup();
    let author = ChangeAuthor {
        actor: operator(),
        reason: args.reason,
    };
    let unknown = place
        .open()?
        .delete(&ids, &author, Clock::system().now().wall)?;
    for id in &unknown {
        printer::message(&format!("there is no run or incident {id}"));
    }
    if !unknown.is_empty() {
        return Err(CommandError::Input("nothing was deleted".into()));
    }
    let count = ids.len();
    let runtime = runtime_of_this_thread().context("the server cannot be notified")?;
    runtime.block_on(place.notify_server());
    if args.json {
        printer::json(&json!({ "deleted": count }))?;
    } else {
        printer::data(&format!("{count} deleted\n"))?;
    }
    Ok(())
}
