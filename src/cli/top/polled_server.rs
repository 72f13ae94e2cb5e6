//! Polls a server and draws a page, once or again and again.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use tokio::net::UnixStream;

use crate::admin::{NODES, USAGE};
use crate::app::SOCKET;
use scoregate_base::clock::Clock;

use super::figures::UsageRates;
use super::fleet::FleetSample;
use super::frame::{FrameLine, LineEmphasis, lines};
use super::sample::{ScrapedMetrics, ServerSample};
use super::screen::Screen;
use crate::cli::command_error::{CommandError, CommandOutcome};
use crate::cli::control::{block_on, get};
use crate::cli::exit::Exit;
use crate::cli::printer;
use crate::cli::serve::{ServerArgs, StopSignals};

pub(in crate::cli) const AFTER_HELP: &str = "Examples:\n  scoregate top --data-dir DIR\n  scoregate top --once --data-dir DIR\n  scoregate top --fleet --data-dir DIR\n\n\
DIR is the data directory of the running server; --config FILE reads it from the configuration. Quit with q or\n\
Ctrl-C. Rates are averages over the interval; REQUESTS TODAY counts all requests since midnight UTC or the start of the\n\
server, UNITS LEFT is the rest of the daily quota. If the server stops, top waits until it is back. --fleet shows all\n\
gateways on the store of the running server, and usage added up over them.";

/// Applications, and unauthenticated addresses, in a sample: the ones with the most requests.
const SAMPLE_LIMIT: usize = 256;

#[derive(Debug, Args)]
pub(in crate::cli) struct TopArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// Refresh interval in seconds.
    #[arg(long, default_value_t = 2, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,
    /// Print one page and exit; the default if standard output is not a terminal.
    #[arg(long)]
    once: bool,
    /// Show all gateways on the store, and the usage of today added up over them.
    #[arg(long)]
    fleet: bool,
}

/// The content of a page.
trait PageSample: Clone {
    /// Whether a page needs two samples, for rates.
    const HAS_RATES: bool;

    /// Takes a sample.
    async fn take(server: &PolledServer) -> CommandOutcome<Self>;

    /// The lines of a page, at most `rows`.
    fn page(before: &Self, now: &Self, rows: usize) -> Vec<FrameLine>;
}

/// The sampled server.
struct PolledServer {
    socket: PathBuf,
    /// Shared by all samples, since its monotonic time starts with it.
    clock: Clock,
    interval: Duration,
}

pub(in crate::cli) fn run(args: &TopArgs) -> CommandOutcome {
    let config = args.server.settings()?;
    let socket = config.data_dir.join(SOCKET);
    let interval = Duration::from_secs(args.interval);
    let server = PolledServer {
        socket,
        clock: Clock::system(),
        interval,
    };
    if args.fleet {
        block_on(server.show::<FleetSample>(args.once))
    } else {
        block_on(server.show::<ServerSample>(args.once))
    }
}

impl PolledServer {
    async fn show<S: PageSample>(&self, once: bool) -> CommandOutcome {
        let first = S::take(self).await?;
        match Screen::open().filter(|_| !once) {
            Some(_screen) => self.live(first).await,
            None => self.once(&first).await,
        }
    }

    /// Prints one page as text.
    async fn once<S: PageSample>(&self, first: &S) -> CommandOutcome {
        let second = if S::HAS_RATES {
            self.clock.sleep(self.interval).await;
            S::take(self).await?
        } else {
            first.clone()
        };
        let lines = S::page(first, &second, usize::MAX);
        let text: Vec<&str> = lines.iter().map(|line| line.text.trim_end()).collect();
        Ok(printer::data(&format!("{}\n", text.join("\n"))))
    }

    /// Shows a page for each sample until the operator quits.
    async fn live<S: PageSample>(&self, first: S) -> CommandOutcome {
        let mut stop = StopSignals::listen()?;
        let mut keys = Screen::keys();
        let mut before = first.clone();
        let mut now = Ok(first);
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
            now = S::take(self).await;
        }
    }

    /// Requests a resource as JSON.
    async fn get_json<T: serde::de::DeserializeOwned>(&self, target: String) -> CommandOutcome<T> {
        let text = self.get(target).await?;
        Ok(serde_json::from_str(&text).context("the server's response is invalid")?)
    }

    async fn get(&self, target: String) -> CommandOutcome<String> {
        let shown = self.socket.display();
        let unavailable = |error: anyhow::Error| {
            CommandError::Input(format!(
                "no response from {shown}: {error:#}; `top` needs a running server"
            ))
        };
        self.request(target).await.map_err(unavailable)
    }

    async fn request(&self, target: String) -> anyhow::Result<String> {
        let (status, body) = get(&self.clock, UnixStream::connect(&self.socket), target).await?;
        anyhow::ensure!(status.is_success(), "it returned status {status}");
        Ok(body)
    }
}

impl PageSample for ServerSample {
    const HAS_RATES: bool = true;

    async fn take(server: &PolledServer) -> CommandOutcome<Self> {
        let metrics = server.get("/metrics".into()).await?;
        let at = server.clock.now();
        let usage = server
            .get_json(format!("{USAGE}?most={SAMPLE_LIMIT}"))
            .await?;
        Ok(Self {
            at,
            metrics: ScrapedMetrics::read(&metrics),
            usage,
        })
    }

    fn page(before: &Self, now: &Self, rows: usize) -> Vec<FrameLine> {
        lines(&UsageRates::new(before, now), rows)
    }
}

impl PageSample for FleetSample {
    const HAS_RATES: bool = false;

    async fn take(server: &PolledServer) -> CommandOutcome<Self> {
        let nodes = server.get_json(NODES.into()).await?;
        let usage = server
            .get_json(format!("{USAGE}?fleet=true&most={SAMPLE_LIMIT}"))
            .await?;
        Ok(Self {
            at: server.clock.now().wall,
            nodes,
            usage,
        })
    }

    fn page(_: &Self, now: &Self, rows: usize) -> Vec<FrameLine> {
        now.lines(rows)
    }
}

/// A page that fits the terminal. While the server does not respond, the last sample is shown with the error.
fn page<S: PageSample>(before: &S, now: Result<&S, &CommandError>) -> Vec<FrameLine> {
    let (_, rows) = Screen::size();
    match now {
        Ok(now) => S::page(before, now, rows),
        Err(error) => unavailable(before, &error.to_string(), rows),
    }
}

fn unavailable<S: PageSample>(before: &S, reason: &str, rows: usize) -> Vec<FrameLine> {
    let mut page = S::page(before, before, rows.saturating_sub(1));
    page.insert(
        page.len().min(1),
        FrameLine {
            text: format!("! {reason}"),
            emphasis: LineEmphasis::Alarm,
        },
    );
    page
}
