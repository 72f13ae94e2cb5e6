//! The listeners of the side port and what they answer.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::accounts::Registrar;
use crate::gateway::Gateway;
use crate::scoring::UpdateRequests;
use crate::telemetry::metrics::Scrape;

use super::access::AdminAccess;
use super::command::{AdminCommand, CommandProblem, perform};
use super::heartbeat::Heartbeat;
use super::operator::operator;
use super::paths::AdminPath;
use super::reload::{self, Reloads};
use super::settings::{self, SettingView};
use super::timer::ClockTimer;
use super::{body, cache, log_level, scoring, upstream, usage};

/// The longest name of an operator, for the audit trail.
const LONGEST_OPERATOR: usize = 64;
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// So long a stop waits for open connections of the side port.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// After a failure to accept, so long is waited.
const BREATHE: Duration = Duration::from_millis(100);

/// What the side port shows and does.
pub struct SidePort {
    /// The metrics.
    pub scrape: Scrape,
    /// Changes to applications and keys.
    pub registrar: Arc<Registrar>,
    /// What the public port answers with, as it is now.
    pub gateway: Arc<ArcSwap<Gateway>>,
    /// Whether requests can be answered: set once everything is loaded, cleared when the stop begins.
    pub ready: Arc<AtomicBool>,
    /// Whether the public port's runtime runs.
    pub heartbeat: Arc<Heartbeat>,
    /// Owns the commands under way.
    pub changes: TaskTracker,
    /// The settings, which a reload changes for others.
    pub in_force: Arc<ArcSwap<ActiveSettings>>,
    /// Where it is asked that the settings be read again.
    pub reloads: Reloads,
    /// Where the built-in backend is asked to take up an import, if it is that one.
    pub looks: Option<UpdateRequests>,
}

/// Settings in force.
pub struct ActiveSettings {
    /// What TCP must show.
    pub access: Arc<AdminAccess>,
    /// All of them, for the operator.
    pub settings: Vec<SettingView>,
}

/// Where the side port listens.
pub struct SideConfig {
    /// Over TCP.
    pub tcp: std::net::TcpListener,
    /// Over a Unix socket, if there is one.
    pub socket: Option<std::os::unix::net::UnixListener>,
}

/// How a connection was made.
#[derive(Clone, Copy, Debug)]
enum AdminTransport {
    Tcp,
    /// By this user, as the kernel reports it.
    Socket {
        uid: Option<u32>,
    },
}

impl AdminTransport {
    /// What it must show, as of now.
    fn access(self, side: &SidePort) -> Arc<AdminAccess> {
        match self {
            Self::Tcp => Arc::clone(&side.in_force.load().access),
            Self::Socket { uid } => Arc::new(AdminAccess::Socket { uid }),
        }
    }
}

/// Serves the side port until `stop`. To be run on a thread of its own.
pub async fn run(side: SidePort, config: SideConfig, stop: CancellationToken) -> std::io::Result<()> {
    let clock = side.gateway.load().clock.clone();
    config.tcp.set_nonblocking(true)?;
    let tcp = TcpListener::from_std(config.tcp)?;
    let side = Arc::new(side);
    let connections = TaskTracker::new();
    if let Some(socket) = config.socket {
        socket.set_nonblocking(true)?;
        let socket = UnixListener::from_std(socket)?;
        let (side, clock, connections, stop) =
            (Arc::clone(&side), clock.clone(), connections.clone(), stop.clone());
        connections.clone().spawn(async move {
            loop {
                let accepted =
                    tokio::select! { () = stop.cancelled() => break, accepted = socket.accept() => accepted };
                match accepted {
                    Ok((stream, _)) => {
                        let uid = stream.peer_cred().ok().map(|peer| peer.uid());
                        open(stream, &side, AdminTransport::Socket { uid }, &connections, &stop);
                    }
                    Err(_) => clock.sleep(BREATHE).await,
                }
            }
        });
    }
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = tcp.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => open(stream, &side, AdminTransport::Tcp, &connections, &stop),
            Err(_) => clock.sleep(BREATHE).await,
        }
    }
    connections.close();
    side.changes.close();
    // Whoever does not read an answer cannot hold the stop up.
    if clock
        .within(LAST_WORDS, async { tokio::join!(connections.wait(), side.changes.wait()) })
        .await
        .is_err()
    {
        tracing::warn!("side port connections closed at shutdown");
    }
    Ok(())
}

fn open(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    side: &Arc<SidePort>,
    way: AdminTransport,
    connections: &TaskTracker,
    stop: &CancellationToken,
) {
    let (side, stop) = (Arc::clone(side), stop.clone());
    let timer = ClockTimer::new(&side.gateway.load().clock);
    connections.spawn(async move {
        let service = service_fn(|request: Request<Incoming>| {
            let side = Arc::clone(&side);
            async move {
                let access = way.access(&side);
                Ok::<_, Infallible>(side.handle(request, &access).await)
            }
        });
        let connection = http1::Builder::new()
            .timer(timer)
            .header_read_timeout(HEAD_TIMEOUT)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "side port connection failed");
        }
    });
}

impl SidePort {
    async fn handle(&self, request: Request<Incoming>, access: &AdminAccess) -> Response<Full<Bytes>> {
        let is_get = matches!(*request.method(), Method::GET | Method::HEAD);
        if let Err(problem) = access.check_host(request.uri(), request.headers()) {
            return refused(&problem);
        }
        match AdminPath::of(request.uri().path()) {
            Some(AdminPath::Metrics) if is_get => {
                self.heartbeat.show();
                text(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", self.scrape.render())
            }
            Some(AdminPath::Alive) if is_get => health("alive", self.heartbeat.is_alive().map_err(stalled)),
            Some(AdminPath::Ready) if is_get => health("ready", self.is_ready()),
            part => self.command(part, request, access).await.unwrap_or_else(|problem| refused(&problem)),
        }
    }

    fn is_ready(&self) -> Result<(), String> {
        if !self.ready.load(Ordering::Acquire) {
            return Err("starting or stopping".into());
        }
        self.heartbeat.is_ready().map_err(stalled)
    }

    async fn command(
        &self,
        part: Option<AdminPath>,
        request: Request<Incoming>,
        access: &AdminAccess,
    ) -> Result<Response<Full<Bytes>>, CommandProblem> {
        access.check(request.headers())?;
        let (head, body) = request.into_parts();
        let gateway = self.gateway.load_full();
        let (path, who) = (head.uri.path(), who(access, &head.headers));
        let body = body::read(&gateway.clock, path, body).await?;
        let answer = match part {
            Some(AdminPath::Applications) => self.change(&head, &body, who).await?,
            Some(AdminPath::Documents) => {
                cache::answer(&gateway.engine, &head.method, path, &body, &who).await?
            }
            Some(AdminPath::Upstream) => upstream::answer(&gateway.engine.fetcher, &head.method, path)?,
            Some(AdminPath::Usage) => {
                usage::answer(&gateway, &self.registrar, &head.method, path, head.uri.query()).await?
            }
            Some(AdminPath::Settings) => {
                settings::answer(&self.in_force.load().settings, &head.method, path)?
            }
            Some(AdminPath::Log) => log_level::answer(&head.method, path, &body, &who)?,
            Some(AdminPath::Reload) => reload::answer(&self.reloads, &head.method, path, &who).await?,
            Some(AdminPath::Scoring) => {
                scoring::answer(self.looks.as_ref(), &gateway.clock, &head.method, path, &who).await?
            }
            Some(AdminPath::Metrics | AdminPath::Alive | AdminPath::Ready) | None => {
                return Err(CommandProblem::not_found());
            }
        };
        Ok(text(StatusCode::OK, "application/json", format!("{answer}\n")))
    }

    async fn change(&self, head: &Parts, body: &[u8], who: String) -> Result<Value, CommandProblem> {
        let command = AdminCommand::from_request(&head.method, head.uri.path(), head.uri.query(), body)?;
        let registrar = Arc::clone(&self.registrar);
        // In a task of its own: an asker who leaves must not leave a change behind that is durable and not in force.
        let work = self.changes.spawn(async move { perform(&registrar, command, &who).await });
        work.await.map_err(|_| CommandProblem::fault("the command broke off; see the log"))?
    }
}

/// The operator, for the audit trail: over the socket the user that the kernel reports, whatever the request says; over
/// TCP the word of the client that had the token.
fn who(access: &AdminAccess, headers: &HeaderMap) -> String {
    match access {
        AdminAccess::Socket { uid: Some(uid) } => operator(*uid),
        AdminAccess::Socket { uid: None } => "socket".into(),
        AdminAccess::Tcp { .. } => {
            let said = headers.get("x-operator").map(HeaderValue::as_bytes).unwrap_or_default();
            let said = said.iter().filter(|byte| byte.is_ascii_graphic()).take(LONGEST_OPERATOR);
            let said: String = said.map(|byte| char::from(*byte)).collect();
            if said.is_empty() { "admin-api".into() } else { format!("admin-api:{said}") }
        }
    }
}

/// What a probe is answered: the word, or why it does not hold.
fn health(word: &str, holds: Result<(), String>) -> Response<Full<Bytes>> {
    let (status, body) = match holds {
        Ok(()) => (StatusCode::OK, format!("{word}\n")),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("not {word}: {why}\n")),
    };
    text(status, "text/plain; charset=utf-8", body)
}

fn stalled(age: Duration) -> String {
    format!("the public port's runtime has run no task for {} s", age.as_secs())
}

fn refused(problem: &CommandProblem) -> Response<Full<Bytes>> {
    let body = serde_json::to_string(problem).unwrap_or_default();
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = text(status, "application/json", format!("{body}\n"));
    if problem.closes() {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

fn text(status: StatusCode, content_type: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
