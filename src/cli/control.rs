//! Executes commands. Commands on keys use the Unix socket of a running server, or the store of a stopped server, with
//! the same code. Commands on documents need a running server.

use std::{
    future::Future,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::UnixStream,
};

use crate::{
    accounts::TermsByTier,
    admin::{self, AdminCommand, Administration, CommandProblem, LiveCommand, to_request},
    app::{DataDir, DataDirInUse, SOCKET, administration, notice_texts, open_store},
    config::Config,
    instruments::StoreInstruments,
    registry::KeyChanges,
};
use scoregate_base::clock::Clock;
use scoregate_observe::telemetry::metrics::MetricsRegistry;
use scoregate_store::maintenance::is_used;

use super::{
    command_error::{CommandError, CommandOutcome},
    printer,
    serve::runtime,
};

/// Number of attempts to lock the data directory, and the delay between them. The total is long enough for the start of
/// a server that reads a million keys from a cold disk.
const ATTEMPTS: u32 = 100;
const RETRY_DELAY: Duration = Duration::from_millis(100);
/// Timeout of a request to the side port, whose separate thread responds within milliseconds.
const GET_TIMEOUT: Duration = Duration::from_secs(3);

/// The server or store that commands work on.
pub enum CommandTarget {
    /// A running server, with the path of its socket.
    Running(PathBuf),
    /// The store of a stopped server, or the database of several servers.
    Store {
        administration: Box<Administration>,
        /// Dropped last: no other process may lock the data directory before its store is closed.
        _lock: Option<DataDir>,
    },
}

/// The handling of a data directory without a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingStore {
    /// Create a store: applications may be created before the first start.
    Create,
    /// Refuse: the directory is probably the wrong one.
    Refuse,
}

impl CommandTarget {
    /// Connects to the running server, or locks the data directory, so that no server starts until the target is
    /// dropped. Waits while a server is starting or another command holds the lock.
    pub async fn find(config: &Config, missing: MissingStore) -> CommandOutcome<Self> {
        let data_dir = &config.data_dir;
        if config.database.is_some() {
            return Self::find_database(config).await;
        }
        let refused = |what: &str| {
            let shown = data_dir.display();
            Err(CommandError::Input(format!(
                "there is no {what} {shown}; set the server's data directory with --data-dir or --config"
            )))
        };
        if missing == MissingStore::Refuse && !data_dir.is_dir() {
            return refused("data directory");
        }
        let is_new = !is_used(data_dir);
        if missing == MissingStore::Refuse && is_new {
            return refused("store in");
        }
        let clock = Clock::system();
        for _ in 0..ATTEMPTS {
            if let Some(target) = Self::try_find(config).await? {
                if is_new && matches!(target, Self::Store { .. }) {
                    printer::message(&format!(
                        "a new store was created in {}",
                        data_dir.display()
                    ));
                }
                return Ok(target);
            }
            clock.sleep(RETRY_DELAY).await;
        }
        let in_use = DataDirInUse::new(data_dir);
        Err(CommandError::Input(format!(
            "{in_use}; it does not respond"
        )))
    }

    /// Connects to the server on this machine if one is running, otherwise to the database.
    async fn find_database(config: &Config) -> CommandOutcome<Self> {
        let socket = config.data_dir.join(SOCKET);
        match UnixStream::connect(&socket).await {
            Ok(_) => Ok(Self::Running(socket)),
            Err(_) => open_target(config, None).await,
        }
    }

    /// Makes one attempt. Returns `None` if another process has locked the directory but does not listen on the socket.
    async fn try_find(config: &Config) -> CommandOutcome<Option<Self>> {
        let socket = config.data_dir.join(SOCKET);
        match UnixStream::connect(&socket).await {
            Ok(_) => Ok(Some(Self::Running(socket))),
            // If the path is too long for a socket, no server can be running.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::NotFound | ErrorKind::ConnectionRefused | ErrorKind::InvalidInput
                ) =>
            {
                match DataDir::open(&config.data_dir) {
                    Err(error) if error.is::<DataDirInUse>() => Ok(None),
                    lock => Ok(Some(open_target(config, Some(lock?)).await?)),
                }
            }
            Err(error) => {
                let shown = socket.display();
                let what = format!(
                    "the server's socket {shown} cannot be opened: only the user that runs the server may open it"
                );
                Err(CommandError::Fault(anyhow::Error::new(error).context(what)))
            }
        }
    }

    pub async fn perform(&self, command: AdminCommand) -> CommandOutcome<Value> {
        match self {
            Self::Running(socket) => {
                let stream = UnixStream::connect(socket)
                    .await
                    .context("the server has stopped")?;
                send(stream, to_request(&command)).await
            }
            Self::Store { administration, .. } => {
                Ok(command.perform(administration, &operator()).await?)
            }
        }
    }
}

/// The operator for the audit trail: the effective user of this process.
pub fn operator() -> String {
    admin::operator(rustix::process::geteuid().as_raw())
}

/// Executes a command that needs a running server. `reason` completes the error if no server is running.
pub async fn request_running(
    config: &Config,
    command: &LiveCommand,
    reason: &str,
) -> CommandOutcome<Value> {
    let socket = config.data_dir.join(SOCKET);
    match UnixStream::connect(&socket).await {
        Ok(stream) => send(stream, to_request(command)).await,
        Err(error) => {
            let shown = config.data_dir.display();
            Err(CommandError::Input(format!(
                "no server is running in {shown} ({error}): {reason}"
            )))
        }
    }
}

/// Executes a command on the server of a data directory. Returns `None` if no server is running.
pub async fn request_if_running(
    data_dir: &Path,
    command: &LiveCommand,
) -> Option<CommandOutcome<Value>> {
    match UnixStream::connect(data_dir.join(SOCKET)).await {
        Ok(stream) => Some(send(stream, to_request(command)).await),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Some(Err(
            CommandError::Input("only the user that runs the server may open its socket".into()),
        )),
        Err(_) => None,
    }
}

/// A request: method, target, body.
type ControlRequest = (Method, String, Vec<u8>);

async fn send(stream: UnixStream, request: ControlRequest) -> CommandOutcome<Value> {
    let (status, body) = exchange(stream, request).await?;
    if status.is_success() {
        return Ok(serde_json::from_slice(&body).context("the server's response is not JSON")?);
    }
    let problem: CommandProblem =
        serde_json::from_slice(&body).context("the server's response is not JSON")?;
    Err(problem.into())
}

/// Sends one request over a new connection and reads the response.
async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    request: ControlRequest,
) -> anyhow::Result<(StatusCode, Bytes)> {
    let (method, target, body) = request;
    let request = Request::builder()
        .method(method)
        .uri(target)
        .header("host", "localhost")
        .body(Full::new(Bytes::from(body)))
        .context("the request is invalid")?;
    let connected = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = connected.context("the server does not respond")?;
    let exchange = async move {
        let response = sender.send_request(request).await?;
        let status = response.status();
        Ok::<_, hyper::Error>((status, response.into_body().collect().await?.to_bytes()))
    };
    // The connection ends with the exchange. A connection error also makes the exchange fail.
    let (response, _) = tokio::join!(exchange, connection);
    response.context("the server closed the connection")
}

/// Requests a path over the connection that `connected` opens.
pub async fn get<S: AsyncRead + AsyncWrite + Unpin>(
    clock: &Clock,
    connected: impl Future<Output = io::Result<S>>,
    path: String,
) -> anyhow::Result<(StatusCode, String)> {
    let exchanged = async {
        let stream = connected.await.context("cannot connect")?;
        exchange(stream, (Method::GET, path, Vec::new())).await
    };
    let response = clock.within(GET_TIMEOUT, exchanged).await;
    let (status, body) =
        response.map_err(|_| anyhow::anyhow!("timed out after {GET_TIMEOUT:?}"))??;
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}

/// Opens the store of a stopped server, or the database of several servers.
async fn open_target(config: &Config, lock: Option<DataDir>) -> CommandOutcome<CommandTarget> {
    let clock = Clock::system();
    let store = open_store(config, &config.data_dir, &clock)
        .await
        .context("the store cannot be opened")?;
    let registry = MetricsRegistry::default();
    let instruments = Arc::new(StoreInstruments::new(&registry));
    let keys = store.clone();
    let terms = TermsByTier::new(&config.tiers, config.guard_per_minute);
    let changes = KeyChanges::new(
        keys,
        None,
        None,
        terms,
        clock.clone(),
        Arc::clone(&instruments),
    );
    let changes = changes.telling(notice_texts(config));
    let administration = administration(config, &store, &Arc::new(changes), &clock, &instruments);
    Ok(CommandTarget::Store {
        administration: Box::new(administration),
        _lock: lock,
    })
}

/// Executes a command on the configured server or store.
pub fn perform_once(config: &Config, command: AdminCommand) -> CommandOutcome<Value> {
    block_on(async {
        CommandTarget::find(config, MissingStore::Refuse)
            .await?
            .perform(command)
            .await
    })
}

/// Executes a command on the configured server. `reason` completes the error if no server is running.
pub fn perform_live(config: &Config, command: &LiveCommand, reason: &str) -> CommandOutcome<Value> {
    block_on(request_running(config, command, reason))
}

/// Runs an async command to completion.
pub fn block_on<T>(work: impl Future<Output = CommandOutcome<T>>) -> CommandOutcome<T> {
    runtime(Some(1))?.block_on(work)
}
