//! `scoregate scoring import`: benchmark runs come in, line by line.
//!
//! A thread reads and checks lines while the batch before is being stored. What was counted is on the disk; runs begin to
//! count when the import ends, whichever way, and a running server is told. Not for: what a line may say, nor how runs are kept (`scoring`).

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use flate2::bufread::MultiGzDecoder;
use http::Method;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::admin::SCORING_REFRESH;
use crate::cli::control::ask_if_running;
use crate::cli::exit::Exit;
use crate::cli::input_lines::{InputLine, InputLines};
use crate::cli::printer::{self, Progress};
use crate::cli::serve::StopSignals;
use crate::clock::{Clock, Mono};
use crate::scoring::{Archive, BadRun, IdentifiedRun, LONGEST_RUN, RunInsertion};

pub(super) const AFTER_HELP: &str = r#"Examples:
  scoregate scoring import runs.jsonl --data-dir DIR
  scoregate scoring import monday.jsonl.gz tuesday.jsonl.gz --archive runs.db
  my-benchmark | scoregate scoring import - --archive runs.db

One run per line, as a JSON object:
  {"id":"r-1","model":{"id":"atlas","name":"Atlas","provider":"meridian","priceInput":5,"priceOutput":20},
   "suite":"coding","time":"2026-11-21T11:02:03Z","trials":[{"scores":{"correctness":0.9,"spec":0.8,
   "codeQuality":0.7,"efficiency":0.6,"stability":0.5,"refusal":1,"recovery":0.4},"latencyMs":4200,"cost":0.031}]}
Scores are from 0 to 1. `latencyMs` (milliseconds) and `cost` (US dollars, 0 if it was free) are required in every trial
that has scores. Prices are US dollars for a million tokens and may be left out. A trial that failed
has {"failure":{"reason":"timeout"}} instead of scores; a failed run has it instead of trials.
Suites are coding, reasoning and tooling; reasons are timeout, throttled, unreachable and unusable, and a run's may have
a "detail" text.

Invalid lines are reported on standard error and the others are imported; the exit code is then 1. Runs are identified
by their id, so a file can be imported again, also after an interrupted import."#;

/// A server that is told needs no longer to show the new scores; an import does not wait for one that hangs.
const LONGEST_REFRESH: Duration = Duration::from_mins(2);
/// Runs that are stored in one transaction.
const BATCH: usize = 4_096;
const READ_AT_ONCE: usize = 1 << 16;

#[derive(Debug, Args)]
pub(super) struct ScoringImportArgs {
    /// Input files, plain or gzip; `-` for standard input.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// What the reading thread sends.
enum RunChunk {
    /// Lines of one file, read.
    Lines(Arc<str>, Vec<(u64, Result<IdentifiedRun, BadRun>)>),
    /// A file cannot be read any further.
    Broken(Arc<str>, io::Error),
}

#[derive(Default)]
struct RunImportCounts {
    imported: u64,
    existing: u64,
    rejected: u64,
}

pub(super) fn run(archive: &Path, data_dir: Option<&Path>, args: &ScoringImportArgs) -> Exit {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let done = runtime.context("the import cannot be started").and_then(|runtime| {
        let done = runtime.block_on(async {
            let done = import(archive, args).await?;
            show_at_once(data_dir.into_iter().chain(archive.parent())).await;
            Ok(done)
        });
        // The reader may wait for a keyboard.
        runtime.shutdown_background();
        done
    });
    done.unwrap_or_else(|error| printer::fault(&error))
}

async fn import(archive: &Path, args: &ScoringImportArgs) -> anyhow::Result<Exit> {
    let clock = Clock::system();
    let mut sources = Vec::new();
    for file in &args.files {
        // All are opened before the first is read: a name that was mistyped is told at once.
        match RunFile::open(file) {
            Ok(source) => sources.push(source),
            Err(error) => return Ok(printer::input(&format!("{} cannot be read: {error}", file.display()))),
        }
    }
    if let Some(directory) = archive.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        let made = std::fs::create_dir_all(directory);
        made.with_context(|| format!("the directory {} cannot be made", directory.display()))?;
    }
    let archive = Archive::open(archive, clock.now().wall)?;
    archive.make_room()?;
    let size = sources.iter().map(|source| source.size).sum::<Option<u64>>();
    let read = Arc::new(AtomicU64::new(0));
    let (sender, mut pieces) = mpsc::channel(2);
    let reader = {
        let (read, clock) = (Arc::clone(&read), clock.clone());
        move || sources.into_iter().try_for_each(|source| source.read(&read, &clock, &sender))
    };
    drop(std::thread::Builder::new().name("reader".into()).spawn(reader)?);

    let mut signals = StopSignals::listen()?;
    let (progress, began, mut tally) = (Progress::of(size), clock.mono(), RunImportCounts::default());
    let ended = loop {
        let piece = tokio::select! {
            biased;
            () = signals.wait() => break Err("stopped: import the same files again for the rest".to_owned()),
            piece = pieces.recv() => piece,
        };
        match piece {
            None => break Ok(()),
            Some(RunChunk::Broken(file, error)) => break Err(format!("{file} cannot be read: {error}")),
            Some(RunChunk::Lines(file, lines)) => {
                let taken = tally.take(&archive, lines, &|line, bad| {
                    progress.say(&format!("{file}:{line}: {bad}"));
                });
                if let Err(error) = taken {
                    progress.clear();
                    // What was stored before is there, and counts.
                    tally.tell(args.json);
                    return Err(error);
                }
                progress.show(read.load(Ordering::Relaxed), &tally.with_rate(began, clock.mono()));
            }
        }
    };
    progress.show(read.load(Ordering::Relaxed), "summing up");
    archive.sum_up(clock.now().wall)?;
    progress.clear();
    let told = tally.tell(args.json);
    Ok(match ended {
        Err(why) => printer::input(&why),
        Ok(()) if told == Exit::Done && tally.rejected > 0 => Exit::Input,
        Ok(()) => told,
    })
}

/// Tells the server that runs in one of these directories. One that cannot be told looks for itself.
async fn show_at_once(data_dirs: impl Iterator<Item = &Path>) {
    let clock = Clock::system();
    for data_dir in data_dirs {
        let asked = (Method::POST, SCORING_REFRESH.into(), Vec::new());
        let answered = clock.within(LONGEST_REFRESH, ask_if_running(data_dir, asked)).await;
        let why = match answered {
            Ok(None) => continue,
            Ok(Some(Ok(answer))) => {
                let is_new = answer.get("refreshed").and_then(Value::as_bool).unwrap_or_default();
                let what = if is_new { "shows the new scores" } else { "has nothing new to show" };
                return printer::say(&format!("the running server {what}"));
            }
            Ok(Some(Err(undone))) => undone.to_string(),
            Err(_) => "it does not answer in time".into(),
        };
        return printer::say(&format!(
            "the running server could not be told ({why}); it looks for new runs by itself within a minute"
        ));
    }
}

impl RunImportCounts {
    /// Has the runs of some lines stored and counts what became of each.
    fn take(
        &mut self,
        archive: &Archive,
        lines: Vec<(u64, Result<IdentifiedRun, BadRun>)>,
        refuse: &dyn Fn(u64, &BadRun),
    ) -> anyhow::Result<()> {
        let (mut numbers, mut records) = (Vec::with_capacity(lines.len()), Vec::with_capacity(lines.len()));
        let mut rejected = Vec::new();
        for (number, line) in lines {
            match line {
                Ok(record) => {
                    numbers.push(number);
                    records.push(record);
                }
                Err(bad) => rejected.push((number, bad)),
            }
        }
        for ((number, record), taken) in numbers.iter().zip(&records).zip(archive.take(&records)?) {
            match taken {
                RunInsertion::New => self.imported += 1,
                RunInsertion::AlreadyThere => self.existing += 1,
                RunInsertion::OtherContent => {
                    let problem = format!(
                        "{} is there with other content; a run does not change: give another an id of its own",
                        record.id
                    );
                    rejected.push((*number, BadRun { field: "id".into(), problem }));
                }
            }
        }
        rejected.sort_by_key(|(number, _)| *number);
        for (number, bad) in &rejected {
            self.rejected += 1;
            refuse(*number, bad);
        }
        Ok(())
    }

    fn words(&self) -> String {
        let Self { imported, existing, rejected } = self;
        format!("{imported} imported, {existing} already present, {rejected} rejected")
    }

    fn with_rate(&self, began: Mono, now: Mono) -> String {
        let milliseconds = u64::try_from(now.since(began).as_millis()).unwrap_or(u64::MAX).max(1);
        let runs = self.imported + self.existing + self.rejected;
        format!("{}, {} a second", self.words(), runs.saturating_mul(1_000) / milliseconds)
    }

    /// Tells what was counted.
    fn tell(&self, json: bool) -> Exit {
        let Self { imported, existing, rejected } = self;
        if json {
            let counts = serde_json::json!({
                "imported": imported, "existing": existing, "rejected": rejected
            });
            return printer::data(&format!("{counts:#}\n"));
        }
        printer::data(&format!("{}\n", self.words()))
    }
}

/// One file.
struct RunFile {
    name: Arc<str>,
    file: Box<dyn Read + Send>,
    size: Option<u64>,
}

impl RunFile {
    fn open(path: &Path) -> io::Result<Self> {
        if path == Path::new("-") {
            return Ok(Self { name: "standard input".into(), file: Box::new(io::stdin()), size: None });
        }
        let file = File::open(path)?;
        let known = file.metadata()?;
        if known.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let size = known.is_file().then_some(known.len());
        Ok(Self { name: path.display().to_string().into(), file: Box::new(file), size })
    }

    /// Reads it into pieces. An error: nobody wants them any more, or it cannot be read further.
    fn read(self, read: &Arc<AtomicU64>, clock: &Clock, to: &mpsc::Sender<RunChunk>) -> Result<(), ()> {
        let name = self.name;
        let broken = |error| {
            to.blocking_send(RunChunk::Broken(Arc::clone(&name), error)).map_or(Err(()), |()| Err(()))
        };
        let counted = CountingReader { file: self.file, read: Arc::clone(read) };
        let text = match plain(counted) {
            Ok(text) => text,
            Err(error) => return broken(error),
        };
        let mut batch = Vec::with_capacity(BATCH);
        let send = |batch| to.blocking_send(RunChunk::Lines(Arc::clone(&name), batch)).map_err(|_| ());
        for line in InputLines::of(text, LONGEST_RUN) {
            let InputLine { number, text, .. } = match line {
                Ok(line) => line,
                Err(error) => {
                    send(batch)?;
                    return broken(error);
                }
            };
            let record = text
                .map_err(|problem| BadRun { field: "line".into(), problem })
                .and_then(|text| IdentifiedRun::read(&text, clock.now().wall));
            batch.push((number, record));
            if batch.len() >= BATCH {
                send(std::mem::replace(&mut batch, Vec::with_capacity(BATCH)))?;
            }
        }
        send(batch)
    }
}

/// A file whose bytes are counted as they are read.
struct CountingReader {
    file: Box<dyn Read + Send>,
    read: Arc<AtomicU64>,
}

impl Read for CountingReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(into)?;
        self.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// The text of a file, unpacked if it is packed: its first bytes tell, its name does not matter.
fn plain(file: CountingReader) -> io::Result<Box<dyn BufRead + Send>> {
    const GZIP: [u8; 2] = [0x1F, 0x8B];
    let mut file = BufReader::with_capacity(READ_AT_ONCE, file);
    let mut first = Vec::with_capacity(GZIP.len());
    (&mut file).take(GZIP.len() as u64).read_to_end(&mut first)?;
    let is_packed = first == GZIP;
    let whole = BufReader::with_capacity(READ_AT_ONCE, io::Cursor::new(first).chain(file));
    if is_packed {
        return Ok(Box::new(BufReader::with_capacity(READ_AT_ONCE, MultiGzDecoder::new(whole))));
    }
    Ok(Box::new(whole))
}
