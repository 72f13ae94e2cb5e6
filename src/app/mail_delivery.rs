//! The worker that sends mail: built with the gateway if mail is configured, and finished at a shutdown.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::config::{Config, ConfigProblems, open_mail_transport};
use crate::instruments::Instruments;
use crate::mail::{MailSender, QueueMonitor};
use scoregate_base::clock::Clock;
use scoregate_store::Store;

use super::background::Background;

/// Interval between measurements of the queue.
const MEASURE_EVERY: Duration = Duration::from_secs(15);

/// The worker and the monitor of its queue, before they run.
pub(super) struct MailTasks {
    sender: MailSender,
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
        Ok(Some(Self { sender, monitor }))
    }
}

impl MailWorker {
    /// Starts the tasks, if there are any, until the stop or the shutdown.
    pub(super) fn start(tasks: Option<MailTasks>, background: &Background) -> Self {
        let stop = background.stop.child_token();
        let sending = tasks.map(|MailTasks { sender, monitor }| {
            let measure = |monitor: Arc<QueueMonitor>| async move { monitor.measure().await };
            background.repeat(MEASURE_EVERY, &Arc::new(monitor), measure);
            background.spawn(sender.run(stop.clone()))
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
