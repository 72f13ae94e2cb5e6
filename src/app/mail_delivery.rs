//! The worker that sends mail: started with the gateway if mail is configured, and finished at a shutdown.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock::Clock;
use crate::config::{Config, ConfigProblems, open_mail_transport};
use crate::instruments::Instruments;
use crate::mail::{MailSender, MailTransport, QueueMonitor};
use crate::store::Store;

use super::tasks::repeat;

/// Interval between measurements of the queue.
const MEASURE_EVERY: Duration = Duration::from_secs(15);

/// The running worker, if mail is sent.
pub(super) struct MailWorker {
    stop: CancellationToken,
    sending: Option<JoinHandle<()>>,
}

/// Opens the way that mail takes, if it is configured.
pub(super) fn open(config: &Config, clock: &Clock) -> Result<Option<MailTransport>, ConfigProblems> {
    config.mail.as_ref().map(|mail| open_mail_transport(mail, clock)).transpose()
}

/// Starts the worker, and the measurements of its queue until `stop_measuring`.
pub(super) fn start(
    background: &TaskTracker,
    transport: Option<MailTransport>,
    store: &Arc<dyn Store>,
    instruments: &Arc<Instruments>,
    config: &Config,
    clock: &Clock,
    stop_measuring: &CancellationToken,
) -> MailWorker {
    let stop = CancellationToken::new();
    let sending = transport.zip(config.mail.as_ref()).map(|(transport, mail)| {
        let (store, instruments) = (|| Arc::clone(store), || Arc::clone(instruments));
        let monitor = QueueMonitor::new(store(), clock.clone(), instruments());
        let measure = async move || monitor.measure().await;
        background.spawn(repeat(MEASURE_EVERY, clock.clone(), stop_measuring.clone(), measure));
        let sender = MailSender::new(store(), mail, transport, clock.clone(), instruments());
        background.spawn(sender.run(stop.clone()))
    });
    MailWorker { stop, sending }
}

impl MailWorker {
    /// Finishes the mail that is being sent, for a limited time. After that its claim expires, and it is sent again.
    pub(super) async fn finish(self, clock: &Clock, time: Duration) {
        self.stop.cancel();
        let Some(mut sending) = self.sending else { return };
        if clock.within(time, &mut sending).await.is_err() {
            sending.abort();
            tracing::warn!(
                "a mail could not be finished in time; it is sent again after its claim has expired"
            );
        }
    }
}
