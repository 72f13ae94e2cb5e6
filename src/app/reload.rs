//! Applies changed settings to the running program: all of them, or none.
//!
//! Some settings take effect immediately. The others are reported, and take effect at the next start. `config` reads
//! the settings.

use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::{
    accounts::TermsByTier,
    admin::{ActiveSettings, AdminAccess, BadToken, Reloaded},
    config::{Config, ConfigProblem, ConfigProblems},
    registry::DirectoryKeeper,
    server::{LiveServerConfig, ServerConfig},
    site::Site,
};
use scoregate_observe::telemetry::{
    log,
    metrics::{Counter, MetricFamily, MetricsRegistry, flag_value, metric_label, number_value},
};

use super::{build, open_files::OpenFiles, server_parts::ServerParts, site};

/// The state that a reload changes.
pub struct Reloader {
    /// The settings in force.
    pub config: Config,
    registry: MetricsRegistry,
    server: Arc<ServerParts>,
    live_config: Arc<LiveServerConfig>,
    active: Arc<ArcSwap<ActiveSettings>>,
    site: Option<Arc<Site>>,
}

impl Reloader {
    /// Creates the reloader of a server that was started with `config`.
    pub fn new(
        config: Config,
        registry: MetricsRegistry,
        server: Arc<ServerParts>,
        live_config: Arc<LiveServerConfig>,
        active: Arc<ArcSwap<ActiveSettings>>,
        site: Option<Arc<Site>>,
    ) -> Self {
        Self {
            config,
            registry,
            server,
            live_config,
            active,
            site,
        }
    }

    /// Applies new settings. If any setting is invalid, nothing changes.
    pub async fn reload(&mut self, config: Config) -> Result<Reloaded, ConfigProblems> {
        let outcome = self.apply(config).await;
        self.report(&outcome);
        outcome
    }

    /// Records a reload whose settings could not be read.
    pub fn refused(&self, problems: &ConfigProblems) {
        self.report(&Err(problems.clone()));
    }

    async fn apply(&mut self, config: Config) -> Result<Reloaded, ConfigProblems> {
        let before = &self.config;
        let (mut config, changed) = config.in_place_of(before)?;
        site::locate(&mut config, before.listen);
        // The steps that can fail come first. Of these, the adoption of tier terms is last: if it fails, it restores the previous
        // terms.
        self.server.files.check(&config)?;
        let active = active(&config, &changed).map_err(|error| problem("admin.token", &error))?;
        adopt_terms(&self.server.keys.keeper, before, &config).await?;

        let gateway = &self.server.gateway;
        let renewed = build::renewed(&gateway.load(), before, &config, &self.registry);
        gateway.store(Arc::new(renewed));
        if let Some(site) = &self.site
            && let Some(config) = &config.site
        {
            site.set_config(config.clone());
        }
        config.server.connection.tls = before.server.connection.tls.clone();
        limit_connections(&mut config.server, &self.registry);
        self.live_config.change(config.server.clone());
        self.active.store(Arc::new(active));
        self.server.files.replace(&config);
        self.server.files.refresh().await;
        log::set_level(&config.log.level);
        self.config = config;
        Ok(changed)
    }

    fn report(&self, outcome: &Result<Reloaded, ConfigProblems>) {
        self.registry
            .gauge("scoregate_config_rejected")
            .set(flag_value(outcome.is_err()));
        count(&self.registry).count(if outcome.is_ok() {
            ReloadOutcome::Applied
        } else {
            ReloadOutcome::Rejected
        });
        match outcome {
            Ok(changed) => tracing::info!(
                at_once = changed.at_once.join(" "),
                at_next_start = changed.at_next_start.join(" "),
                "settings reloaded"
            ),
            Err(problems) => {
                for problem in &problems.0 {
                    tracing::error!(%problem, "settings rejected; the previous settings stay in force");
                }
            }
        }
    }
}

/// Applies changed limits and rights of tiers to all applications.
async fn adopt_terms(
    keeper: &DirectoryKeeper,
    before: &Config,
    config: &Config,
) -> Result<(), ConfigProblems> {
    if config.tiers == before.tiers && config.guard_per_minute == before.guard_per_minute {
        return Ok(());
    }
    let terms = TermsByTier::new(&config.tiers, config.guard_per_minute);
    let adopted = keeper.adopt(terms).await;
    adopted.map_err(|error| problem("tiers", &error))
}

/// The settings that the side port uses and shows.
pub fn active(config: &Config, changed: &Reloaded) -> Result<ActiveSettings, BadToken> {
    let access = Arc::new(AdminAccess::over_tcp(
        config.admin_token.clone(),
        config.admin_hosts.clone(),
    )?);
    let at_next_start = changed.at_next_start.clone();
    Ok(ActiveSettings {
        access,
        settings: config.shown(),
        at_next_start,
    })
}

metric_label! {
    /// The result of a reload.
    enum ReloadOutcome: "result" {
        Applied = "applied",
        Rejected = "rejected",
    }
}

/// Initializes the reload metrics at startup: an alert cannot detect the first increase of an absent series.
pub fn begin(registry: &MetricsRegistry) {
    count(registry);
    registry.gauge("scoregate_config_rejected").set(0.0);
}

/// Lowers the connection limit if the open-file limit requires it, and reports this.
pub fn limit_connections(server: &mut ServerConfig, registry: &MetricsRegistry) {
    server.max_connections = OpenFiles::raise().max_connections(server.max_connections);
    registry
        .gauge("scoregate_connections_limit")
        .set(number_value(server.max_connections as u64));
}

fn count(registry: &MetricsRegistry) -> MetricFamily<Counter, ReloadOutcome> {
    registry.counters("scoregate_reloads_total")
}

fn problem(path: &str, error: &impl ToString) -> ConfigProblems {
    ConfigProblems(vec![ConfigProblem {
        path: path.to_owned(),
        found: None,
        remedy: error.to_string(),
    }])
}
