//! The worker that delivers messages to webhooks. It is not the one of mail: receivers may be slow.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

use super::failure::WebhookFailure;
use super::receiver::{OperatorWebhook, Receiver};
use super::request::{TIMEOUT, WebhookClient};
use crate::instruments::{Instruments, MailResult, StoreWork};
use crate::mail::retry::{deferred, is_expired, released, removed};
use scoregate_base::clock::{Clock, Mono};
use scoregate_store::{
    ClaimedMail, MailClaim, MailKind, OPERATOR, OwnerChange, OwnerChangeKind, Store, StoreError,
    StoredWebhook, WebhookChange,
};

/// Interval between batches.
const POLL_EVERY: Duration = Duration::from_secs(1);
/// Maximum number of messages in a batch.
const BATCH: usize = 50;
/// Maximum number of messages to one host in a batch. The others are released.
const PER_HOST: usize = 5;
/// Time for a batch. Messages that do not fit are released.
const SENDING: Duration = Duration::from_mins(1);
/// Time to record results before the claim expires.
const RECORDING: Duration = Duration::from_secs(30);
/// Maximum time between attempts.
const MAX_DELAY: Duration = Duration::from_hours(1);

/// The actor in the audit trail.
const ACTOR: &str = "webhook challenge";

/// Delivers the messages of the queue. A message whose result cannot be recorded is repeated with the same id.
pub struct WebhookSender {
    store: Arc<dyn Store>,
    client: WebhookClient,
    operator: Option<OperatorWebhook>,
    clock: Clock,
    instruments: Arc<Instruments>,
}

impl WebhookSender {
    /// A worker on `store`. Messages to the operator wait until a gateway has its webhook.
    pub fn new(
        store: Arc<dyn Store>,
        client: WebhookClient,
        operator: Option<OperatorWebhook>,
        clock: Clock,
        instruments: Arc<Instruments>,
    ) -> Self {
        Self {
            store,
            client,
            operator,
            clock,
            instruments,
        }
    }

    /// Delivers messages until `stop`. Those that are being delivered then are finished.
    pub async fn run(self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            if let Err(error) = self.send_due(&stop).await {
                tracing::warn!(%error, "messages to webhooks are not delivered at present");
            }
            stop.run_until_cancelled(self.clock.sleep(POLL_EVERY)).await;
        }
    }

    /// Delivers messages that are due, at most one batch: concurrently, those to one host one after another.
    pub async fn send_due(&self, stop: &CancellationToken) -> Result<(), StoreError> {
        let now = self.clock.now();
        let until = now.wall.plus(SENDING + RECORDING);
        let claim = MailClaim {
            now: now.wall,
            until,
            limit: BATCH,
            webhooks: true,
        };
        let claiming = self.store.claim_mail(claim);
        let claimed = self
            .instruments
            .measured(&self.clock, StoreWork::Mail, claiming)
            .await?;
        let mut hosts = BTreeMap::<_, Vec<_>>::new();
        for message in claimed {
            let receiver = if message.mail.recipient == OPERATOR {
                Receiver::of_operator(self.operator.as_ref())
            } else if let Some(webhook) = self
                .store
                .webhooks(message.mail.recipient.clone())
                .await?
                .pop()
            {
                Receiver::of_owner(webhook, now.wall)
            } else {
                self.store.record_attempts(vec![removed(&message)]).await?;
                continue;
            };
            let host = receiver.url.as_ref().map(|url| url.host().to_owned());
            hosts.entry(host).or_default().push((message, receiver));
        }
        let end = now.mono.plus(SENDING);
        let sent = join_all(
            hosts
                .into_values()
                .map(|messages| self.send_to_host(messages, end, stop)),
        )
        .await;
        sent.into_iter().collect()
    }

    /// After a failure of the host it gets no further message of the batch.
    async fn send_to_host(
        &self,
        messages: Vec<(ClaimedMail, Receiver)>,
        end: Mono,
        stop: &CancellationToken,
    ) -> Result<(), StoreError> {
        let mut host_failure = None;
        for (index, (message, receiver)) in messages.into_iter().enumerate() {
            let now = self.clock.now();
            let next = if is_expired(&message, now.wall) {
                self.instruments
                    .mail
                    .mails
                    .count(MailKind::Webhook, MailResult::Expired);
                removed(&message)
            } else if let Some(failure) = &host_failure {
                deferred(&message, failure, MAX_DELAY, now.wall)
            } else if stop.is_cancelled() || index >= PER_HOST || now.mono.plus(TIMEOUT) > end {
                released(&message, now.wall)
            } else if let Err(failure) = self.client.deliver(&receiver, &message.mail).await {
                log_failure(&message, failure);
                self.instruments
                    .mail
                    .mails
                    .count(MailKind::Webhook, MailResult::Retried);
                host_failure = failure.is_about_host().then_some(failure);
                deferred(&message, &failure, MAX_DELAY, self.clock.now().wall)
            } else {
                self.instruments
                    .mail
                    .mails
                    .count(MailKind::Webhook, MailResult::Sent);
                if let Some(webhook) = receiver
                    .webhook
                    .filter(|_| !message.mail.subject.is_empty())
                {
                    self.verified(webhook).await?;
                }
                removed(&message)
            };
            self.store.record_attempts(vec![next]).await?;
        }
        Ok(())
    }

    /// Records that a challenge was answered.
    async fn verified(&self, webhook: StoredWebhook) -> Result<(), StoreError> {
        let StoredWebhook { id, owner, .. } = webhook;
        let what = OwnerChangeKind::Webhook {
            id,
            change: WebhookChange::Verify,
        };
        let change = OwnerChange {
            at: self.clock.now().wall,
            who: ACTOR.into(),
            owner,
            what,
        };
        self.store.change_owner(change).await.map(drop)
    }
}

/// Owners see why their webhooks fail on the page of the account; the operator sees it here.
fn log_failure(ClaimedMail { mail, attempt }: &ClaimedMail, reason: WebhookFailure) {
    let webhook = &mail.recipient;
    if webhook == OPERATOR {
        tracing::warn!(attempt, %reason, id = mail.message_id, "a message to operator.webhook is delivered later");
    } else {
        tracing::debug!(webhook, attempt, %reason, "a message to a webhook is delivered later");
    }
}
