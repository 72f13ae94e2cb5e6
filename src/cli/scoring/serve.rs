//! `scoregate scoring serve`: serves the built-in backend on a separate port, for gateways only.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context as _;
use clap::Args;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    app::{OpenFiles, open_scoring},
    backend::{self, BackendServer},
    cli::{
        command_error::CommandOutcome,
        printer,
        serve::{StopSignals, runtime, start_log},
    },
};
use scoregate_base::{clock::Clock, routes::API_BASE};
use scoregate_observe::telemetry::log::{self, LogConfig};

pub const AFTER_HELP: &str = "Example:\n  \
scoregate scoring serve --archive runs.db --listen 127.0.0.1:8090\n\n\
Gateways use it with `upstream.url = \"http://127.0.0.1:8090/api/v1\"`. It has no authentication and no limits: keep\n\
its port private. Imported runs are published within a minute. SIGTERM and Ctrl-C stop it once open requests finish.";

const LICENSE: &str = "Benchmark data by scoregate. Attribution with a link to the service is required wherever the \
    data is displayed.";

/// Maximum wait for a running refresh at shutdown. No data is lost if it is aborted.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Address to listen on.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8090")]
    listen: SocketAddr,
    /// Maximum number of connections; further connections wait until one is closed.
    #[arg(long, value_name = "NUMBER", default_value_t = 1_024, value_parser = clap::value_parser!(u32).range(1..))]
    max_connections: u32,
    /// Attribution notice in responses; gateways replace it with their own.
    #[arg(long, value_name = "TEXT", default_value = LICENSE)]
    license: String,
    /// Log level: `error`, `warn`, `info`, `debug` or `trace`.
    #[arg(long, value_name = "LEVEL", default_value = "info", value_parser = level)]
    log_level: String,
}

fn level(text: &str) -> Result<String, &'static str> {
    log::is_level(text)
        .then(|| text.to_owned())
        .ok_or("use error, warn, info, debug or trace")
}

pub fn run(archive: PathBuf, args: ServeArgs) -> CommandOutcome {
    start_log(&LogConfig {
        json: false,
        level: args.log_level.clone(),
    })?;
    let served = runtime(None).and_then(|runtime| {
        let served = runtime.block_on(serve(archive, args));
        runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
        served
    });
    printer::finish_serving(served)
}

/// Serves until a stop signal is received.
async fn serve(archive: PathBuf, args: ServeArgs) -> anyhow::Result<()> {
    let mut signals = StopSignals::listen()?;
    // The port is opened first, so that a port in use is reported before anything is computed.
    let listener = TcpListener::bind(args.listen).await;
    let listener = listener.with_context(|| format!("cannot listen on {}", args.listen))?;
    let address = listener.local_addr()?;
    let configured = usize::try_from(args.max_connections).unwrap_or(usize::MAX);
    let max_connections = OpenFiles::raise().max_connections(configured);
    let clock = Clock::system();
    let scoring = tokio::select! {
        opened = open_scoring(archive, clock.now().wall) => opened?,
        () = signals.wait() => return Ok(()),
    };
    tracing::info!(%address, models = scoring.model_ids().len(), "serving");
    log::write_line(&format!(
        "serving on http://{address}{API_BASE}; stop with Ctrl-C"
    ));
    let backend = Arc::new(BackendServer::new(Arc::new(scoring), args.license, clock));
    let stop = CancellationToken::new();
    let shutdown = async {
        signals.wait().await;
        tracing::info!("stopping");
        stop.cancel();
    };
    tokio::join!(
        backend::serve(listener, backend, max_connections, stop.clone()),
        shutdown
    );
    tracing::info!("stopped");
    Ok(())
}
