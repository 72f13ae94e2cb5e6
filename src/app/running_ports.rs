//! Runs the public port and the side port. The side port has a separate thread and runtime, so that it responds even
//! when the public port is saturated.

use std::{
    net::{SocketAddr, TcpListener},
    sync::Arc,
    thread::JoinHandle as ThreadHandle,
};

use arc_swap::ArcSwap;
use tokio::{sync::mpsc, task::JoinHandle};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    admin::{self, ActiveSettings, ReloadRequest, Reloaded, SideConfig, SidePort},
    instruments::McpInstruments,
    mcp::McpService,
    server::{LiveServerConfig, PublicPort, Server},
    site::Site,
};
use scoregate_scoring::UpdateRequests;

use super::{
    background::Background, data_dir::DataDir, reload, server_parts::ServerParts,
    start_context::StartContext,
};

/// The running public port.
pub struct RunningPublicPort {
    /// The settings of the port, which a reload changes.
    pub live_config: Arc<LiveServerConfig>,
    pub stop: CancellationToken,
    /// The serving task. It returns whether all open connections finished.
    pub serving: JoinHandle<bool>,
}

impl RunningPublicPort {
    /// Starts to accept connections.
    pub fn start(
        context: &StartContext,
        server: &ServerParts,
        site: Option<&Arc<Site>>,
        port: PublicPort,
        background: &Background,
    ) -> Self {
        let config = &context.config;
        let instruments = McpInstruments::new(&context.registry);
        let mcp = McpService::new(&config.endpoints, &config.service, instruments);
        let public = Server::new(
            port,
            Arc::clone(&server.gateway),
            config.server.clone(),
            server.clock.clone(),
            &context.registry,
        );
        let public = public
            .with_site(site.cloned())
            .with_leaks(server.keys.leaks.clone())
            .with_mcp(config.mcp.then(|| Arc::new(mcp)));
        let stop = CancellationToken::new();
        Self {
            live_config: public.live_config(),
            serving: background.spawn(public.run(stop.clone())),
            stop,
        }
    }
}

/// The running side port.
pub struct RunningSidePort {
    pub address: SocketAddr,
    /// Requests to reload the settings.
    pub reloads: mpsc::Receiver<ReloadRequest>,
    /// The settings that the side port shows. A reload replaces them.
    pub active: Arc<ArcSwap<ActiveSettings>>,
    pub thread: ThreadHandle<()>,
}

impl RunningSidePort {
    /// Starts the thread, which runs until shutdown. `updates` is the channel for requests to the built-in backend, if
    /// it is used.
    pub fn start(
        context: &StartContext,
        server: &ServerParts,
        updates: Option<UpdateRequests>,
        tcp: TcpListener,
        data_dir: &mut DataDir,
        background: &Background,
    ) -> anyhow::Result<Self> {
        let address = tcp.local_addr()?;
        let sockets = SideConfig {
            tcp,
            socket: Some(data_dir.socket()?),
        };
        let active = reload::active(&context.config, &Reloaded::default())?;
        let active = Arc::new(ArcSwap::from_pointee(active));
        let (reload_requests, reloads) = mpsc::channel(1);
        let side = SidePort {
            scrape: context.registry.scrape(),
            administration: Arc::clone(&server.keys.administration),
            gateway: Arc::clone(&server.gateway),
            readiness: Arc::clone(&server.readiness),
            changes: TaskTracker::new(),
            active: Arc::clone(&active),
            reloads: reload_requests,
            updates,
        };
        Ok(Self {
            address,
            reloads,
            active,
            thread: spawn(side, sockets, background.stop.clone())?,
        })
    }
}

fn spawn(
    side: SidePort,
    sockets: SideConfig,
    stop: CancellationToken,
) -> anyhow::Result<ThreadHandle<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let thread = std::thread::Builder::new().name("side-port".into());
    Ok(thread.spawn(move || {
        if let Err(error) = runtime.block_on(admin::run(side, sockets, stop)) {
            tracing::error!(%error, "the side port failed");
        }
    })?)
}
