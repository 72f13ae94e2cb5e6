//! The worker that delivers messages to webhooks. It is not the one of mail: receivers may be slow.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

use super::failure::WebhookFailure;
use super::receiver::WebhookUrl;
use super::request::{TIMEOUT, WebhookClient};
use crate::instruments::{Instruments, MailResult, StoreWork};
use crate::mail::retry::{deferred, is_expired, released, removed};
use scoregate_base::clock::{Clock, Mono};
use scoregate_store::{
    ClaimedMail, MailAttempt, MailClaim, MailKind, OwnerChange, OwnerChangeKind, Store, StoreError,
    StoredWebhook, WebhookChange,
};

/// Interval between readings of an empty queue.
const POLL_EVERY: Duration = Duration::from_secs(1);
/// Maximum number of messages in a claim.
const BATCH: usize = 50;
/// Time for a batch. Messages that do not fit are released.
const SENDING: Duration = Duration::from_secs(60);
/// Time to record results before the claim expires.
const RECORDING: Duration = Duration::from_secs(30);
/// Maximum time between attempts.
const MAX_DELAY: Duration = Duration::from_hours(1);

/// Delivers the messages of the queue. A message whose result cannot be recorded is repeated with the same id.
pub struct WebhookSender {
    store: Arc<dyn Store>,
    client: WebhookClient,
    clock: Clock,
    instruments: Arc<Instruments>,
}

impl WebhookSender {
    /// A worker on `store`.
    pub fn new(
        store: Arc<dyn Store>,
        client: WebhookClient,
        clock: Clock,
        instruments: Arc<Instruments>,
    ) -> Self {
        Self { store, client, clock, instruments }
    }

    /// Delivers messages until `stop`. Those that are being delivered then are finished.
    pub async fn run(self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            match self.send_due(&stop).await {
                Ok(true) => continue,
                Ok(false) => {}
                Err(error) => tracing::warn!(%error, "messages to webhooks are not delivered at present"),
            }
            stop.run_until_cancelled(self.clock.sleep(POLL_EVERY)).await;
        }
    }

    /// Delivers messages that are due, at most one batch: concurrently, those to one host one after another. Returns whether
    /// there may be more.
    pub async fn send_due(&self, stop: &CancellationToken) -> Result<bool, StoreError> {
        let now = self.clock.now();
        let until = now.wall.plus(SENDING + RECORDING);
        let claim = MailClaim { now: now.wall, until, limit: BATCH, webhooks: true };
        let claiming = self.store.claim_mail(claim);
        let claimed = self.instruments.measured(&self.clock, StoreWork::Mail, claiming).await?;
        let is_full = claimed.len() == BATCH;
        let mut hosts = BTreeMap::<String, Vec<(ClaimedMail, StoredWebhook)>>::new();
        let mut gone = Vec::new();
        for message in claimed {
            match self.store.webhooks(message.mail.recipient.clone()).await?.pop() {
                Some(webhook) => {
                    let host = WebhookUrl::parse(&webhook.url).map(|url| url.host().to_owned());
                    hosts.entry(host.unwrap_or_default()).or_default().push((message, webhook));
                }
                None => gone.push(removed(&message)),
            }
        }
        self.store.record_attempts(gone).await?;
        let end = now.mono.plus(SENDING);
        let sent = join_all(hosts.into_values().map(|messages| self.send_to_host(messages, end, stop))).await;
        sent.into_iter().collect::<Result<(), _>>().map(|()| is_full)
    }

    /// After a failure the host gets no further message of the batch.
    async fn send_to_host(
        &self,
        messages: Vec<(ClaimedMail, StoredWebhook)>,
        end: Mono,
        stop: &CancellationToken,
    ) -> Result<(), StoreError> {
        let mut failure: Option<WebhookFailure> = None;
        for (message, webhook) in messages {
            let now = self.clock.now();
            let next = if is_expired(&message, now.wall) {
                self.instruments.mail.mails.count(MailKind::Webhook, MailResult::Expired);
                removed(&message)
            } else if let Some(failure) = &failure {
                deferred(&message, failure, MAX_DELAY, now.wall)
            } else if stop.is_cancelled() || now.mono.plus(TIMEOUT) > end {
                released(&message, now.wall)
            } else {
                let delivered = self.client.deliver(&webhook, &message.mail).await;
                failure = delivered.err();
                self.result(&message, &webhook, failure).await?
            };
            self.store.record_attempts(vec![next]).await?;
        }
        Ok(())
    }

    /// Counts and logs a result, and records that a challenge was answered.
    async fn result(
        &self,
        message: &ClaimedMail,
        webhook: &StoredWebhook,
        failure: Option<WebhookFailure>,
    ) -> Result<MailAttempt, StoreError> {
        let (id, now) = (&webhook.id, self.clock.now().wall);
        let result = if failure.is_some() { MailResult::Retried } else { MailResult::Sent };
        self.instruments.mail.mails.count(MailKind::Webhook, result);
        if let Some(failure) = failure {
            tracing::debug!(webhook = id, attempt = message.attempt, reason = %failure, "a message to a webhook is delivered later");
            return Ok(deferred(message, &failure, MAX_DELAY, now));
        }
        if !message.mail.subject.is_empty() {
            let what = OwnerChangeKind::Webhook { id: id.clone(), change: WebhookChange::Verify };
            let who = format!("owner:{}", webhook.owner);
            self.store.change_owner(OwnerChange { at: now, who, owner: webhook.owner, what }).await?;
        }
        Ok(removed(message))
    }
}
