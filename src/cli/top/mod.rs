//! `scoregate top`: a live view of a running server: rates, latency, the backend and the top callers.
//!
//! Samples the metrics and the usage over the server's Unix socket. Keeps no history; Prometheus does.

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

use super::control::{CommandError, block_on, exchange, report};
use super::exit::Exit;
use super::printer;
use super::serve::{ServerArgs, StopSignals};

use figures::UsageRates;
use frame::{FrameLine, LineEmphasis, lines};
use sample::{ScrapedMetrics, ServerSample};
use screen::Screen;

pub(super) const AFTER_HELP: &str = "Examples:\n  scoregate top --data-dir DIR\n  scoregate top --once --data-dir DIR\n\n\
DIR is the data directory of the running server; --config FILE reads it from the configuration. Quit with q or\n\
Ctrl-C. Rates are averages over the interval; TODAY counts from midnight UTC or from the start of the server. If the\n\
server stops, top waits until it is back.";

/// Applications, and unauthenticated addresses, in a sample: the ones with the most requests.
const SAMPLE_LIMIT: usize = 256;
/// The side port responds within milliseconds, from its own thread.
const TIMEOUT: Duration = Duration::from_secs(3);

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

/// The sampled server.
struct PolledServer {
    socket: PathBuf,
    /// Shared by all samples, since its monotonic time starts with it.
    clock: Clock,
    interval: Duration,
}

pub(super) fn run(args: &TopArgs) -> Exit {
    let config = match args.server.settings() {
        Ok(config) => config,
        Err(problems) => return printer::input_error(&problems.to_string()),
    };
    let (socket, interval) = (config.data_dir.join(SOCKET), Duration::from_secs(args.interval));
    let server = PolledServer { socket, clock: Clock::system(), interval };
    let view = async {
        let first = server.sample().await?;
        match Screen::open().filter(|_| !args.once) {
            Some(_screen) => server.live(first).await,
            None => server.once(&first).await,
        }
    };
    block_on(view).unwrap_or_else(report)
}

impl PolledServer {
    /// Prints one page as text.
    async fn once(&self, first: &ServerSample) -> Result<Exit, CommandError> {
        self.clock.sleep(self.interval).await;
        let second = self.sample().await?;
        let lines = lines(&UsageRates::new(first, &second), usize::MAX);
        let text: Vec<&str> = lines.iter().map(|line| line.text.trim_end()).collect();
        Ok(printer::data(&format!("{}\n", text.join("\n"))))
    }

    /// Shows a page for each sample until the operator quits.
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
                () = self.clock.sleep(self.interval) => {}
            }
            if let Ok(sample) = now {
                before = sample;
            }
            now = self.sample().await;
        }
    }

    async fn sample(&self) -> Result<ServerSample, CommandError> {
        let shown = self.socket.display();
        let unavailable = |error: anyhow::Error| {
            CommandError::Input(format!("no response from {shown}: {error:#}; `top` needs a running server"))
        };
        let metrics = self.get("/metrics".into()).await.map_err(unavailable)?;
        let at = self.clock.now();
        let usage = self.get(format!("{USAGE}?most={SAMPLE_LIMIT}")).await.map_err(unavailable)?;
        let usage = serde_json::from_str(&usage).context("the server's response is invalid")?;
        Ok(ServerSample { at, metrics: ScrapedMetrics::read(&metrics), usage })
    }

    async fn get(&self, target: String) -> anyhow::Result<String> {
        let exchanged = async {
            let stream = UnixStream::connect(&self.socket).await.context("cannot connect")?;
            exchange(stream, (Method::GET, target, Vec::new())).await
        };
        let response = self.clock.within(TIMEOUT, exchanged).await;
        let (status, body) = response.map_err(|_| anyhow::anyhow!("timed out after {TIMEOUT:?}"))??;
        anyhow::ensure!(status.is_success(), "it returned status {status}");
        Ok(String::from_utf8_lossy(&body).into_owned())
    }
}

/// A page that fits the terminal. While the server does not respond, the last sample is shown with the error.
fn page(before: &ServerSample, now: Result<&ServerSample, &CommandError>) -> Vec<FrameLine> {
    let (_, rows) = Screen::size();
    match now {
        Ok(now) => lines(&UsageRates::new(before, now), rows),
        Err(CommandError::Input(problem)) => unavailable(before, problem, rows),
        Err(CommandError::Fault(error)) => unavailable(before, &format!("{error:#}"), rows),
    }
}

fn unavailable(before: &ServerSample, reason: &str, rows: usize) -> Vec<FrameLine> {
    let mut page = lines(&UsageRates::new(before, before), rows.saturating_sub(1));
    page.insert(page.len().min(1), FrameLine { text: format!("! {reason}"), emphasis: LineEmphasis::Alarm });
    page
}
