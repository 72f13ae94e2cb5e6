//! The worker that delivers messages to webhooks. It is separate from the worker for mail, because receivers may be
//! slow. Receivers are served concurrently, and the next claim does not wait for any of them.

use std::{collections::BTreeMap, pin::pin, sync::Arc, time::Duration};

use futures_util::{StreamExt as _, future::join_all, stream::FuturesUnordered};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::{
    failure::WebhookFailure,
    receiver::{OperatorWebhook, Receiver},
    request::{TIMEOUT, WebhookClient},
    turns::{ReceiverPace, ReceiverTurns},
};
use crate::{
    instruments::{MailInstruments, MailResult, StoreWork},
    mail::retry::{deferred, is_expired, released, removed},
};
use scoregate_base::clock::{Clock, Mono, Now, Wall};
use scoregate_store::{
    ClaimedMail, MailAttempt, MailClaim, MailKind, MailLane, OPERATOR, OwnerChange,
    OwnerChangeKind, Store, StoreError, StoredWebhook, WebhookChange,
};

/// The receivers of one lane do not delay the receivers of the other.
const LANES: [MailLane; 2] = [MailLane::Operator, MailLane::Owners];
/// Interval between claims.
const POLL_EVERY: Duration = Duration::from_secs(1);
/// Maximum number of messages to one receiver in a claim.
const EACH: usize = 5;
/// Time to deliver the messages of a claim. Messages that cannot be delivered in this time are released.
const SENDING: Duration = Duration::from_mins(1);
/// Time to record results before the claim expires.
const RECORDING: Duration = Duration::from_secs(30);
/// Maximum time between attempts.
const MAX_DELAY: Duration = Duration::from_hours(1);

/// The actor in the audit trail.
const ACTOR: &str = "webhook challenge";

/// Delivers the messages of the queue. A message whose result cannot be recorded is repeated with the same id.
pub struct WebhookSender {
    store: Store,
    client: WebhookClient,
    operator: Option<OperatorWebhook>,
    clock: Clock,
    instruments: Arc<MailInstruments>,
}

/// Claimed messages to one receiver.
struct ReceiverBatch {
    webhook: String,
    receiver: Receiver,
    messages: Vec<ClaimedMail>,
    /// The deadline for sending the messages.
    end: Mono,
}

impl WebhookSender {
    /// A worker on `store`. Messages to the operator wait until a gateway has the operator's webhook in its settings.
    pub fn new(
        store: Store,
        client: WebhookClient,
        operator: Option<OperatorWebhook>,
        clock: Clock,
        instruments: Arc<MailInstruments>,
    ) -> Self {
        Self {
            store,
            client,
            operator,
            clock,
            instruments,
        }
    }

    /// Delivers messages until `stop`. Deliveries in progress are finished.
    pub async fn run(self, stop: CancellationToken) {
        join_all(LANES.map(|lane| self.run_lane(lane, &stop))).await;
    }

    async fn run_lane(&self, lane: MailLane, stop: &CancellationToken) {
        // Only futures of one task share this lock, so it is never contended.
        let turns = Mutex::default();
        let mut served = FuturesUnordered::new();
        let mut claiming = pin!(self.next_batches(lane, &turns, Duration::ZERO, stop));
        loop {
            tokio::select! {
                Some(()) = served.next() => {}
                batches = claiming.as_mut() => {
                    let Some(batches) = batches else { break };
                    served.extend(batches.into_iter().map(|batch| self.serve(batch, &turns, stop)));
                    claiming.set(self.next_batches(lane, &turns, POLL_EVERY, stop));
                }
            }
        }
        while served.next().await.is_some() {}
    }

    /// Delivers the due messages of one claim.
    pub async fn send_due(&self, stop: &CancellationToken) -> Result<(), StoreError> {
        for lane in LANES {
            let turns = Mutex::default();
            let batches = self.claim(lane, &turns).await?;
            let batches = batches.into_iter();
            join_all(batches.map(|batch| self.serve(batch, &turns, stop))).await;
        }
        Ok(())
    }

    /// Claims messages after a pause. Returns `None` once stopped.
    async fn next_batches(
        &self,
        lane: MailLane,
        turns: &Mutex<ReceiverTurns>,
        pause: Duration,
        stop: &CancellationToken,
    ) -> Option<Vec<ReceiverBatch>> {
        stop.run_until_cancelled(self.clock.sleep(pause)).await?;
        let batches = self.claim(lane, turns).await;
        Some(batches.inspect_err(warn).unwrap_or_default())
    }

    async fn claim(
        &self,
        lane: MailLane,
        turns: &Mutex<ReceiverTurns>,
    ) -> Result<Vec<ReceiverBatch>, StoreError> {
        let now = self.clock.now();
        let until = now.wall.plus(SENDING + RECORDING);
        let mut claim = MailClaim::new(lane, now.wall, until, turns.lock().room());
        claim.each = EACH;
        claim.except = turns.lock().waiting(now.mono);
        let claiming = self.store.claim_mail(claim);
        let claimed = self
            .instruments
            .store
            .measured(&self.clock, StoreWork::Mail, claiming)
            .await?;
        let mut webhooks = BTreeMap::<_, Vec<_>>::new();
        for message in claimed {
            let of_webhook = webhooks.entry(message.mail.recipient.clone());
            of_webhook.or_default().push(message);
        }
        let mut batches = Vec::new();
        for (webhook, messages) in webhooks {
            let batch = self.batch(turns, webhook, messages, now).await;
            batches.extend(batch.inspect_err(warn).ok().flatten());
        }
        Ok(batches)
    }

    /// The batch of a receiver, if the receiver may be served now.
    async fn batch(
        &self,
        turns: &Mutex<ReceiverTurns>,
        webhook: String,
        messages: Vec<ClaimedMail>,
        now: Now,
    ) -> Result<Option<ReceiverBatch>, StoreError> {
        let Some(receiver) = self.receiver(&webhook, now.wall).await? else {
            let attempts = messages.iter().map(removed).collect();
            self.store.record_attempts(attempts).await?;
            return Ok(None);
        };
        let attempts = messages.iter().map(|message| message.attempt);
        let attempt = attempts.max().unwrap_or_default();
        let owner = receiver.owner();
        let begins = turns
            .lock()
            .begin(&webhook, &owner, receiver.host(), attempt);
        if !begins {
            let released = messages.iter().map(|message| released(message, now.wall));
            self.store.record_attempts(released.collect()).await?;
            return Ok(None);
        }
        let end = now.mono.plus(SENDING);
        Ok(Some(ReceiverBatch {
            webhook,
            receiver,
            messages,
            end,
        }))
    }

    /// `None` if the webhook was removed.
    async fn receiver(&self, webhook: &str, now: Wall) -> Result<Option<Receiver>, StoreError> {
        if webhook == OPERATOR {
            return Ok(Some(Receiver::of_operator(self.operator.as_ref())));
        }
        let found = self.store.webhooks(webhook.to_owned()).await?.pop();
        Ok(found.map(|webhook| Receiver::of_owner(webhook, now)))
    }

    async fn serve(
        &self,
        batch: ReceiverBatch,
        turns: &Mutex<ReceiverTurns>,
        stop: &CancellationToken,
    ) {
        let sent = self.send(&batch, stop).await;
        // A failure of the store is not a failure of the receiver.
        let pace = sent.inspect_err(warn).unwrap_or(ReceiverPace::Fast);
        turns.lock().end(&batch.webhook, pace, self.clock.mono());
    }

    /// Sends messages one after another, and stops after a slow response.
    async fn send(
        &self,
        batch: &ReceiverBatch,
        stop: &CancellationToken,
    ) -> Result<ReceiverPace, StoreError> {
        let mut pace = ReceiverPace::Fast;
        let mut host_failure = None;
        for message in &batch.messages {
            let now = self.clock.now();
            let must_wait = stop.is_cancelled() || pace == ReceiverPace::Slow;
            let next = if is_expired(message, now.wall) {
                self.count(MailResult::Expired);
                removed(message)
            } else if let Some(failure) = &host_failure {
                deferred(message, failure, MAX_DELAY, now.wall)
            } else if must_wait || now.mono.plus(TIMEOUT) > batch.end {
                // The message is released if its delivery could outlast the claim, because another gateway could then deliver it
                // too.
                released(message, now.wall)
            } else {
                let delivered = self.client.deliver(&batch.receiver, &message.mail).await;
                let took = self.clock.mono().since(now.mono);
                host_failure = delivered.err().filter(|failure| failure.is_about_host());
                pace = ReceiverPace::of(host_failure.is_none().then_some(took));
                self.after(delivered, message, &batch.receiver).await?
            };
            // Results are recorded one by one, because a delivered message must not be delivered again.
            self.store.record_attempts(vec![next]).await?;
        }
        Ok(pace)
    }

    /// The next state of a message after an attempt.
    async fn after(
        &self,
        delivered: Result<(), WebhookFailure>,
        message: &ClaimedMail,
        receiver: &Receiver,
    ) -> Result<MailAttempt, StoreError> {
        if let Err(failure) = delivered {
            log_failure(message, failure);
            self.count(MailResult::Retried);
            let now = self.clock.now().wall;
            return Ok(deferred(message, &failure, MAX_DELAY, now));
        }
        self.count(MailResult::Sent);
        let is_challenge = !message.mail.subject.is_empty();
        // The webhook is verified before the message is removed. If this fails, the challenge is repeated.
        if let Some(webhook) = receiver.webhook.as_ref().filter(|_| is_challenge) {
            self.verified(webhook).await?;
        }
        Ok(removed(message))
    }

    fn count(&self, result: MailResult) {
        self.instruments.mails.count(MailKind::Webhook, result);
    }

    /// Records that a challenge was answered.
    async fn verified(&self, webhook: &StoredWebhook) -> Result<(), StoreError> {
        let what = OwnerChangeKind::Webhook {
            id: webhook.id.clone(),
            change: WebhookChange::Verify,
        };
        let change = OwnerChange {
            at: self.clock.now().wall,
            who: ACTOR.into(),
            owner: webhook.owner,
            what,
        };
        self.store.change_owner(change).await.map(drop)
    }
}

fn warn(error: &StoreError) {
    tracing::warn!(%error, "messages to webhooks cannot be delivered at present");
}

/// Logs a failure. Owners see on their account page why their webhooks fail. The operator sees it only in the log.
fn log_failure(ClaimedMail { mail, attempt }: &ClaimedMail, reason: WebhookFailure) {
    let webhook = &mail.recipient;
    if webhook == OPERATOR {
        tracing::warn!(attempt, %reason, id = mail.message_id, "a message to operator.webhook was not delivered; it will be retried");
    } else {
        tracing::debug!(webhook, attempt, %reason, "a message to a webhook was not delivered; it will be retried");
    }
}
