//! `scoregate reload`: a running server reads its settings and certificates again.

use clap::Args;
use http::Method;

use crate::admin::{RELOAD, Reloaded};

use super::control::{ask_running, said, wait_for};
use super::exit::Exit;
use super::printer;
use super::serve::ServerArgs;

pub(super) const AFTER_HELP: &str = "Example:\n  scoregate reload --data-dir DIR\n\n\
Like SIGHUP, but reports which settings took effect and which need a restart. If there are errors, nothing changes,\n\
all errors are reported, and the exit code is 1.";

#[derive(Debug, Args)]
pub(super) struct ReloadArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// Print JSON instead of text.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &ReloadArgs) -> Exit {
    let config = match args.server.settings() {
        Ok(config) => config,
        Err(problems) => return printer::input(&problems.to_string()),
    };
    let asked = (Method::POST, RELOAD.into(), Vec::new());
    let told = match wait_for(ask_running(&config, asked, "there is nothing that could read its settings")) {
        Ok(told) => told,
        Err(undone) => return said(undone),
    };
    if args.json {
        return printer::data(&format!("{told:#}\n"));
    }
    match serde_json::from_value::<Reloaded>(told) {
        Ok(reloaded) => printer::data(&text(&reloaded)),
        Err(error) => printer::fault(&anyhow::anyhow!("the server's answer cannot be read: {error}")),
    }
}

fn text(reloaded: &Reloaded) -> String {
    let line = |when: &str, paths: &[String]| {
        if paths.is_empty() { String::new() } else { format!("{when}: {}\n", paths.join(", ")) }
    };
    let lines = line("holds now", &reloaded.at_once) + &line("at the next start", &reloaded.at_next_start);
    if lines.is_empty() { "nothing differs; certificates were read again\n".into() } else { lines }
}
