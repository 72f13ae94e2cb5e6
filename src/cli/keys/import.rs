//! `scoregate keys import`: imports keys of another system by their SHA-256, one per line.
//!
//! Keys that were counted are durable, even if the command is interrupted. `admin` validates the keys.

use std::{
    collections::HashSet,
    io::{self, BufReader, Read},
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use serde_json::{json, value::to_raw_value};

use crate::{
    admin::{AdminCommand, ImportView, KeysCommand, LineView, MAX_BATCH, read_json},
    cli::{
        command_error::{CommandError, CommandOutcome, input_is_fine},
        control::{CommandTarget, MissingStore},
        input_file::InputFile,
        input_lines::{InputLine, InputLines},
        printer,
    },
    config::Config,
    registry::{BadField, KeyRecord},
};

use super::csv::Columns;

pub const AFTER_HELP: &str = include_str!("../help/keys_import.txt");

#[derive(Debug, Args)]
pub struct KeysImportArgs {
    /// Input file; `-` for standard input.
    file: PathBuf,
    /// Input format; default: by the file name's extension.
    #[arg(long, value_enum)]
    format: Option<Format>,
}

/// Maximum length of a line. A key whose fields all have the maximum length needs a tenth of this.
const MAX_LINE_LENGTH: usize = 65_536;
const READ_BUFFER: usize = 1 << 16;

/// File formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Comma-separated values with a header line.
    Csv,
    /// One JSON object per line.
    Jsonl,
}

impl Format {
    /// The format of a file by its extension.
    pub fn of(file: &Path) -> CommandOutcome<Self> {
        match file.extension().and_then(|ending| ending.to_str()) {
            Some("csv") => Ok(Self::Csv),
            Some("jsonl" | "ndjson") => Ok(Self::Jsonl),
            Some(_) | None => {
                let shown = file.display();
                Err(CommandError::Input(format!(
                    "unknown format of {shown}: add --format csv or jsonl"
                )))
            }
        }
    }
}

/// A line of a file.
struct KeyLine {
    number: u64,
    key: Result<KeyRecord, BadField>,
}

/// The reason why an import ends before the end of the file.
enum KeyReadError {
    /// Problems with the header line, with its line number.
    Header(u64, Vec<BadField>),
    /// The file cannot be read.
    Failed(io::Error),
}

/// An import and its counts.
struct FileImport<'i> {
    /// The name of the file.
    name: String,
    target: CommandTarget,
    config: &'i Config,
    imported: usize,
    existing: usize,
    rejected: usize,
    /// Set if a key of another format was imported while `keys.accept_imported` is off.
    needs_setting: bool,
}

pub async fn run(config: &Config, args: KeysImportArgs, json: bool) -> CommandOutcome {
    let format = args.format.map_or_else(|| Format::of(&args.file), Ok)?;
    let InputFile { name, reader } = InputFile::open(&args.file)?;
    let mut import = FileImport {
        name,
        target: CommandTarget::find(config, MissingStore::Create).await?,
        config,
        imported: 0,
        existing: 0,
        rejected: 0,
        needs_setting: false,
    };
    let lines = KeyLines {
        lines: InputLines::new(
            BufReader::with_capacity(READ_BUFFER, reader),
            MAX_LINE_LENGTH,
        ),
        format,
        columns: None,
        seen: HashSet::new(),
    };
    let ended = import.store_all(lines).await;
    printer::progress("");
    import.finish(json, ended)
}

impl FileImport<'_> {
    /// Stores all lines in batches. If a line cannot be read, the lines before it are stored.
    async fn store_all(&mut self, lines: KeyLines) -> CommandOutcome<()> {
        let mut batch = Vec::new();
        for line in lines {
            match line {
                Ok(line) => batch.push(line),
                Err(error) => {
                    self.store(batch).await?;
                    return Err(self.ended_by(error));
                }
            }
            if batch.len() >= MAX_BATCH {
                self.store(std::mem::take(&mut batch)).await?;
            }
        }
        self.store(batch).await
    }

    fn ended_by(&mut self, error: KeyReadError) -> CommandError {
        match error {
            KeyReadError::Failed(error) => {
                let what = format!("{} cannot be read", self.name);
                anyhow::Error::new(error).context(what).into()
            }
            KeyReadError::Header(line, problems) => {
                for problem in &problems {
                    self.reject(line, problem);
                }
                CommandError::Input("nothing was imported: correct the header line".into())
            }
        }
    }

    /// Stores the valid keys of a batch, reports the invalid lines and counts the outcomes.
    async fn store(&mut self, batch: Vec<KeyLine>) -> CommandOutcome<()> {
        let valid = batch.iter().filter_map(|line| line.key.as_ref().ok());
        let keys = valid.map(to_raw_value).collect::<Result<_, _>>();
        let keys = keys.expect("strings and numbers are valid JSON");
        let command = AdminCommand::Keys(KeysCommand::Import { keys });
        let response = self.target.perform(command).await?;
        let view: ImportView =
            serde_json::from_value(response).context("the server's response is invalid")?;
        let mut results = view.results.into_iter();
        for KeyLine { number, key } in batch {
            let key = match key {
                Ok(key) => key,
                Err(bad) => {
                    self.reject(number, &bad);
                    continue;
                }
            };
            match results.next() {
                Some(LineView::Imported { .. }) => {
                    self.imported += 1;
                    self.needs_setting |= !view.accept_imported && !self.is_ours(&key);
                }
                Some(LineView::Existing) => self.existing += 1,
                Some(LineView::Rejected { field, error }) => {
                    self.reject(number, &BadField::new(&field, error));
                }
                None => {
                    return Err(
                        anyhow::anyhow!("the server returned fewer results than keys").into(),
                    );
                }
            }
        }
        printer::progress(&self.summary());
        Ok(())
    }

    fn reject(&mut self, line: u64, bad: &BadField) {
        self.rejected += 1;
        printer::message(&format!("{}:{line}: {bad}", self.name));
    }

    /// Whether a key has this service's format.
    fn is_ours(&self, key: &KeyRecord) -> bool {
        let rest = key
            .shown
            .as_ref()
            .and_then(|shown| shown.strip_prefix(&self.config.key_prefix));
        rest.is_some_and(|rest| rest.starts_with('_'))
    }

    fn summary(&self) -> String {
        let Self {
            imported,
            existing,
            rejected,
            ..
        } = self;
        format!("{imported} imported, {existing} already present, {rejected} rejected")
    }

    /// Prints the counts, even after an error.
    fn finish(self, json: bool, ended: CommandOutcome<()>) -> CommandOutcome {
        if json {
            printer::json(&json!({
                "imported": self.imported,
                "existing": self.existing,
                "rejected": self.rejected,
            }))?;
        } else {
            printer::data(&format!("{}\n", self.summary()))?;
        }
        if self.needs_setting {
            printer::message("keys of other formats are refused until keys.accept_imported is set");
        }
        ended?;
        input_is_fine(self.rejected == 0)
    }
}

/// The parsed lines of a file.
struct KeyLines {
    lines: InputLines<BufReader<Box<dyn Read + Send>>>,
    format: Format,
    /// The columns of a CSV file, from its header line.
    columns: Option<Columns>,
    /// The first halves of the digests. They suffice to detect duplicates.
    seen: HashSet<Option<[u8; 16]>>,
}

impl KeyLines {
    /// Parses a line; `None` for the header line of a CSV file.
    fn parse(&mut self, line: InputLine) -> Result<Option<KeyLine>, KeyReadError> {
        let InputLine { number, text } = line;
        let text = text.map_err(|reason| BadField::new("line", reason));
        let key = match (self.format, &self.columns) {
            (Format::Jsonl, _) => text.and_then(|text| read_json(&text)),
            (Format::Csv, Some(columns)) => text.and_then(|text| columns.record(&text)),
            (Format::Csv, None) => {
                let columns = text
                    .map_err(|bad| vec![bad])
                    .and_then(|text| Columns::read(&text));
                let columns = columns.map_err(|problems| KeyReadError::Header(number, problems));
                self.columns = Some(columns?);
                return Ok(None);
            }
        };
        let key = key.and_then(|key| self.first(key));
        Ok(Some(KeyLine { number, key }))
    }

    /// Returns the key, or an error if the same key occurred earlier in the file.
    fn first(&mut self, key: KeyRecord) -> Result<KeyRecord, BadField> {
        if self
            .seen
            .insert(key.digest.as_bytes().first_chunk().copied())
        {
            Ok(key)
        } else {
            Err(BadField::new("sha256", "occurs twice in this file"))
        }
    }
}

impl Iterator for KeyLines {
    type Item = Result<KeyLine, KeyReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let line = self.lines.next()?.map_err(KeyReadError::Failed);
            let parsed = line.and_then(|line| self.parse(line)).transpose();
            if parsed.is_some() {
                return parsed;
            }
        }
    }
}
