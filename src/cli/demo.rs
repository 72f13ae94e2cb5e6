//! `scoregate demo`: everything at once, with made-up data and a key for each tier.

use std::fmt::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::oneshot;

use crate::accounts::NewApplication;
use crate::app::{self, RunningServer, ShutdownReport};
use crate::clock::Clock;
use crate::config::{Config, UpstreamConfig, resolve};
use crate::keys::standard_tiers;
use crate::store::{OwnLimits, StoredApplication};
use crate::telemetry::log;

use super::exit::Exit;
use super::serve::{StopSignals, runtime, start_log};
use super::{LocationArgs, printer};

const WHO: &str = "demo";
const LICENSE: &str = "Synthetic demo data by scoregate: simulated, not measured. Attribution with a link to the \
    service is required wherever the data is displayed.";

pub(super) fn run(place: &LocationArgs, seed: u64) -> Exit {
    let served = scratch(place).and_then(|scratch| {
        let mut written = place.written();
        written.set("upstream", "built-in");
        written.set("log.level", "warn");
        written.set("service.license", LICENSE);
        let listen = place.listen.unwrap_or(([127, 0, 0, 1], 8080).into());
        if listen.port() != 0 {
            // So that the examples of the docs can be pasted as they are.
            written.set("service.base_url", format!("http://{listen}"));
        }
        if let Some(scratch) = &scratch {
            written.set("data_dir", scratch.0.to_string_lossy().into_owned());
        }
        let mut config = resolve(&written)?;
        config.upstream = UpstreamConfig::Simulated { seed };
        start_log(&config.log)?;
        let runtime = runtime(None)?;
        runtime.block_on(demonstrate(config))
    });
    printer::served(served.map(|(exit, _stopped)| exit))
}

async fn demonstrate(config: Config) -> anyhow::Result<(Exit, ShutdownReport)> {
    let mut signals = StopSignals::listen()?;
    let data_dir = config.data_dir.clone();
    let mut running = app::start(config, Clock::system()).await?;
    // There is no file that could be read again: whoever asks for that is told so.
    running.reloads.close();
    let exit = match tell(&running, &data_dir).await {
        Ok(text) => tokio::select! {
            exit = show(text) => {
                if exit.is_ok() && log::say("serving; stop with Ctrl-C") {
                    signals.wait().await;
                }
                exit
            }
            () = signals.wait() => Ok(Exit::Done),
        },
        Err(error) => Err(error),
    };
    let stopped = running.stop().await;
    Ok((exit?, stopped))
}

/// Prints from a thread that nothing waits for: standard output without a reader must not hold up a stop.
async fn show(text: String) -> anyhow::Result<Exit> {
    let (printed, is_printed) = oneshot::channel();
    let print = move || {
        let exit = printer::data(&text);
        if printed.send(exit).is_err() {
            tracing::debug!("stopped before the keys were printed");
        }
    };
    std::thread::Builder::new().name("printer".into()).spawn(print).context("no thread can be started")?;
    Ok(is_printed.await?)
}

/// A line for each tier with its key, and what to do with it.
async fn tell(running: &RunningServer, data_dir: &Path) -> anyhow::Result<String> {
    let (mut text, mut pro) = (String::new(), String::new());
    let known = running.registrar.list(None, 10_000).await?.applications;
    for tier in standard_tiers() {
        let key = key_of(running, &known, &tier.name).await?;
        writeln!(text, "{} {key}", tier.name)?;
        if tier.name == "pro" {
            pro = key;
        }
    }
    let (public, side) = (running.public, running.side);
    writeln!(text, "\ncurl -H 'Authorization: Bearer {pro}' 'http://{public}/api/v1/models'")?;
    writeln!(
        text,
        "\ndocs    http://{public}/docs\nmetrics http://{side}/metrics\nstate   {}",
        data_dir.display()
    )?;
    Ok(text)
}

/// A fresh key for the demo's application of a tier. Keys are stored as digests only, so an application that is there
/// from an earlier run gets a new key, and keeps its quota.
async fn key_of(running: &RunningServer, known: &[StoredApplication], tier: &str) -> anyhow::Result<String> {
    let name = format!("demo-{tier}");
    let there = known.iter().find(|application| application.name == name && application.tier == tier);
    let issued = if let Some(there) = there {
        running.registrar.rotate(WHO, there.id, Duration::ZERO).await?
    } else {
        let new = NewApplication {
            name,
            tier: tier.to_owned(),
            own: OwnLimits::default(),
            contact: None,
            note: Some("made by `scoregate demo`".into()),
            expires_at: None,
        };
        running.registrar.create(WHO, new).await?
    };
    Ok(issued.key.expose().to_owned())
}

/// A temporary directory, removed by drop.
struct TemporaryDirectory(PathBuf);

/// A temporary directory, unless one is named.
fn scratch(place: &LocationArgs) -> anyhow::Result<Option<TemporaryDirectory>> {
    if place.data_dir.is_some() {
        return Ok(None);
    }
    let number = getrandom::u64().context("the operating system gave no randomness")?;
    let path = std::env::temp_dir().join(format!("scoregate-demo-{number:016x}"));
    let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
    made.with_context(|| format!("the temporary directory {} cannot be made", path.display()))?;
    Ok(Some(TemporaryDirectory(path)))
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!(%error, path = %self.0.display(), "temporary directory could not be removed");
        }
    }
}
