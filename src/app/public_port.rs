//! Runs the public port.

use std::sync::Arc;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::instruments::McpInstruments;
use crate::mcp::McpService;
use crate::server::{LiveServerConfig, PublicPort, Server};
use crate::site::Site;

use super::background::Background;
use super::server_parts::ServerParts;
use super::start_context::StartContext;

/// The running public port.
pub(super) struct RunningPublicPort {
    /// Its settings, which a reload changes.
    pub(super) live_config: Arc<LiveServerConfig>,
    pub(super) stop: CancellationToken,
    /// Returns whether all open connections finished.
    pub(super) serving: JoinHandle<bool>,
}

impl RunningPublicPort {
    /// Begins to accept connections.
    pub(super) fn start(
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
