//! The listeners and request handling of the side port.

use std::{convert::Infallible, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode,
    header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE},
    request::Parts,
};
use http_body_util::Full;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, UnixListener},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::gateway::Gateway;
use scoregate_base::{accept::accept_next, clock::Clock};
use scoregate_observe::telemetry::metrics::Scrape;
use scoregate_scoring::UpdateRequests;

use super::{
    access::AdminAccess,
    administration::Administration,
    body, cache,
    command::{
        self, AdminCommand, LiveCommand, RequestsCommand, SettingsCommand, SnapshotCommand,
        UpstreamCommand,
    },
    command_problem::{CommandProblem, CommandResult},
    explain,
    idempotency::IdempotencyKey,
    log_level,
    operator::operator,
    paths::{ALIVE, METRICS, READY},
    readiness::{Readiness, Unreadiness},
    reload::{self, Reloads},
    scoring,
    settings::SettingView,
    side_connections::SideConnections,
    upstream, usage_view,
};

const MAX_OPERATOR_LENGTH: usize = 64;
/// Maximum wait for open connections of the side port during a shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// The services and the state that the side port uses.
pub struct SidePort {
    /// Metrics.
    pub scrape: Scrape,
    /// Changes to applications and keys.
    pub administration: Arc<Administration>,
    /// The state of the public port, replaced by a reload.
    pub gateway: Arc<ArcSwap<Gateway>>,
    /// Readiness of the public port.
    pub readiness: Arc<Readiness>,
    /// Tasks of running commands.
    pub changes: TaskTracker,
    /// The active settings, replaced by a reload.
    pub active: Arc<ArcSwap<ActiveSettings>>,
    /// Requests to reload the settings.
    pub reloads: Reloads,
    /// Requests to refresh the built-in backend, if it is used.
    pub updates: Option<UpdateRequests>,
}

/// The active settings.
pub struct ActiveSettings {
    /// Access rules for TCP.
    pub access: Arc<AdminAccess>,
    /// All settings, for `GET /v1/settings/list`.
    pub settings: Vec<SettingView>,
    /// Changed settings that take effect at the next start.
    pub at_next_start: Vec<String>,
}

/// The listening sockets of the side port.
pub struct SideConfig {
    /// The TCP listener.
    pub tcp: std::net::TcpListener,
    /// The Unix socket, if there is one.
    pub socket: Option<std::os::unix::net::UnixListener>,
}

/// Serves the side port until `stop`. Must run on a separate thread.
pub async fn run(
    side: SidePort,
    config: SideConfig,
    stop: CancellationToken,
) -> std::io::Result<()> {
    let clock = side.gateway.load().clock.clone();
    config.tcp.set_nonblocking(true)?;
    let tcp = TcpListener::from_std(config.tcp)?;
    let socket = config.socket.map(|socket| {
        socket.set_nonblocking(true)?;
        UnixListener::from_std(socket)
    });
    let socket = socket.transpose()?;
    let listeners = SideListeners {
        side: Arc::new(side),
        connections: TaskTracker::new(),
        slots: Arc::default(),
        stop,
    };
    tokio::join!(
        listeners.accept_tcp(&clock, &tcp),
        listeners.accept_socket(&clock, socket.as_ref())
    );
    listeners.finish(&clock).await;
    Ok(())
}

/// The state of the listeners, shared by all connections.
struct SideListeners {
    side: Arc<SidePort>,
    connections: TaskTracker,
    slots: Arc<SideConnections>,
    stop: CancellationToken,
}

impl SideListeners {
    async fn accept_tcp(&self, clock: &Clock, tcp: &TcpListener) {
        while let Some((stream, _)) = self
            .stop
            .run_until_cancelled(accept_next(clock, || tcp.accept()))
            .await
        {
            // This fails only if the socket is closed.
            if stream.set_nodelay(true).is_ok() {
                self.open(stream, None);
            }
        }
    }

    async fn accept_socket(&self, clock: &Clock, socket: Option<&UnixListener>) {
        let Some(socket) = socket else { return };
        while let Some((stream, _)) = self
            .stop
            .run_until_cancelled(accept_next(clock, || socket.accept()))
            .await
        {
            let uid = stream.peer_cred().ok().map(|peer| peer.uid());
            self.open(stream, Some(AdminAccess::Socket { uid }));
        }
    }

    /// Serves a connection. The configured access rules apply unless `own_access` is given.
    fn open(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        own_access: Option<AdminAccess>,
    ) {
        let Some(slot) = self.slots.open() else {
            return;
        };
        let side = Arc::clone(&self.side);
        let stop = self.stop.clone();
        let own_access = own_access.map(Arc::new);
        self.connections.spawn(async move {
            let service = service_fn(|request: Request<Incoming>| {
                let side = Arc::clone(&side);
                let slot = &slot;
                let own_access = own_access.clone();
                async move {
                    let _request = slot.begin_request();
                    let access =
                        own_access.unwrap_or_else(|| Arc::clone(&side.active.load().access));
                    Ok::<_, Infallible>(side.handle(request, &access).await)
                }
            });
            // No timeout is needed: a slow client is disconnected when its slot is needed.
            let connection = http1::Builder::new()
                .header_read_timeout(None)
                .serve_connection(TokioIo::new(stream), service);
            let mut connection = std::pin::pin!(connection);
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = slot.displaced() => return tracing::debug!("side port connection closed to make room for a new connection"),
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

    /// Waits for open connections and commands. A client that does not read its response cannot delay the shutdown.
    async fn finish(&self, clock: &Clock) {
        let changes = &self.side.changes;
        self.connections.close();
        changes.close();
        let done = async { tokio::join!(self.connections.wait(), changes.wait()) };
        if clock.within(SHUTDOWN_TIMEOUT, done).await.is_err() {
            tracing::warn!("side port connections closed at shutdown");
        }
    }
}

impl SidePort {
    async fn handle(
        &self,
        request: Request<Incoming>,
        access: &AdminAccess,
    ) -> Response<Full<Bytes>> {
        let is_get = matches!(*request.method(), Method::GET | Method::HEAD);
        if let Err(problem) = access.check_host(request.uri(), request.headers()) {
            return refused(&problem);
        }
        match request.uri().path() {
            METRICS if is_get => {
                self.readiness.heartbeat().update_metric();
                text(
                    StatusCode::OK,
                    "text/plain; version=0.0.4; charset=utf-8",
                    self.scrape.render(),
                )
            }
            ALIVE if is_get => health("alive", self.readiness.check_alive(), &[self.degradation()]),
            READY if is_get => {
                let facts = self.gateway.load().leases.serving_facts();
                let details = [self.degradation(), self.awaited_restart()];
                health("ready", self.readiness.check(&facts), &details)
            }
            _ => self
                .command(request, access)
                .await
                .unwrap_or_else(|problem| refused(&problem)),
        }
    }

    /// The reason why a server that is ready is degraded.
    fn degradation(&self) -> Option<String> {
        let gateway = self.gateway.load();
        let age = gateway
            .key_directory
            .freshness
            .age_of_copy(gateway.clock.now())?;
        Some(format!(
            "degraded: serving from the local copy of the keys, {} s old; the database was unreachable at startup",
            age.as_secs()
        ))
    }

    /// The changed settings that take effect at the next start.
    fn awaited_restart(&self) -> Option<String> {
        let paths = self.active.load().at_next_start.join(" ");
        (!paths.is_empty())
            .then(|| format!("changed settings that take effect at the next start: {paths}"))
    }

    async fn command(
        &self,
        request: Request<Incoming>,
        access: &AdminAccess,
    ) -> CommandResult<Response<Full<Bytes>>> {
        access.check(request.headers())?;
        let (head, body) = request.into_parts();
        let clock = self.gateway.load().clock.clone();
        let actor = actor(access, &head.headers);
        let body = body::read(&clock, head.uri.path(), body).await?;
        let answer = self.answer(&head, &body, actor).await?;
        Ok(text(
            StatusCode::OK,
            "application/json",
            format!("{answer}\n"),
        ))
    }

    async fn answer(&self, head: &Parts, body: &[u8], actor: String) -> CommandResult {
        let query = head.uri.query();
        let live = command::read::<LiveCommand>(&head.method, head.uri.path(), query, body);
        match live {
            Ok(command) => self.perform_live(command, &actor).await,
            Err(problem) if problem.is_not_found() => self.perform(head, body, actor).await,
            Err(problem) => Err(problem),
        }
    }

    /// Performs the command on this server for `actor`.
    async fn perform_live(&self, command: LiveCommand, actor: &str) -> CommandResult {
        let gateway = self.gateway.load_full();
        match command {
            LiveCommand::Cache(command) => cache::perform(&gateway.engine, command, actor).await,
            LiveCommand::Requests(RequestsCommand::Explain(body)) => {
                explain::explain(&gateway, &self.administration.registrar, body).await
            }
            LiveCommand::Usage(command) => {
                usage_view::perform(&gateway, &self.administration, command).await
            }
            LiveCommand::Upstream(UpstreamCommand::Show {}) => {
                Ok(upstream::view(gateway.engine.fetcher.status()))
            }
            LiveCommand::Settings(SettingsCommand::List {}) => {
                Ok(json!({ "settings": &self.active.load().settings }))
            }
            LiveCommand::Settings(SettingsCommand::Reload {}) => {
                reload::reload(&self.reloads, actor).await
            }
            LiveCommand::Log(command) => log_level::perform(command, actor),
            LiveCommand::Scoring(SnapshotCommand::Refresh {}) => {
                scoring::refresh(self.updates.as_ref(), &gateway.clock, actor).await
            }
        }
    }

    async fn perform(&self, head: &Parts, body: &[u8], actor: String) -> CommandResult {
        let command: AdminCommand =
            command::read(&head.method, head.uri.path(), head.uri.query(), body)?;
        let once = IdempotencyKey::from_request(head, body)?;
        let administration = Arc::clone(&self.administration);
        let gateway = self.gateway.load_full();
        let status = gateway.status.clone();
        let now = gateway.clock.now().wall;
        let posts_status = matches!(&command, AdminCommand::Status(command) if command.is_change());
        // The command runs in a separate task, so that a stored change takes effect even if the client disconnects.
        let task = self.changes.spawn(async move {
            let mut performed = match once {
                Some(once) => once.perform(command, &administration, &actor, now).await?,
                None => command.perform(&administration, &actor).await?,
            };
            if posts_status {
                if let Some(posted) = performed.as_object_mut() {
                    posted.insert("published".into(), status.is_some().into());
                }
                if let Some(status) = status {
                    status.follow_messages().await;
                }
            }
            Ok(performed)
        });
        task.await
            .map_err(|_| CommandProblem::fault("the command failed unexpectedly; see the log"))?
    }
}

/// The operator, for the audit trail. For the socket this is the user that the kernel reports; for TCP it is the
/// `X-Operator` header of the client, which has sent the token.
fn actor(access: &AdminAccess, headers: &HeaderMap) -> String {
    match access {
        AdminAccess::Socket { uid: Some(uid) } => operator(*uid),
        AdminAccess::Socket { uid: None } => "socket".into(),
        AdminAccess::Tcp { .. } => {
            let sent = headers
                .get("x-operator")
                .map(HeaderValue::as_bytes)
                .unwrap_or_default();
            let name = sent
                .iter()
                .filter(|byte| byte.is_ascii_graphic())
                .take(MAX_OPERATOR_LENGTH);
            let name: String = name.map(|byte| char::from(*byte)).collect();
            if name.is_empty() {
                "admin-api".into()
            } else {
                format!("admin-api:{name}")
            }
        }
    }
}

/// The response to a probe.
fn health(
    state: &str,
    checked: Result<(), Unreadiness>,
    details: &[Option<String>],
) -> Response<Full<Bytes>> {
    let (status, body) = match checked {
        Ok(()) => {
            let lines = details
                .iter()
                .flatten()
                .fold(format!("{state}\n"), |lines, line| lines + line + "\n");
            (StatusCode::OK, lines)
        }
        Err(reason) => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("not {state}: {reason}\n"),
        ),
    };
    text(status, "text/plain; charset=utf-8", body)
}

fn refused(problem: &CommandProblem) -> Response<Full<Bytes>> {
    let body = serde_json::to_string(problem).unwrap_or_default();
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = text(status, "application/json", format!("{body}\n"));
    if problem.closes() {
        response
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

fn text(status: StatusCode, content_type: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
