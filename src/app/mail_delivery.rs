//! The worker that sends mail: built with the gateway if mail is configured, and finished at a shutdown.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::OptionFuture;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::config::{Config, ConfigProblems, open_mail_transport};
use crate::instruments::Instruments;
use crate::mail::{MailSender, PublicInternet, QueueMonitor, WebhookClient, WebhookSender};
use crate::upstream::BackendTlsSettings;
use scoregate_base::clock::Clock;
use scoregate_store::Store;

use super::background::Background;

/// Interval between measurements of the queue.
const MEASURE_EVERY: Duration = Duration::from_secs(15);

/// The worker and the monitor of its queue, before they run.
pub(super) struct MailTasks {
    sender: MailSender,
    webhooks: Option<WebhookSender>,
    monitor: QueueMonitor,
}

/// The running worker, if mail is sent.
pub(super) struct MailWorker {
    stop: CancellationToken,
    sending: Option<JoinHandle<()>>,
}

impl MailTasks {
    /// `None` if mail is not configured. Does not connect to the server.
    pub(super) fn open(
        config: &Config,
        store: &Arc<dyn Store>,
        clock: &Clock,
        instruments: &Arc<Instruments>,
    ) -> Result<Option<Self>, ConfigProblems> {
        let Some(mail) = &config.mail else { return Ok(None) };
        let transport = open_mail_transport(mail, clock)?;
        let (store, instruments) = (|| Arc::clone(store), || Arc::clone(instruments));
        let sender = MailSender::new(store(), mail, transport, clock.clone(), instruments());
        let monitor = QueueMonitor::new(store(), clock.clone(), instruments());
        let webhooks = config.site.as_ref().filter(|site| site.webhooks).map(|_| {
            // Public authorities are in the program, so there is no file that cannot be read.
            let tls = BackendTlsSettings::default().load(clock).expect("no files are read").client_config();
            let client = WebhookClient::new(Arc::new(PublicInternet), tls, clock.clone());
            WebhookSender::new(store(), client, clock.clone(), instruments())
        });
        Ok(Some(Self { sender, webhooks, monitor }))
    }
}

impl MailWorker {
    /// Starts the tasks, if there are any, until the stop or the shutdown.
    pub(super) fn start(tasks: Option<MailTasks>, background: &Background) -> Self {
        let stop = background.stop.child_token();
        let sending = tasks.map(|MailTasks { sender, webhooks, monitor }| {
            let measure = |monitor: Arc<QueueMonitor>| async move { monitor.measure().await };
            background.repeat(MEASURE_EVERY, &Arc::new(monitor), measure);
            let webhooks = webhooks.map(|webhooks| webhooks.run(stop.clone()));
            let sending = sender.run(stop.clone());
            background.spawn(async { _ = tokio::join!(sending, OptionFuture::from(webhooks)) })
        });
        Self { stop, sending }
    }

    /// Finishes the mail that is being sent, for a limited time. After that its claim expires, and it is sent again.
    pub(super) async fn finish(self, clock: &Clock, time: Duration) {
        self.stop.cancel();
        let Some(mut sending) = self.sending else { return };
        tracing::debug!("no more mail is sent");
        if clock.within(time, &mut sending).await.is_err() {
            sending.abort();
            tracing::warn!(
                "a mail could not be finished in time; it is sent again after its claim has expired"
            );
        }
    }
}
