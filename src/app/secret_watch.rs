//! Reads the files of secrets again at intervals, and reports rejected files. `secret::setting` decides whether a file
//! is used; connections read the file of their password themselves.

use std::sync::Arc;

use metrics::Gauge;
use parking_lot::Mutex;

use crate::config::{Config, UpstreamConfig};
use crate::mail::{MailConfig, MailDelivery};
use scoregate_base::secret::SecretSetting;
use scoregate_base::words;
use scoregate_observe::telemetry::metrics::{MetricFamily, MetricsRegistry, metric_label};

words! {
    /// A secret of the settings.
    enum WatchedSecret: path {
        Database = "store.password",
        AdminToken = "admin.token",
        Backend = "upstream.credential",
        Mail = "mail.password",
        Operator = "operator.webhook_secret",
    }
}

impl WatchedSecret {
    /// The secret for components that were built from these settings.
    fn of(self, config: &Config) -> Option<SecretSetting> {
        match self {
            Self::Database => config.database.as_ref()?.password.clone(),
            Self::AdminToken => config.admin_token.clone(),
            Self::Backend => match &config.upstream {
                UpstreamConfig::Http(http) => http.credential.clone(),
                UpstreamConfig::BuiltIn { .. } | UpstreamConfig::Simulated { .. } => None,
            },
            Self::Mail => match config.mail.as_ref()? {
                MailConfig {
                    delivery: MailDelivery::Smtp(server),
                    ..
                } => server.login.as_ref().map(|login| login.password.clone()),
                MailConfig {
                    delivery: MailDelivery::Directory { .. },
                    ..
                } => None,
            },
            Self::Operator => Some(config.operator.as_ref()?.secret.clone()),
        }
    }
}

metric_label!(WatchedSecret: "secret", WatchedSecret::ALL, WatchedSecret::path);

/// The secrets in use.
#[derive(Clone)]
pub(super) struct SecretWatch {
    secrets: Arc<Mutex<Vec<(WatchedSecret, SecretSetting)>>>,
    rejected: Arc<MetricFamily<Gauge, WatchedSecret>>,
}

impl SecretWatch {
    pub(super) fn new(config: &Config, registry: &MetricsRegistry) -> Self {
        let rejected = registry.gauges("scoregate_secret_files_rejected");
        let secrets = WatchedSecret::ALL
            .into_iter()
            .filter_map(|secret| Some((secret, secret.of(config)?)));
        let watch = Self {
            secrets: Arc::new(Mutex::new(secrets.collect())),
            rejected: Arc::new(rejected),
        };
        for secret in WatchedSecret::ALL {
            // All series exist from the start: an alert cannot see the first increase of an absent series.
            watch.report(secret, false);
        }
        watch
    }

    /// Watches the token of other settings. All other secrets keep their values from the start.
    pub(super) fn replace_token(&self, config: &Config) {
        let token = WatchedSecret::AdminToken;
        let mut secrets = self.secrets.lock();
        secrets.retain(|(secret, _)| *secret != token);
        secrets.extend(token.of(config).map(|setting| (token, setting)));
        self.report(token, false);
    }

    /// Reads all files.
    pub(super) async fn refresh(&self) {
        let watch = self.clone();
        // Files may be on a slow disk.
        if tokio::task::spawn_blocking(move || watch.refresh_all())
            .await
            .is_err()
        {
            tracing::error!("checking the files of secrets panicked");
        }
    }

    fn refresh_all(&self) {
        // The files are read without the lock: a slow disk must not delay a reload.
        let secrets = self.secrets.lock().clone();
        for (secret, setting) in secrets {
            setting.refresh();
            self.report(secret, setting.is_rejected());
        }
    }

    fn report(&self, secret: WatchedSecret, is_rejected: bool) {
        if let Some(gauge) = self.rejected.of(secret) {
            gauge.set(f64::from(u8::from(is_rejected)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{SETTINGS, ValueKind};

    #[test]
    fn every_secret_of_the_settings_is_watched() {
        let secrets = SETTINGS
            .iter()
            .filter(|setting| setting.kind == ValueKind::Secret);
        let mut expected: Vec<_> = secrets.map(|setting| setting.path).collect();
        let mut watched = WatchedSecret::ALL.map(WatchedSecret::path);
        expected.sort_unstable();
        watched.sort_unstable();
        assert_eq!(watched.as_slice(), expected);
    }
}
