//! `scoregate top`: a running server at a glance, live: rates, latency, the backend, and who asks most.
//!
//! It looks through the server's Unix socket at what everybody else sees too: the metrics and the usage. Not for: history,
//! which Prometheus keeps.

mod figures;
mod frame;
mod sample;
mod screen;
mod words;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use http::Method;
use tokio::net::UnixStream;

use crate::admin::USAGE;
use crate::app::SOCKET;
use crate::clock::Clock;

use super::control::{CommandError, converse, said, wait_for};
use super::exit::Exit;
use super::printer;
use super::serve::{ServerArgs, StopSignals};

use figures::UsageRates;
use frame::{FrameLine, LineEmphasis, lines};
use sample::{ScrapedMetrics, ServerSample};
use screen::Screen;

pub(super) const AFTER_HELP: &str = "Examples:\n  scoregate top --data-dir DIR\n  scoregate top --once --data-dir DIR\n\n\
DIR is the data directory of the running server; --config FILE reads it from the configuration. Quit with q or Ctrl-C. Rates\n\
are averages over the interval; TODAY counts from midnight UTC or from the start of the server. If the server stops,\n\
top waits until it is back.";

/// How many applications, and strangers, are looked at: whoever is not among them asks little.
const WATCHED: usize = 256;
/// The server answers within milliseconds, from a thread of its own.
const PATIENCE: Duration = Duration::from_secs(3);

#[derive(Debug, Args)]
pub(super) struct TopArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// Refresh interval in seconds.
    #[arg(long, default_value_t = 2, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,
    /// Print one page and exit; the default if standard output is not a terminal.
    #[arg(long)]
    once: bool,
}

/// The server that is looked at.
struct PolledServer {
    socket: PathBuf,
    /// One for all looks: it counts its own running time.
    clock: Clock,
    every: Duration,
}

pub(super) fn run(args: &TopArgs) -> Exit {
    let config = match args.server.settings() {
        Ok(config) => config,
        Err(problems) => return printer::input(&problems.to_string()),
    };
    let (socket, every) = (config.data_dir.join(SOCKET), Duration::from_secs(args.interval));
    let server = PolledServer { socket, clock: Clock::system(), every };
    let looking = async {
        let first = server.look().await?;
        match Screen::open().filter(|_| !args.once) {
            Some(_screen) => server.live(first).await,
            None => server.once(&first).await,
        }
    };
    wait_for(looking).unwrap_or_else(said)
}

impl PolledServer {
    /// What two looks say, as text.
    async fn once(&self, first: &ServerSample) -> Result<Exit, CommandError> {
        self.clock.sleep(self.every).await;
        let second = self.look().await?;
        let lines = lines(&UsageRates::of(first, &second), usize::MAX);
        let text: Vec<&str> = lines.iter().map(|line| line.text.trim_end()).collect();
        Ok(printer::data(&format!("{}\n", text.join("\n"))))
    }

    /// Shows what each look says until somebody has seen enough.
    async fn live(&self, first: ServerSample) -> Result<Exit, CommandError> {
        let (mut stop, mut keys) = (StopSignals::listen()?, Screen::keys());
        let (mut before, mut now) = (first.clone(), Ok(first));
        loop {
            if Screen::show(&page(&before, now.as_ref())).is_err() {
                return Ok(Exit::Done);
            }
            tokio::select! {
                () = stop.wait() => return Ok(Exit::Done),
                Some(key) = keys.recv() => if key == b'q' { return Ok(Exit::Done) } else { continue },
                () = self.clock.sleep(self.every) => {}
            }
            if let Ok(seen) = now {
                before = seen;
            }
            now = self.look().await;
        }
    }

    async fn look(&self) -> Result<ServerSample, CommandError> {
        let shown = self.socket.display();
        let nobody = |error: anyhow::Error| {
            CommandError::Input(format!(
                "no server answers on {shown}: {error:#}; only one that runs can be watched"
            ))
        };
        let metrics = self.ask("/metrics".into()).await.map_err(nobody)?;
        let at = self.clock.now();
        let usage = self.ask(format!("{USAGE}?most={WATCHED}")).await.map_err(nobody)?;
        let usage = serde_json::from_str(&usage).context("the server's answer cannot be read")?;
        Ok(ServerSample { at, metrics: ScrapedMetrics::read(&metrics), usage })
    }

    async fn ask(&self, target: String) -> anyhow::Result<String> {
        let conversation = async {
            let stream =
                UnixStream::connect(&self.socket).await.context("its socket cannot be connected to")?;
            converse(stream, (Method::GET, target, Vec::new())).await
        };
        let answered = self.clock.within(PATIENCE, conversation).await;
        let (status, body) = answered.map_err(|_| anyhow::anyhow!("{PATIENCE:?} have passed"))??;
        anyhow::ensure!(status.is_success(), "it said {status}");
        Ok(String::from_utf8_lossy(&body).into_owned())
    }
}

/// A page for as many rows as there are; while the server does not answer, what it was before stays.
fn page(before: &ServerSample, now: Result<&ServerSample, &CommandError>) -> Vec<FrameLine> {
    let (_, rows) = Screen::size();
    match now {
        Ok(now) => lines(&UsageRates::of(before, now), rows),
        Err(CommandError::Input(why)) => unanswered(before, why, rows),
        Err(CommandError::Fault(error)) => unanswered(before, &format!("{error:#}"), rows),
    }
}

fn unanswered(before: &ServerSample, why: &str, rows: usize) -> Vec<FrameLine> {
    let mut page = lines(&UsageRates::of(before, before), rows.saturating_sub(1));
    page.insert(page.len().min(1), FrameLine { text: format!("! {why}"), weight: LineEmphasis::Alarm });
    page
}
