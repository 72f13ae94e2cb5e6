//! The workers that send mail and webhook messages. They are built with the gateway if they are configured.

use std::sync::Arc;

use futures_util::future::OptionFuture;
use tokio_util::sync::CancellationToken;

use crate::{
    config::{ConfigProblems, open_mail_transport},
    mail::{MailSender, PublicInternet, QueueMonitor, WebhookClient, WebhookSender},
    upstream::BackendTlsSettings,
};
use scoregate_store::Store;

use super::{
    background::{Background, FinishingTask},
    start_context::StartContext,
};

/// The workers that have not been started yet.
pub struct MailTasks {
    mail: Option<MailSender>,
    webhooks: Option<WebhookSender>,
}

impl MailTasks {
    /// Creates the workers that the settings require. Does not connect to the mail server.
    pub fn open(context: &StartContext, store: &Store) -> Result<Self, ConfigProblems> {
        let config = &context.config;
        let mail = match &config.mail {
            Some(mail) => Some(MailSender::new(
                store.clone(),
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

    /// Starts the workers, if there are any.
    pub fn start(self, background: &Background) -> FinishingTask {
        let Self { mail, webhooks } = self;
        let has_work = mail.is_some() || webhooks.is_some();
        background.finishing(has_work.then_some(|stop: CancellationToken| async move {
            let mail = OptionFuture::from(mail.map(|mail| mail.run(stop.clone())));
            let webhooks = OptionFuture::from(webhooks.map(|webhooks| webhooks.run(stop.clone())));
            _ = tokio::join!(mail, webhooks);
        }))
    }
}

fn webhook_sender(context: &StartContext, store: &Store) -> WebhookSender {
    let clock = &context.clock;
    // The public authorities are compiled in, so no file is read.
    let tls = BackendTlsSettings::default()
        .load(clock)
        .expect("no files are read")
        .client_config();
    WebhookSender::new(
        store.clone(),
        WebhookClient::new(Arc::new(PublicInternet), tls, clock.clone()),
        context.config.operator.clone(),
        clock.clone(),
        Arc::clone(&context.instruments.mail),
    )
}

/// The monitor of the mail queue, if mail is sent.
pub fn queue_monitor(context: &StartContext, store: &Store) -> Option<QueueMonitor> {
    context.config.mail.as_ref()?;
    Some(QueueMonitor::new(
        store.clone(),
        context.clock.clone(),
        Arc::clone(&context.instruments.mail),
    ))
}
