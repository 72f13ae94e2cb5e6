//! `scoregate scoring serve`: the built-in backend alone, on a port of its own.
//!
//! Not for: how it answers (`backend`), nor for callers of the API, who come to the gateway before it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::app::OpenFiles;
use crate::backend::{self, BackendServer};
use crate::cli::exit::Exit;
use crate::cli::printer;
use crate::cli::serve::{StopSignals, runtime, start_log};
use crate::clock::{Clock, Wall};
use crate::routes::API_BASE;
use crate::scoring::{Archive, ArchiveError, RunSource, Scoring};
use crate::telemetry::log::{self, LogConfig};

pub(super) const AFTER_HELP: &str = "Example:\n  \
scoregate scoring serve --archive runs.db --listen 127.0.0.1:8090\n\n\
Gateways use it with `upstream.url = \"http://127.0.0.1:8090/api/v1\"`. It has no authentication and no limits: keep\n\
its port private. Imported runs are published within a minute. SIGTERM and Ctrl-C stop it after the open requests.";

const LICENSE: &str = "Benchmark data by scoregate. Attribution with a link to the service is required wherever the \
    data is displayed.";

/// A refresh that is under way at the end is given up after so long: nothing is lost with it.
const LAST_WORDS: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    /// Address to listen on.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8090")]
    listen: SocketAddr,
    /// Maximum connections; further ones wait until one is closed.
    #[arg(long, value_name = "NUMBER", default_value_t = 1_024, value_parser = clap::value_parser!(u32).range(1..))]
    most_connections: u32,
    /// Attribution notice in responses; a gateway replaces it by its own.
    #[arg(long, value_name = "TEXT", default_value = LICENSE)]
    license: String,
    /// Log level: `error`, `warn`, `info`, `debug` or `trace`.
    #[arg(long, value_name = "LEVEL", default_value = "info", value_parser = level)]
    log_level: String,
}

fn level(text: &str) -> Result<String, &'static str> {
    log::is_level(text).then(|| text.to_owned()).ok_or("use error, warn, info, debug or trace")
}

pub(super) fn run(archive: PathBuf, args: ServeArgs) -> Exit {
    if let Err(error) = start_log(&LogConfig { json: false, level: args.log_level.clone() }) {
        return printer::fault(&error);
    }
    let served = runtime(None).and_then(|runtime| {
        let served = runtime.block_on(serve(archive, args));
        runtime.shutdown_timeout(LAST_WORDS);
        served
    });
    printer::served(served.map(|()| Exit::Done))
}

/// The runs of an archive, which is made if it is missing.
fn source(archive: &Path, now: Wall) -> Result<RunSource, ArchiveError> {
    let archive = Archive::open(archive, now)?;
    if archive.is_empty()? {
        let path = archive.path().display().to_string();
        tracing::warn!(path, "the archive has no runs; add some with `scoregate scoring import`");
    }
    Ok(RunSource::Archive(archive))
}

/// Serves until a stop signal.
async fn serve(archive: PathBuf, args: ServeArgs) -> anyhow::Result<()> {
    let mut signals = StopSignals::listen()?;
    // The port first: one that is taken is noticed before anything is computed.
    let listener = TcpListener::bind(args.listen).await;
    let listener = listener.with_context(|| format!("{} cannot be listened on", args.listen))?;
    let address = listener.local_addr()?;
    let wanted = usize::try_from(args.most_connections).unwrap_or(usize::MAX);
    let most_connections = OpenFiles::raise().most_connections(wanted);
    let clock = Clock::system();
    let now = clock.now().wall;
    let opening = tokio::task::spawn_blocking(move || Scoring::open(source(&archive, now)?, now));
    let scoring = opening.await.context("opening the archive panicked")??;
    tracing::info!(%address, models = scoring.model_ids().len(), "serving");
    log::say(&format!("serving on http://{address}{API_BASE}; stop with Ctrl-C"));
    let backend = Arc::new(BackendServer::new(Arc::new(scoring), args.license, clock));
    let stop = CancellationToken::new();
    let told = async {
        signals.wait().await;
        tracing::info!("stopping");
        stop.cancel();
    };
    tokio::join!(backend::serve(listener, backend, most_connections, stop.clone()), told);
    tracing::info!("stopped");
    Ok(())
}
