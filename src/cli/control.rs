//! Carries commands out where that has to be. About keys: through the Unix socket of a running server, or on the store
//! of a stopped one; either way it is the same command, performed by the same code. About documents: through the socket.

use std::fmt;
use std::future::Future;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;

use crate::accounts::{Registrar, TermsByTier};
use crate::admin::{self, AdminCommand, CommandProblem, perform};
use crate::app::{DataDir, DataDirInUse, SOCKET};
use crate::clock::Clock;
use crate::config::Config;
use crate::instruments::Instruments;
use crate::keys::KeyForm;
use crate::store::Embedded;
use crate::store::maintenance::is_used;
use crate::telemetry::metrics::MetricsRegistry;

use super::exit::Exit;
use super::printer;
use super::serve::runtime;

/// How often it is looked whether a directory is free, and how long it is waited in between: as long as a server takes
/// to read a million keys from a cold disk.
const LOOKS: u32 = 100;
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// Why a command gave nothing.
#[derive(Debug)]
pub(super) enum CommandError {
    /// The operator can mend it.
    Input(String),
    /// We or the machine failed.
    Fault(anyhow::Error),
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(problem) => f.write_str(problem),
            Self::Fault(error) => write!(f, "{error:#}"),
        }
    }
}

impl From<anyhow::Error> for CommandError {
    fn from(error: anyhow::Error) -> Self {
        Self::Fault(error)
    }
}

impl From<CommandProblem> for CommandError {
    fn from(problem: CommandProblem) -> Self {
        if problem.is_input() {
            Self::Input(problem.error)
        } else {
            Self::Fault(anyhow::anyhow!(problem.error))
        }
    }
}

/// Where commands are carried out.
pub(super) enum CommandTarget {
    /// On a running server, through this socket.
    Running(PathBuf),
    /// On the store of a stopped one.
    Stopped {
        /// What works on the store.
        registrar: Box<Registrar>,
        /// Dropped last: nobody else may come before the store is closed.
        _held: DataDir,
    },
}

/// What becomes of a data directory without a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MissingStore {
    /// One is created: the first applications may come before the first start.
    IsMade,
    /// It is most likely not the directory that was meant.
    IsRefused,
}

impl CommandTarget {
    /// Finds out whether the server runs. While this lives, a stopped one does not start. Waits for one that is about to
    /// start, and for another command.
    pub(super) async fn find(config: &Config, missing: MissingStore) -> Result<Self, CommandError> {
        let data_dir = &config.data_dir;
        let refused = |what: &str| {
            let shown = data_dir.display();
            Err(CommandError::Input(format!(
                "there is no {what} {shown}: name the server's by --data-dir or --config"
            )))
        };
        if missing == MissingStore::IsRefused && !data_dir.is_dir() {
            return refused("data directory");
        }
        let is_new = !is_used(data_dir);
        if missing == MissingStore::IsRefused && is_new {
            return refused("store in");
        }
        let clock = Clock::system();
        for _ in 0..LOOKS {
            if let Some(place) = Self::look(config).await? {
                if is_new && matches!(place, Self::Stopped { .. }) {
                    printer::say(&format!("a new store was created in {}", data_dir.display()));
                }
                return Ok(place);
            }
            clock.sleep(BETWEEN_LOOKS).await;
        }
        let held = DataDirInUse::new(data_dir);
        Err(CommandError::Input(format!("{held}; it does not answer")))
    }

    /// One look; `None` if somebody holds the directory and cannot be asked.
    async fn look(config: &Config) -> Result<Option<Self>, CommandError> {
        let socket = config.data_dir.join(SOCKET);
        match UnixStream::connect(&socket).await {
            Ok(_) => Ok(Some(Self::Running(socket))),
            // Where the path is too long for a socket no server can run.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::NotFound | ErrorKind::ConnectionRefused | ErrorKind::InvalidInput
                ) =>
            {
                match DataDir::open(&config.data_dir) {
                    Err(error) if error.is::<DataDirInUse>() => Ok(None),
                    held => Ok(Some(stopped(config, held?).await?)),
                }
            }
            Err(error) => {
                let shown = socket.display();
                let what =
                    format!("the server's socket {shown} cannot be opened: only the user it runs as may");
                Err(CommandError::Fault(anyhow::Error::new(error).context(what)))
            }
        }
    }

    /// Carries a command out.
    pub(super) async fn carry_out(&self, command: AdminCommand) -> Result<Value, CommandError> {
        match self {
            Self::Running(socket) => {
                let stream = UnixStream::connect(socket).await.context("the server has stopped meanwhile")?;
                ask(stream, command.to_request()).await
            }
            Self::Stopped { registrar, .. } => Ok(perform(registrar, command, &operator()).await?),
        }
    }
}

/// The operator of this process, for the audit trail: the effective user, whatever the environment says.
pub(super) fn operator() -> String {
    admin::operator(rustix::process::geteuid().as_raw())
}

/// Asks a running server for what it alone can do; `without` says what that means where none runs.
pub(super) async fn ask_running(
    config: &Config,
    asked: ControlRequest,
    without: &str,
) -> Result<Value, CommandError> {
    let socket = config.data_dir.join(SOCKET);
    match UnixStream::connect(&socket).await {
        Ok(stream) => ask(stream, asked).await,
        Err(error) => {
            let shown = config.data_dir.display();
            Err(CommandError::Input(format!("no server answers in {shown} ({error}): {without}")))
        }
    }
}

/// Asks the server of a data directory for what it alone can do; `None` where none runs.
pub(super) async fn ask_if_running(
    data_dir: &Path,
    asked: ControlRequest,
) -> Option<Result<Value, CommandError>> {
    match UnixStream::connect(data_dir.join(SOCKET)).await {
        Ok(stream) => Some(ask(stream, asked).await),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            Some(Err(CommandError::Input("only the user it runs as may open its socket".into())))
        }
        Err(_) => None,
    }
}

/// A request: method, target, body.
pub(super) type ControlRequest = (Method, String, Vec<u8>);

/// Asks a running server.
async fn ask(stream: UnixStream, asked: ControlRequest) -> Result<Value, CommandError> {
    let (status, body) = converse(stream, asked).await?;
    if status.is_success() {
        return Ok(serde_json::from_slice(&body).context("the server's answer is no JSON")?);
    }
    let problem: CommandProblem = serde_json::from_slice(&body).context("the server's answer is no JSON")?;
    Err(problem.into())
}

/// One question and its answer, and the end of the connection.
pub(super) async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    (method, target, body): ControlRequest,
) -> anyhow::Result<(StatusCode, Bytes)> {
    let request = Request::builder()
        .method(method)
        .uri(target)
        .header("host", "localhost")
        .body(Full::new(Bytes::from(body)))
        .context("the command cannot be written as a request")?;
    let connected = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = connected.context("the server does not answer")?;
    let conversation = async move {
        let response = sender.send_request(request).await?;
        let status = response.status();
        Ok::<_, hyper::Error>((status, response.into_body().collect().await?.to_bytes()))
    };
    // The connection ends with the conversation, which shows whatever went wrong with it.
    let (answered, _) = tokio::join!(conversation, connection);
    answered.context("the server broke the conversation off")
}

/// Opens the store of a stopped server.
async fn stopped(config: &Config, held: DataDir) -> Result<CommandTarget, CommandError> {
    let directory = held.path().to_owned();
    let store =
        tokio::task::spawn_blocking(move || Embedded::open(&directory)).await.context("the store failed")?;
    let names: Vec<String> = config.tiers.iter().map(|tier| tier.name.clone()).collect();
    let registrar = Registrar::new(
        Arc::new(store.context("the store cannot be opened")?),
        None,
        TermsByTier::new(&config.tiers, config.guard_per_minute),
        KeyForm::new(&config.key_prefix, config.accept_imported),
        Clock::system(),
        Arc::new(Instruments::new(&MetricsRegistry::default(), &names)),
    );
    Ok(CommandTarget::Stopped { registrar: Box::new(registrar), _held: held })
}

/// Does the work of a command to its end.
pub(super) fn wait_for<T>(work: impl Future<Output = Result<T, CommandError>>) -> Result<T, CommandError> {
    runtime(Some(1))?.block_on(work)
}

/// Says why a command gave nothing.
pub(super) fn said(undone: CommandError) -> Exit {
    match undone {
        CommandError::Input(problem) => printer::input(&problem),
        CommandError::Fault(error) => printer::fault(&error),
    }
}
