//! `scoregate serve`: runs the gateway with a configuration.

use std::{
    any::Any,
    io,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use clap::Args;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{
    admin::ReloadRequest,
    app::{self, InheritedSockets, RunningServer},
    config::{
        Config, ConfigProblems, ConfigValues, read_database_password, read_environment, read_file,
        read_secrets, resolve,
    },
};
use scoregate_base::clock::Clock;
use scoregate_observe::telemetry::{
    access_log_writer,
    log::{self, LogConfig},
};

use super::{
    command_error::CommandOutcome,
    config_watch::{ConfigWatch, READ_EVERY},
    location_args::LocationArgs,
    printer,
};

pub fn run(path: Option<&Path>, location: &LocationArgs, reload_on_change: bool) -> CommandOutcome {
    let watch = path.filter(|_| reload_on_change).map(ConfigWatch::new);
    let config = settings(path, location)?;
    start_log(&config.log)?;
    access_log_writer::enable();
    let served = runtime(config.workers)
        .and_then(|runtime| runtime.block_on(serve(config, watch, || settings(path, location))));
    // The runtime has ended, so the store is closed. Only now may the lock on the data directory be released.
    printer::finish_serving(served.map(drop))
}

/// Starts the event log of a serving command.
pub fn start_log(config: &LogConfig) -> anyhow::Result<()> {
    log::start(config).context("the threads that write the log cannot be started")
}

/// Serves until a stop signal is received. Reloads the settings on SIGHUP, on request, and when the configuration file
/// changes. Returns the value that holds the data directory's lock: the shutdown report, or the interrupted start.
async fn serve(
    config: Config,
    mut watch: Option<ConfigWatch>,
    read_settings: impl Fn() -> Result<Config, ConfigProblems>,
) -> anyhow::Result<Box<dyn Any>> {
    let mut stop = StopSignals::listen()?;
    let mut hang_up = listen(SignalKind::hangup())?;
    let clock = Clock::system();
    let mut start = Box::pin(app::start_on(
        InheritedSockets::inherited()?,
        config,
        clock.clone(),
    ));
    let mut running = tokio::select! {
        started = &mut start => started?,
        () = stop.wait() => {
            tracing::info!("stopped before it served");
            return Ok(Box::new(start));
        }
    };
    loop {
        let (reply, is_requested) = tokio::select! {
            () = stop.wait() => return Ok(Box::new(running.stop().await)),
            _ = hang_up.recv() => (None, true),
            () = clock.sleep(READ_EVERY), if watch.is_some() => (None, false),
            Some(reply) = running.reloads.recv() => (Some(reply), true),
        };
        // The file is checked before the settings are read, so that a later change is not missed.
        let has_changed = match &mut watch {
            Some(watch) => watch.has_changed().await,
            None => false,
        };
        if is_requested || has_changed {
            Box::pin(reload(&mut running, read_settings(), reply)).await;
        }
    }
}

async fn reload(
    running: &mut RunningServer,
    settings: Result<Config, ConfigProblems>,
    reply: Option<ReloadRequest>,
) {
    let outcome = match settings {
        Ok(config) => running.reload(config).await,
        Err(problems) => {
            running.reload_refused(&problems);
            Err(problems)
        }
    };
    let Some(reply) = reply else { return };
    let outcome = outcome.map_err(|problems| problems.to_string());
    if reply.send(outcome).is_err() {
        tracing::debug!("reload requester disconnected");
    }
}

/// Flags override the environment, which overrides the file.
fn settings(file: Option<&Path>, location: &LocationArgs) -> Result<Config, ConfigProblems> {
    let mut values = file.map(read_file).unwrap_or_default();
    values.overlay(read_environment(environment()));
    values.overlay(location.values());
    read_secrets(&mut values);
    resolve(&values)
}

/// Options that select the server for a command.
#[derive(Debug, Args)]
pub struct ServerArgs {
    /// The server's data directory.
    #[arg(long, value_name = "DIR", global = true)]
    data_dir: Option<PathBuf>,
    /// The server's configuration file.
    #[arg(long, value_name = "FILE", env = "SCOREGATE_CONFIG", global = true)]
    config: Option<PathBuf>,
}

impl ServerArgs {
    /// Reads the settings of the server as `serve` does, except that the backend is optional.
    pub fn settings(&self) -> Result<Config, ConfigProblems> {
        let mut values = self.config.as_deref().map(read_file).unwrap_or_default();
        values.overlay(read_environment(environment()));
        if let Some(directory) = &self.data_dir {
            values.set("data_dir", directory.to_string_lossy().into_owned());
        }
        if !values.is_set("upstream") {
            values.set("upstream", "built-in");
        }
        read_database_password(&mut values);
        resolve(&values)
    }
}

/// The environment variables that are valid UTF-8. The names and values of settings are always valid UTF-8.
pub fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

impl LocationArgs {
    /// The flags as settings.
    pub(super) fn values(&self) -> ConfigValues {
        let mut values = ConfigValues::default();
        if let Some(address) = self.listen {
            values.set("listen", address.to_string());
        }
        if let Some(address) = self.admin_listen {
            values.set("admin.listen", address.to_string());
        }
        if let Some(directory) = &self.data_dir {
            values.set("data_dir", directory.to_string_lossy().into_owned());
        }
        values
    }
}

/// The runtime of a serving command.
pub fn runtime(workers: Option<usize>) -> anyhow::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if let Some(workers) = workers {
        builder.worker_threads(workers);
    }
    builder
        .enable_all()
        .build()
        .context("the worker threads cannot be started")
}

/// A runtime on the calling thread, for commands that rarely wait.
pub fn runtime_of_this_thread() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

/// SIGTERM and Ctrl-C. Created before anything is started, so that even an early signal causes an orderly shutdown.
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

fn listen(kind: SignalKind) -> anyhow::Result<Signal> {
    signal(kind).context("the signal handlers cannot be installed")
}

impl StopSignals {
    /// Installs the handlers. Must be called in a runtime.
    pub fn listen() -> anyhow::Result<Self> {
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    /// Waits for one of the signals.
    pub async fn wait(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
