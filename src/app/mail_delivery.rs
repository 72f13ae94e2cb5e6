//! The workers that send mail and messages to webhooks: built with the gateway if they are configured, and finished at a
//! shutdown.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::OptionFuture;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::config::{ConfigProblems, open_mail_transport};
use crate::mail::{MailSender, PublicInternet, QueueMonitor, WebhookClient, WebhookSender};
use crate::upstream::BackendTlsSettings;
use scoregate_base::clock::Clock;
use scoregate_store::Store;

use super::background::Background;
use super::start_context::StartContext;

/// The workers, before they run.
pub(super) struct MailTasks {
    mail: Option<MailSender>,
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
        context: &StartContext,
        store: &Arc<dyn Store>,
    ) -> Result<Self, ConfigProblems> {
        let config = &context.config;
        let mail = match &config.mail {
            Some(mail) => Some(MailSender::new(
                Arc::<dyn Store>::clone(store),
                mail,
                open_mail_transport(mail, &context.clock)?,
                context.clock.clone(),
                Arc::clone(&context.instruments.mail),
            )),
            None => None,
        };
        let owners_have_webhooks =
            mail.is_some() && config.site.as_ref().is_some_and(|site| site.webhooks);
        let webhooks = (owners_have_webhooks || config.operator.is_some())
            .then(|| webhook_sender(context, store));
        Ok(Self { mail, webhooks })
    }
}

fn webhook_sender(context: &StartContext, store: &Arc<dyn Store>) -> WebhookSender {
    let clock = &context.clock;
    // Public authorities are in the program, so there is no file that cannot be read.
    let tls = BackendTlsSettings::default()
        .load(clock)
        .expect("no files are read")
        .client_config();
    WebhookSender::new(
        Arc::<dyn Store>::clone(store),
        WebhookClient::new(Arc::new(PublicInternet), tls, clock.clone()),
        context.config.operator.clone(),
        clock.clone(),
        Arc::clone(&context.instruments.mail),
    )
}

/// The measure of the queue, if mail is sent.
pub(super) fn queue_monitor(
    context: &StartContext,
    store: &Arc<dyn Store>,
) -> Option<QueueMonitor> {
    context.config.mail.as_ref()?;
    Some(QueueMonitor::new(
        Arc::<dyn Store>::clone(store),
        context.clock.clone(),
        Arc::clone(&context.instruments.mail),
    ))
}

impl MailWorker {
    /// Starts the tasks, if there are any, until the stop or the shutdown.
    pub(super) fn start(MailTasks { mail, webhooks }: MailTasks, background: &Background) -> Self {
        let stop = background.stop.child_token();
        let sending = (mail.is_some() || webhooks.is_some()).then(|| {
            let mail = OptionFuture::from(mail.map(|mail| mail.run(stop.clone())));
            let webhooks = OptionFuture::from(webhooks.map(|webhooks| webhooks.run(stop.clone())));
            background.spawn(async {
                _ = tokio::join!(mail, webhooks);
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
                "an email could not be finished in time; it is sent again after its claim has expired"
            );
        }
    }
}
