//! The files that are reloaded while the program runs, and the gauges about them. Files are compared by content, so a
//! replaced symbolic link is noticed too.

use std::{collections::HashMap, sync::Arc};

use metrics::Gauge;
use parking_lot::Mutex;

use crate::{
    config::{Config, ConfigProblems, UpstreamConfig, read_certificates},
    leaks::{LeakReceiver, SignerSource},
    mail::MailDelivery,
    server::TlsTermination,
};
use scoregate_base::{
    clock::{Clock, Wall},
    secret::SecretSetting,
    watched_file::WatchedFile,
    words,
};
use scoregate_observe::telemetry::metrics::{MetricFamily, flag_value, metric_label, number_value};

use super::{network_backend::NetworkBackend, start_context::StartContext};

words! {
    /// The settings that name reloaded files.
    #[derive(Hash)]
    enum FileSetting: path {
        Tls = "tls",
        Upstream = "upstream",
        Database = "store.password",
        AdminToken = "admin.token",
        Credential = "upstream.credential",
        Mail = "mail.password",
        Operator = "operator.webhook_secret",
        Signers = "leaks.public_keys",
    }
}

metric_label!(FileSetting: "setting", FileSetting::ALL, FileSetting::path);

/// The files in use.
pub struct WatchedFiles {
    files: Mutex<HashMap<FileSetting, Arc<WatchedFile>>>,
    tls: Option<TlsTermination>,
    backend: Option<Arc<NetworkBackend>>,
    clock: Clock,
    rejected: MetricFamily<Gauge, FileSetting>,
    expires_at: Gauge,
}

impl FileSetting {
    /// The secret in these settings that running components use.
    fn secret(self, config: &Config) -> Option<&SecretSetting> {
        match self {
            Self::Database => config.database.as_ref()?.password.as_ref(),
            Self::AdminToken => config.admin_token.as_ref(),
            Self::Credential => match &config.upstream {
                UpstreamConfig::Http(http) => http.credential.as_ref(),
                UpstreamConfig::BuiltIn { .. } | UpstreamConfig::Simulated { .. } => None,
            },
            Self::Mail => match &config.mail.as_ref()?.delivery {
                MailDelivery::Smtp(server) => Some(&server.login.as_ref()?.password),
                MailDelivery::Directory { .. } => None,
            },
            Self::Operator => Some(&config.operator.as_ref()?.secret),
            Self::Tls | Self::Upstream | Self::Signers => None,
        }
    }
}

impl WatchedFiles {
    /// The files that the settings name at startup.
    pub fn new(
        context: &StartContext,
        backend: Option<Arc<NetworkBackend>>,
        leaks: Option<&Arc<LeakReceiver>>,
    ) -> Self {
        let StartContext {
            config,
            clock,
            registry,
            ..
        } = context;
        let mut files = HashMap::new();
        for setting in FileSetting::ALL {
            let secret = setting.secret(config);
            if let Some(file) = secret.and_then(SecretSetting::file) {
                files.insert(setting, Arc::clone(file));
            }
        }
        if let Some(backend) = backend.as_ref().filter(|backend| backend.has_files()) {
            let backend = Arc::clone(backend);
            let file = WatchedFile::new("upstream", move || backend.renew_tls());
            files.insert(FileSetting::Upstream, Arc::new(file));
        }
        if let Some(receiver) = leaks
            && let Some(leaks) = &config.leaks
        {
            let file = signers(&leaks.signers, receiver);
            files.insert(FileSetting::Signers, Arc::new(file));
        }
        let watched = Self {
            files: Mutex::new(files),
            tls: config.server.connection.tls.clone(),
            backend,
            clock: clock.clone(),
            rejected: registry.gauges("scoregate_files_rejected"),
            expires_at: registry.gauge("scoregate_certificate_expiry_timestamp_seconds"),
        };
        watched.replace(config);
        watched
    }

    /// Reads the certificate files that new settings name, and reports all problems with them. Changes nothing.
    pub fn check(&self, config: &Config) -> Result<(), ConfigProblems> {
        read_certificates(&config.certificates, self.clock.now().wall)?;
        if let Some(backend) = &self.backend {
            backend.read_tls()?;
        }
        Ok(())
    }

    /// Watches the files that reloaded settings name.
    pub fn replace(&self, config: &Config) {
        let mut files = self.files.lock();
        files.remove(&FileSetting::AdminToken);
        let token = config.admin_token.as_ref();
        if let Some(file) = token.and_then(SecretSetting::file) {
            files.insert(FileSetting::AdminToken, Arc::clone(file));
        }
        if let Some(tls) = self.tls.clone() {
            let certificates = config.certificates.clone();
            let clock = self.clock.clone();
            let file = WatchedFile::new("tls", move || {
                let read = read_certificates(&certificates, clock.now().wall);
                let read = read.map_err(|problems| problems.to_string())?;
                Ok(read.is_some_and(|certificates| tls.renew(certificates)))
            });
            files.insert(FileSetting::Tls, Arc::new(file));
        }
    }

    /// Reads all files.
    pub async fn refresh(self: &Arc<Self>) {
        let watched = Arc::clone(self);
        // Reading may take a long time on a slow disk.
        if tokio::task::spawn_blocking(move || watched.refresh_all())
            .await
            .is_err()
        {
            tracing::error!("reading files again panicked");
        }
    }

    fn refresh_all(&self) {
        // The files are read without holding the lock, because a slow disk must not delay a reload.
        let files = self.files.lock().clone();
        // All series exist from startup: an alert cannot detect the first increase of an absent series.
        for setting in FileSetting::ALL {
            let file = files.get(&setting);
            let is_rejected = file.is_some_and(|file| !file.refresh());
            if let Some(gauge) = self.rejected.of(setting) {
                gauge.set(flag_value(is_rejected));
            }
        }
        self.report_expiry();
    }

    fn report_expiry(&self) {
        let public = self.tls.as_ref().map(|tls| tls.certificates().expires_at);
        let client = self.backend.as_ref().and_then(|one| one.expires_at());
        let first = public.into_iter().chain(client).min();
        self.expires_at
            .set(number_value(first.map_or(0, Wall::seconds)));
    }
}

/// The file with the keys that sign reports of leaked keys. If the list has a URL, `leaks` fetches it.
fn signers(source: &SignerSource, receiver: &LeakReceiver) -> WatchedFile {
    let source = source.clone();
    let keys = Arc::clone(&receiver.signers);
    WatchedFile::new("leaks.public_keys", move || {
        source.read_file(&keys).map(|()| false)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{SETTINGS, ValueKind};

    #[test]
    fn every_secret_of_the_settings_is_watched() {
        for setting in SETTINGS {
            if setting.kind == ValueKind::Secret {
                assert!(
                    FileSetting::parse(setting.path).is_some(),
                    "{}",
                    setting.path
                );
            }
        }
    }
}
