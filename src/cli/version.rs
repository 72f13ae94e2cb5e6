//! `scoregate version`: the version, the build, and the file formats that other versions may be unable to read.

use std::env::consts::{ARCH, OS};

use scoregate_base::routes::API_VERSION;
use scoregate_scoring::{ARCHIVE_FORMAT, METHOD_VERSION};

use super::{command_error::CommandOutcome, printer};

/// The commit and Cargo's profile of a released program. deploy/dist/build.sh sets them.
const COMMIT: Option<&str> = option_env!("SCOREGATE_COMMIT");
const PROFILE: Option<&str> = option_env!("SCOREGATE_PROFILE");

pub fn run(is_verbose: bool) -> CommandOutcome {
    let mut text = concat!("scoregate ", env!("CARGO_PKG_VERSION"), "\n").to_owned();
    if is_verbose {
        let profile = PROFILE.unwrap_or(if cfg!(debug_assertions) {
            "dev"
        } else {
            "release"
        });
        let facts = [
            ("commit", COMMIT.unwrap_or("unknown").to_owned()),
            ("profile", profile.to_owned()),
            ("target", format!("{ARCH}-{OS}")),
            (
                "features",
                if cfg!(feature = "lab") { "lab" } else { "none" }.to_owned(),
            ),
        ];
        let formats = [
            ("archive of runs", ARCHIVE_FORMAT.to_string()),
            ("API", API_VERSION.to_owned()),
            ("method of scores", METHOD_VERSION.to_owned()),
        ];
        let lines = facts
            .into_iter()
            .chain(scoregate_store::formats())
            .chain(formats);
        text.extend(lines.map(|(name, value)| format!("{name:<17} {value}\n")));
    }
    Ok(printer::data(&text)?)
}
