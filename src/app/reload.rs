//! Applies changed settings to the running program: all of them, or none.
//!
//! Settings that can take effect at once do; the others are reported, and take effect at the next start. Settings are
//! read in `config`.

use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::accounts::TermsByTier;
use crate::admin::{ActiveSettings, AdminAccess, BadToken, Reloaded};
use crate::config::{Config, ConfigProblem, ConfigProblems, read_certificates};
use crate::server::{LiveServerConfig, ServerConfig};
use crate::site::Site;
use crate::telemetry::log;
use crate::telemetry::metrics::{Counter, MetricFamily, MetricLabel, MetricsRegistry};

use super::backend_watch::BackendWatch;
use super::certificates::CertificateReloader;
use super::open_files::OpenFiles;
use super::secret_watch::SecretWatch;
use super::watched_files::WatchedFiles as _;
use super::{RunningServer, build, site};

/// The state that a reload changes.
pub(super) struct Reloader {
    /// The settings in force.
    pub(super) config: Config,
    pub(super) registry: MetricsRegistry,
    pub(super) certificates: CertificateReloader,
    pub(super) secrets: SecretWatch,
    pub(super) live_config: Arc<LiveServerConfig>,
    pub(super) active: Arc<ArcSwap<ActiveSettings>>,
    pub(super) site: Option<Arc<Site>>,
}

impl RunningServer {
    /// Applies other settings. If anything is wrong, nothing changes.
    pub async fn reload(&mut self, config: Config) -> Result<Reloaded, ConfigProblems> {
        let outcome = self.apply(config).await;
        self.reloader.report(&outcome);
        outcome
    }

    /// Records a reload whose settings could not be read.
    pub fn reload_refused(&self, problems: &ConfigProblems) {
        self.reloader.report(&Err(problems.clone()));
    }

    async fn apply(&mut self, config: Config) -> Result<Reloaded, ConfigProblems> {
        let (before, now) = (&self.reloader.config, self.clock.now().wall);
        let (mut config, changed) = config.in_place_of(before)?;
        site::located(&mut config, self.public);
        // Steps that can fail come first, the terms last among them: they are restored if their adoption fails.
        let certificates = read_certificates(&config.certificates, now)?;
        let backend = self.reloader.certificates.backend();
        let backend_tls = backend.map(BackendWatch::read_again).transpose()?;
        let active = active(&config).map_err(|error| problem("admin.token", &error))?;
        let terms = TermsByTier::new(&config.tiers, config.guard_per_minute);
        if config.tiers != before.tiers || config.guard_per_minute != before.guard_per_minute {
            self.registrar.adopt(terms).await.map_err(|error| problem("tiers", &error))?;
        }

        let gateway = build::renewed(&self.gateway.load(), before, &config, &self.reloader.registry);
        self.gateway.store(Arc::new(gateway));
        site::renew(self.reloader.site.as_ref(), &config);
        self.reloader.certificates.replace(&config.certificates, certificates);
        if let (Some(backend), Some(tls)) = (self.reloader.certificates.backend(), backend_tls) {
            backend.renew(tls);
        }
        let mut server = config.server.clone();
        limit_connections(&mut server, &self.reloader.registry);
        server.connection.tls = self.reloader.certificates.tls();
        self.reloader.live_config.change(server);
        self.reloader.active.store(Arc::new(active));
        self.reloader.secrets.replace_token(&config);
        self.reloader.secrets.refresh().await;
        log::set_level(&config.log.level);
        self.reloader.config = config;
        Ok(changed)
    }
}

impl Reloader {
    fn report(&self, outcome: &Result<Reloaded, ConfigProblems>) {
        self.registry.gauge("scoregate_config_rejected").set(f64::from(u8::from(outcome.is_err())));
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
                    tracing::error!(%problem, "settings rejected; the previous ones stay in force");
                }
            }
        }
    }
}

/// The settings of the side port.
pub(super) fn active(config: &Config) -> Result<ActiveSettings, BadToken> {
    let access = Arc::new(AdminAccess::over_tcp(config.admin_token.clone(), config.admin_hosts.clone())?);
    Ok(ActiveSettings { access, settings: config.shown() })
}

/// The result of a reload.
#[derive(Clone, Copy)]
enum ReloadOutcome {
    Applied,
    Rejected,
}

impl MetricLabel for ReloadOutcome {
    const NAME: &'static str = "result";
    fn index(self) -> usize {
        self as usize
    }
}

/// Initializes the reload metrics at start: an alert cannot see the first increase of an absent series.
pub(super) fn begin(registry: &MetricsRegistry) {
    count(registry);
    registry.gauge("scoregate_config_rejected").set(0.0);
}

/// Lowers the limit of connections to what the limit of open files allows, and reports it.
#[expect(clippy::cast_precision_loss, reason = "a gauge is a float; no machine has 2^53 connections")]
pub(super) fn limit_connections(server: &mut ServerConfig, registry: &MetricsRegistry) {
    server.max_connections = OpenFiles::raise().max_connections(server.max_connections);
    registry.gauge("scoregate_connections_limit").set(server.max_connections as f64);
}

fn count(registry: &MetricsRegistry) -> MetricFamily<Counter, ReloadOutcome> {
    registry.counters("scoregate_reloads_total", &["applied", "rejected"].map(str::to_owned))
}

fn problem(path: &str, error: &impl ToString) -> ConfigProblems {
    ConfigProblems(vec![ConfigProblem { path: path.to_owned(), found: None, remedy: error.to_string() }])
}
