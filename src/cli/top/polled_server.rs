//! Polls a server and draws a page, once or repeatedly.

use std::{
    io::{self, IsTerminal as _},
    path::PathBuf,
    time::Duration,
};

use anyhow::Context as _;
use clap::Args;
use rustix::termios::tcgetwinsize;
use tokio::net::UnixStream;

use crate::app::SOCKET;
use scoregate_base::clock::Clock;

use super::{
    figures::UsageRates,
    page::{alarm, lines},
    sample::{ScrapedMetrics, ServerSample},
};
use crate::cli::{
    command_error::{CommandError, CommandOutcome},
    control::{block_on, get},
    printer,
    serve::{ServerArgs, StopSignals},
};

pub const AFTER_HELP: &str = "Examples:\n  scoregate top --data-dir DIR\n  scoregate top --once --data-dir DIR\n\n\
DIR is the data directory of the running server; --config FILE uses the directory in the configuration. Quit with\n\
Ctrl-C. Rates are averages over the interval, and for callers over the last full minute. REQUESTS TODAY counts all\n\
requests since midnight UTC or the start of the server. UNITS LEFT is the rest of the daily quota. If the server stops,\n\
top waits until it is back.";

/// Maximum number of applications, and of unauthenticated addresses, in a sample. Both lists are sorted by number of requests.
const SAMPLE_LIMIT: usize = 256;

/// Columns and rows of a terminal whose size is unknown.
const DEFAULT_SIZE: (usize, usize) = (100, 30);

#[derive(Debug, Args)]
pub struct TopArgs {
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
    /// All samples share this clock, since its monotonic time starts when it is created.
    clock: Clock,
    interval: Duration,
}

pub fn run(args: &TopArgs) -> CommandOutcome {
    let config = args.server.settings()?;
    let server = PolledServer {
        socket: config.data_dir.join(SOCKET),
        clock: Clock::system(),
        interval: Duration::from_secs(args.interval),
    };
    block_on(server.show(args.once))
}

impl PolledServer {
    async fn show(&self, once: bool) -> CommandOutcome {
        let first = self.sample().await?;
        if once || !io::stdout().is_terminal() {
            self.once(&first).await
        } else {
            self.live(first).await
        }
    }

    /// Prints one page as text.
    async fn once(&self, first: &ServerSample) -> CommandOutcome {
        self.clock.sleep(self.interval).await;
        let second = self.sample().await?;
        let lines = lines(&UsageRates::new(first, &second), usize::MAX);
        let text: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
        Ok(printer::data(&format!("{}\n", text.join("\n")))?)
    }

    /// Shows a page for each sample until the operator quits.
    async fn live(&self, first: ServerSample) -> CommandOutcome {
        let mut stop = StopSignals::listen()?;
        let mut before = first.clone();
        let mut now = Ok(first);
        // Scrolls, so that the previous contents of the screen stay above the pages.
        let (_, rows) = terminal_size();
        drop(printer::write(&"\n".repeat(rows)));
        loop {
            if draw(&before, now.as_ref()).is_err() {
                return Ok(());
            }
            tokio::select! {
                () = stop.wait() => return Ok(()),
                () = self.clock.sleep(self.interval) => {}
            }
            if let Ok(sample) = now {
                before = sample;
            }
            now = self.sample().await;
        }
    }

    async fn sample(&self) -> CommandOutcome<ServerSample> {
        let metrics = self.get("/metrics".into()).await?;
        let at = self.clock.now();
        let usage = self
            .get(format!("/v1/usage/top?most={SAMPLE_LIMIT}"))
            .await?;
        Ok(ServerSample {
            at,
            metrics: ScrapedMetrics::read(&metrics),
            usage: serde_json::from_str(&usage).context("the server's response is invalid")?,
        })
    }

    async fn get(&self, target: String) -> CommandOutcome<String> {
        let response = get(&self.clock, UnixStream::connect(&self.socket), target).await;
        let (status, body) = response.map_err(|error| self.unavailable(&error))?;
        if status.is_success() {
            Ok(body)
        } else {
            Err(self.unavailable(&anyhow::anyhow!("it returned status {status}")))
        }
    }

    fn unavailable(&self, error: &anyhow::Error) -> CommandError {
        let shown = self.socket.display();
        CommandError::Input(format!(
            "no response from {shown}: {error:#}; `top` needs a running server"
        ))
    }
}

/// Draws a page that fits the terminal over the previous page. While the server does not respond, the last sample is
/// shown with the error.
fn draw(before: &ServerSample, now: Result<&ServerSample, &CommandError>) -> io::Result<()> {
    let (columns, rows) = terminal_size();
    let page = match now {
        Ok(now) => lines(&UsageRates::new(before, now), rows),
        Err(error) => {
            let mut page = lines(&UsageRates::new(before, before), rows.saturating_sub(1));
            page.insert(page.len().min(1), alarm(&error.to_string()));
            page
        }
    };
    let page: Vec<String> = page
        .iter()
        .map(|line| line.chars().take(columns).collect())
        .collect();
    // After each line, the rest of the previous page's line is erased.
    let page = page.join("\x1b[K\r\n");
    printer::write(&format!("\x1b[H{page}\x1b[K\x1b[J"))
}

/// The columns and rows of the terminal.
fn terminal_size() -> (usize, usize) {
    match tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
        Ok(_) | Err(_) => DEFAULT_SIZE,
    }
}
