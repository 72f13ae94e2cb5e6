//! `scoregate keys export`: exports all keys in the format of `import`, one page of applications at a time.
//!
//! Does not export quotas and the audit trail; see `cli::store`.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;

use crate::admin::{AdminCommand, ExportView, FIELDS, LineObject};
use crate::cli::control::{CommandError, CommandTarget, MissingStore};
use crate::cli::exit::Exit;
use crate::cli::printer;
use crate::cli::serve::StopSignals;
use crate::config::Config;

use super::csv;
use super::import::Format;

pub(super) const AFTER_HELP: &str = "Examples:\n  \
scoregate keys export keys.csv --data-dir DIR\n  \
scoregate keys export --format jsonl --data-dir DIR | gzip > keys.jsonl.gz\n\n\
The file contains SHA-256 hashes, not keys. It is readable by its owner only, since guessed keys can be checked against\n\
it. Usage and the audit trail are not exported.";

/// Applications in a page.
const PAGE: usize = 500;

#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    /// Output file, which must not exist; default: standard output.
    file: Option<PathBuf>,
    /// Output format; default: by the file name's extension, else csv.
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Overwrite an existing file.
    #[arg(long, requires = "file")]
    force: bool,
}

pub(super) async fn run(config: &Config, args: ExportArgs) -> Result<Exit, CommandError> {
    let format = match (args.format, &args.file) {
        (Some(format), _) => format,
        (None, Some(file)) => Format::of(file)?,
        (None, None) => Format::Csv,
    };
    let target = CommandTarget::find(config, MissingStore::Refuse).await?;
    let Some(file) = &args.file else {
        let mut to_stdout = |text: &str| printer::write(text);
        return match export(&target, format, &mut to_stdout).await {
            Err(CommandError::Fault(error)) if is_closed_pipe(&error) => Ok(Exit::Done),
            outcome => outcome,
        };
    };
    let output = ExportFile::create(file, args.force)?;
    let mut out = BufWriter::new(&output.part);
    let mut stop = StopSignals::listen()?;
    let mut write = |text: &str| out.write_all(text.as_bytes());
    let exit = tokio::select! {
        exit = export(&target, format, &mut write) => exit?,
        () = stop.wait() => return Err(CommandError::Input(format!("interrupted: {} was not written", file.display()))),
    };
    let failed = || format!("{} cannot be written", file.display());
    out.flush().with_context(failed)?;
    drop(out);
    output.finish().with_context(failed)?;
    Ok(exit)
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

/// Writes all keys. Reports unreadable records, which make the exit code 2.
async fn export(
    target: &CommandTarget,
    format: Format,
    write: &mut dyn FnMut(&str) -> io::Result<()>,
) -> Result<Exit, CommandError> {
    let (mut after, mut exit) = (None, Exit::Done);
    if format == Format::Csv {
        write(&format!("{}\n", csv::header())).map_err(anyhow::Error::from)?;
    }
    loop {
        let response = target.perform(AdminCommand::Export { after, limit: PAGE }).await?;
        let page: ExportView =
            serde_json::from_value(response).context("the server's response is invalid")?;
        let lines = page.keys.iter().map(|key| match format {
            Format::Csv => csv::line(key),
            Format::Jsonl => json_line(key),
        });
        let text: String = lines.map(|line| line + "\n").collect();
        write(&text).map_err(anyhow::Error::from)?;
        for reason in &page.skipped {
            printer::message(&format!("skipped: {reason}"));
            exit = Exit::Fault;
        }
        match page.next {
            Some(next) => after = Some(next.parse().context("the server's response is invalid")?),
            None => return Ok(exit),
        }
    }
}

fn json_line(key: &LineObject) -> String {
    let find = |name: &&str| key.0.iter().find(|(known, _)| known == name).cloned();
    let in_order = LineObject(FIELDS.iter().filter_map(find).collect());
    serde_json::to_string(&in_order).expect("strings and numbers are valid JSON")
}

/// An output file with mode 0600 that is renamed to its path when complete. Dropped before that, it is removed.
struct ExportFile {
    path: PathBuf,
    part_path: PathBuf,
    part: File,
    /// Set if `path` is an empty file of ours, which reserves the name.
    is_reserved: bool,
    is_complete: bool,
}

impl ExportFile {
    fn create(path: &Path, force: bool) -> Result<Self, CommandError> {
        let shown = path.display();
        if !force {
            create_private(path).map_err(|error| {
                CommandError::Input(if error.kind() == ErrorKind::AlreadyExists {
                    format!("{shown} exists; use another name, or --force to overwrite it")
                } else {
                    format!("{shown} cannot be created: {error}")
                })
            })?;
        }
        let mut part_path = path.as_os_str().to_owned();
        part_path.push(format!(".{}.part", std::process::id()));
        let part_path = PathBuf::from(part_path);
        match create_private(&part_path) {
            Ok(part) => {
                Ok(Self { path: path.to_owned(), part_path, part, is_reserved: !force, is_complete: false })
            }
            Err(error) => {
                if !force {
                    drop(std::fs::remove_file(path));
                }
                Err(CommandError::Input(format!("{} cannot be created: {error}", part_path.display())))
            }
        }
    }

    fn finish(mut self) -> io::Result<()> {
        self.part.sync_all()?;
        std::fs::rename(&self.part_path, &self.path)?;
        self.is_complete = true;
        Ok(())
    }
}

impl Drop for ExportFile {
    fn drop(&mut self) {
        if self.is_complete {
            return;
        }
        drop(std::fs::remove_file(&self.part_path));
        if self.is_reserved {
            drop(std::fs::remove_file(&self.path));
        }
    }
}

fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}
