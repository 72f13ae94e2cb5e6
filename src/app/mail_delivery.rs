//! The workers that send mail and messages to webhooks: built with the gateway if they are configured, and finished at a
//! shutdown.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::OptionFuture;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::config::{Config, ConfigProblems, open_mail_transport};
use crate::instruments::MailInstruments;
use crate::mail::{MailSender, PublicInternet, QueueMonitor, WebhookClient, WebhookSender};
use crate::upstream::BackendTlsSettings;
use scoregate_base::clock::Clock;
use scoregate_store::Store;

use super::background::Background;

/// Interval between measurements of the queue.
const MEASURE_EVERY: Duration = Duration::from_secs(15);

/// The workers and the monitor of the queue, before they run.
pub(super) struct MailTasks {
    mail: Option<(MailSender, QueueMonitor)>,
    webhooks: Option<WebhookSender>,
}

/// The running workers, if there are any.
pub(super) struct MailWorker {
    stop: CancellationToken,
    sending: Option<JoinHandle<()>>,
}

impl MailTasks {
    /// The workers that these settings need. Does not connect to the server.
    pub(super) fn open(
        config: &Config,
        store: &Arc<dyn Store>,
        clock: &Clock,
        instruments: &Arc<MailInstruments>,
    ) -> Result<Self, ConfigProblems> {
        let store = || Arc::clone(store);
        let instruments = || Arc::clone(instruments);
        let mail = match &config.mail {
            Some(mail) => {
                let transport = open_mail_transport(mail, clock)?;
                let sender =
                    MailSender::new(store(), mail, transport, clock.clone(), instruments());
                Some((
                    sender,
                    QueueMonitor::new(store(), clock.clone(), instruments()),
                ))
            }
            None => None,
        };
        let owners_have_webhooks =
            mail.is_some() && config.site.as_ref().is_some_and(|site| site.webhooks);
        let webhooks = (owners_have_webhooks || config.operator.is_some()).then(|| {
            // Public authorities are in the program, so there is no file that cannot be read.
            let tls = BackendTlsSettings::default()
                .load(clock)
                .expect("no files are read")
                .client_config();
            let client = WebhookClient::new(Arc::new(PublicInternet), tls, clock.clone());
            WebhookSender::new(
                store(),
                client,
                config.operator.clone(),
                clock.clone(),
                instruments(),
            )
        });
        Ok(Self { mail, webhooks })
    }
}

impl MailWorker {
    /// Starts the tasks, if there are any, until the stop or the shutdown.
    pub(super) fn start(MailTasks { mail, webhooks }: MailTasks, background: &Background) -> Self {
        let stop = background.stop.child_token();
        let sender = mail.map(|(sender, monitor)| {
            let measure = |monitor: Arc<QueueMonitor>| async move { monitor.measure().await };
            background.repeat(MEASURE_EVERY, &Arc::new(monitor), measure);
            sender.run(stop.clone())
        });
        let webhooks = webhooks.map(|webhooks| webhooks.run(stop.clone()));
        let sending = (sender.is_some() || webhooks.is_some()).then(|| {
            background.spawn(async {
                _ = tokio::join!(OptionFuture::from(sender), OptionFuture::from(webhooks));
            })
        });
        Self { stop, sending }
    }

    /// Finishes the mail that is being sent, for a limited time. After that its claim expires, and it is sent again.
    pub(super) async fn finish(self, clock: &Clock, time: Duration) {
        self.stop.cancel();
        let Some(mut sending) = self.sending else {
            return;
        };
        tracing::debug!("no more mail is sent");
        if clock.within(time, &mut sending).await.is_err() {
            sending.abort();
            tracing::warn!(
                "a mail could not be finished in time; it is sent again after its claim has expired"
            );
        }
    }
}
