//! `scoregate reload`: reloads the settings and certificates of a running server.

use crate::admin::{LiveCommand, Reloaded, SettingsCommand};

use super::{
    command_error::CommandOutcome, control::perform_live, group_args::OutputArgs, printer,
};

pub const AFTER_HELP: &str = "Example:\n  scoregate reload --data-dir DIR\n\n\
Like SIGHUP, but prints the settings that took effect, and the settings that need a restart. If there are errors, nothing\n\
changes, all errors are reported, and the exit code is 1.";

pub fn run(args: &OutputArgs) -> CommandOutcome {
    let config = args.server.settings()?;
    let command = LiveCommand::Settings(SettingsCommand::Reload {});
    let response = perform_live(&config, &command, "there are no settings to reload")?;
    printer::answer(response, args.json, |response| {
        printer::response(response, |reloaded| printer::data(&text(reloaded)))
    })
}

fn text(reloaded: &Reloaded) -> String {
    let lines = line("in effect now", &reloaded.at_once)
        + &line("in effect after a restart", &reloaded.at_next_start);
    if lines.is_empty() {
        "no setting changed; certificates reloaded\n".into()
    } else {
        lines
    }
}

fn line(when: &str, paths: &[String]) -> String {
    if paths.is_empty() {
        String::new()
    } else {
        format!("{when}: {}\n", paths.join(", "))
    }
}
