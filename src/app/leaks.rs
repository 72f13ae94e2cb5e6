//! The receiver of leaked keys, from the settings. The keys that sign reports are read again at intervals, never for a
//! request.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::task::TaskTracker;

use crate::accounts::{LeakSettings, LeakedKeys, Registrar};
use crate::config::{Config, ConfigProblems, read_public_keys};
use crate::leaks::{LeakReceiver, PublishedKeys, SignerSource};
use crate::upstream::PublicDocument;
use scoregate_base::clock::Clock;

use super::background::Background;
use super::notices::notice_settings;
use super::watched_files::CHECK_INTERVAL;

/// Interval between readings of a list at an address, and after a failed one.
const FETCH_INTERVAL: Duration = Duration::from_hours(1);
const RETRY_INTERVAL: Duration = Duration::from_mins(5);

/// The receiver, and the list of the keys that sign its reports.
#[derive(Clone)]
pub(super) struct ServerLeaks {
    pub(super) receiver: Arc<LeakReceiver>,
    signers: Arc<PublishedKeys>,
    source: SignerSource,
}

impl ServerLeaks {
    /// `None` if the receiver is off. Its tasks are owned by `tasks`.
    pub(super) fn of(config: &Config, registrar: &Registrar, tasks: &TaskTracker) -> Option<Self> {
        let leaks = config.leaks.clone()?;
        let domain = notice_settings(config).domain;
        let settings = LeakSettings { action: leaks.action, service: config.service.clone(), domain };
        let signers = Arc::new(PublishedKeys::default());
        let leaked = LeakedKeys::new(registrar, settings);
        let receiver = Arc::new(LeakReceiver::new(Arc::clone(&signers), leaked, tasks.clone()));
        Some(Self { receiver, signers, source: leaks.signers })
    }

    /// Reads the keys that sign reports, if they are in a file, which must be usable at a start.
    pub(super) fn open(&self) -> Result<(), ConfigProblems> {
        read_public_keys(&self.source, &self.signers)
    }

    /// Starts to read the keys that sign reports again.
    pub(super) fn start(&self, background: &Background) {
        background.until_stopped(self.clone().follow(background.clock.clone()));
    }

    async fn follow(self, clock: Clock) {
        let mut failure = String::new();
        let mut pause = match &self.source {
            SignerSource::File(_) => CHECK_INTERVAL,
            SignerSource::Address(_) => Duration::ZERO,
        };
        loop {
            clock.sleep(pause).await;
            let read = self.read(&clock).await;
            pause = match (&self.source, read.is_ok()) {
                (SignerSource::File(_), _) => CHECK_INTERVAL,
                (SignerSource::Address(_), true) => FETCH_INTERVAL,
                (SignerSource::Address(_), false) => RETRY_INTERVAL,
            };
            let now_failing = read.err().map(|error| format!("{error:#}")).unwrap_or_default();
            if !now_failing.is_empty() && now_failing != failure {
                tracing::error!(
                    error = now_failing,
                    "leaks.public_keys cannot be read; the previous keys stay in use"
                );
            }
            failure = now_failing;
        }
    }

    async fn read(&self, clock: &Clock) -> anyhow::Result<()> {
        let SignerSource::Address(address) = &self.source else {
            let watched = self.clone();
            // Files may be on a slow disk.
            return Ok(tokio::task::spawn_blocking(move || watched.open()).await??);
        };
        let list = PublicDocument::new(address.clone(), clock)?.read().await;
        Ok(self.signers.replace(&list.map_err(|reason| anyhow::anyhow!("{address}: {reason}"))?)?)
    }
}
