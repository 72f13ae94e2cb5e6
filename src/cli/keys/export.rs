//! `scoregate keys export`: exports all keys in the format of `import`, one page of applications at a time.
//!
//! Does not export quotas or the audit trail; see `cli::store`.

use std::{
    io::{self, ErrorKind, Write as _},
    path::PathBuf,
};

use anyhow::Context as _;
use clap::Args;

use crate::{
    admin::{AdminCommand, ExportView, KeysCommand},
    cli::{
        command_error::{CommandError, CommandOutcome},
        control::{CommandTarget, MissingStore},
        exit::Exit,
        output_file::OutputFile,
        printer,
        serve::StopSignals,
    },
    config::Config,
    registry::KeyRecord,
};

use super::{csv, import::Format};

pub const AFTER_HELP: &str = "Examples:\n  \
scoregate keys export keys.csv --data-dir DIR\n  \
scoregate keys export --format jsonl --data-dir DIR | gzip > keys.jsonl.gz\n\n\
The file contains SHA-256 hashes, not keys. Only its owner can read it, since guessed keys can be checked against\n\
it. Usage and the audit trail are not exported.";

/// Number of applications per page.
const PAGE: usize = 500;

#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Output file, which must not exist; default: standard output.
    file: Option<PathBuf>,
    /// Output format; default: by the file name's extension, else csv.
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Overwrite an existing file.
    #[arg(long, requires = "file")]
    force: bool,
}

pub async fn run(config: &Config, args: ExportArgs) -> CommandOutcome {
    let format = match (args.format, &args.file) {
        (Some(format), _) => format,
        (None, Some(file)) => Format::of(file)?,
        (None, None) => Format::Csv,
    };
    let target = CommandTarget::find(config, MissingStore::Refuse).await?;
    let Some(file) = &args.file else {
        let mut to_stdout = |text: &str| printer::write(text);
        return match export(&target, format, &mut to_stdout).await {
            Err(CommandError::Fault(error)) if is_closed_pipe(&error) => Ok(()),
            is_complete => all_are_readable(is_complete?),
        };
    };
    let output = OutputFile::create(file, args.force)?;
    let failed = || format!("{} cannot be written", file.display());
    let mut out = output.writer().with_context(failed)?;
    let mut stop = StopSignals::listen()?;
    let mut write = |text: &str| out.write_all(text.as_bytes());
    let is_complete = tokio::select! {
        is_complete = export(&target, format, &mut write) => is_complete?,
        () = stop.wait() => return Err(CommandError::Input(format!("interrupted: {} was not written", file.display()))),
    };
    out.flush().with_context(failed)?;
    drop(out);
    output.finish().with_context(failed)?;
    all_are_readable(is_complete)
}

fn all_are_readable(is_complete: bool) -> CommandOutcome {
    if is_complete {
        Ok(())
    } else {
        Err(CommandError::Reported(Exit::Fault))
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

/// Writes all keys. Reports unreadable records, and returns whether all records were readable.
async fn export(
    target: &CommandTarget,
    format: Format,
    write: &mut dyn FnMut(&str) -> io::Result<()>,
) -> CommandOutcome<bool> {
    let mut after = None;
    let mut is_complete = true;
    if format == Format::Csv {
        write(&csv::header()).map_err(anyhow::Error::from)?;
    }
    loop {
        let command = KeysCommand::Export { after, limit: PAGE };
        let response = target.perform(AdminCommand::Keys(command)).await?;
        let page: ExportView =
            serde_json::from_value(response).context("the server's response is invalid")?;
        let lines = page.keys.iter().map(|key| match format {
            Format::Csv => csv::line(key),
            Format::Jsonl => json_line(key),
        });
        write(&lines.collect::<String>()).map_err(anyhow::Error::from)?;
        for reason in &page.skipped {
            printer::message(&format!("skipped: {reason}"));
            is_complete = false;
        }
        match page.next {
            Some(next) => after = Some(next.parse().context("the server's response is invalid")?),
            None => return Ok(is_complete),
        }
    }
}

fn json_line(key: &KeyRecord) -> String {
    let line = serde_json::to_string(key);
    line.expect("strings and numbers are valid JSON") + "\n"
}
