//! The worker that sends queued mail and records the results.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use crate::instruments::{MailInstruments, MailResult, StoreWork};
use scoregate_base::clock::{Clock, Mono};
use scoregate_store::{
    ClaimedMail, MailAttempt, MailClaim, MailLane, MailOutcome, Store, StoreError, StoreResult,
};

use super::{
    failure::MailFailure,
    message::{SenderMailbox, outgoing},
    retry::{is_expired, recorded, released, removed, result},
    settings::MailConfig,
    transport::{MailSession, MailTransport},
};

/// Interval between readings of an empty queue.
const POLL_EVERY: Duration = Duration::from_secs(1);
/// Maximum number of emails in a claim.
const BATCH: usize = 10;
/// Time to record the result of an attempt before the claim expires.
const RECORDING: Duration = Duration::from_secs(30);
/// Time after which the store counts as unreachable.
const STORE_TIMEOUT: Duration = Duration::from_secs(10);
/// The operation that error messages name.
const WORK: &str = "read the mail queue";

/// Sends queued mail. Several workers, in one or more processes, can share a queue.
pub struct MailSender {
    queue: Store,
    transport: Arc<MailTransport>,
    from: SenderMailbox,
    timeout: Duration,
    clock: Clock,
    instruments: Arc<MailInstruments>,
    /// Results that are not recorded yet. Nothing is claimed until they are recorded, so that no email is sent twice.
    unrecorded: Vec<MailAttempt>,
    server_fails: bool,
    store_fails: bool,
}

impl MailSender {
    /// A worker on `queue`. It connects only when there is mail to send.
    pub fn new(
        queue: Store,
        config: &MailConfig,
        transport: MailTransport,
        clock: Clock,
        instruments: Arc<MailInstruments>,
    ) -> Self {
        let from = config.from.clone();
        let timeout = config.timeout;
        let unrecorded = Vec::new();
        let server_fails = false;
        let store_fails = false;
        let transport = Arc::new(transport);
        Self {
            queue,
            transport,
            from,
            timeout,
            clock,
            instruments,
            unrecorded,
            server_fails,
            store_fails,
        }
    }

    /// Sends mail until `stop`. The current email is sent before this returns.
    pub async fn run(mut self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            if self.send_due(&stop).await {
                continue;
            }
            stop.run_until_cancelled(self.clock.sleep(POLL_EVERY)).await;
        }
        self.record().await;
    }

    /// Sends emails that are due, at most one batch. Returns whether more emails may be due now.
    pub async fn send_due(&mut self, stop: &CancellationToken) -> bool {
        if !self.record().await {
            return false;
        }
        let now = self.clock.now();
        // This time is enough for several emails to a slow server. Emails that do not fit are released.
        let sending = self.timeout.saturating_mul(6);
        let until = now.wall.plus(sending.saturating_add(RECORDING));
        let claim = MailClaim::new(MailLane::Mail, now.wall, until, BATCH);
        let queue = self.queue.clone();
        let Some(mails) = self.asked(queue.claim_mail(claim)).await else {
            return false;
        };
        let is_full = mails.len() == BATCH;
        let server_works = self.send_batch(&mails, now.mono.plus(sending), stop).await;
        is_full && server_works && self.unrecorded.is_empty()
    }

    /// Sends a batch. Returns false if the server cannot be used now.
    async fn send_batch(
        &mut self,
        mails: &[ClaimedMail],
        end: Mono,
        stop: &CancellationToken,
    ) -> bool {
        let transport = Arc::clone(&self.transport);
        let mut session = transport.session();
        let mut unavailable = None;
        for claimed in mails {
            let now = self.clock.now();
            let longest = now.mono.plus(self.timeout.saturating_mul(2));
            let next = if is_expired(claimed, now.wall) {
                self.instruments
                    .mails
                    .count(claimed.mail.kind, MailResult::Expired);
                tracing::warn!(
                    message_id = claimed.mail.message_id,
                    "an email expired before it could be sent"
                );
                removed(claimed)
            // If sending an email could take longer than its claim lasts, another worker could also send it, so the email is released.
            } else if stop.is_cancelled() || longest > end {
                released(claimed, now.wall)
            } else {
                // A failure of the server affects all mail, so the server is not tried again for each email.
                let attempted = match &unavailable {
                    Some(failure) => Err(MailFailure::clone(failure)),
                    None => self.attempt(claimed, &mut session).await,
                };
                self.report(claimed, &attempted, unavailable.is_some());
                let next = recorded(claimed, &attempted, self.clock.now().wall);
                unavailable = attempted.err().filter(MailFailure::is_about_all_mail);
                next
            };
            // An email that was sent must not be sent again, so this is recorded immediately. Other results share a
            // commit.
            let is_done = matches!(next.outcome, MailOutcome::Remove);
            self.unrecorded.push(next);
            if is_done {
                self.record().await;
            }
        }
        self.record().await;
        session.close().await;
        unavailable.is_none()
    }

    async fn attempt(
        &self,
        claimed: &ClaimedMail,
        session: &mut MailSession<'_>,
    ) -> Result<(), MailFailure> {
        session.send(outgoing(&claimed.mail, &self.from)?).await
    }

    /// Counts and logs a result. The log contains neither the recipient nor the text.
    fn report(
        &mut self,
        claimed: &ClaimedMail,
        attempted: &Result<(), MailFailure>,
        was_known: bool,
    ) {
        let kind = claimed.mail.kind.word();
        let attempt = claimed.attempt;
        let message_id = claimed.mail.message_id.as_str();
        self.instruments
            .mails
            .count(claimed.mail.kind, result(attempted));
        match attempted {
            Ok(()) => {
                tracing::debug!(message_id, kind, attempt, "mail sent");
                if std::mem::take(&mut self.server_fails) {
                    tracing::info!("mail can be sent again");
                }
            }
            Err(failure) if failure.is_permanent() => {
                tracing::warn!(message_id, kind, attempt, reason = %failure, "email refused; it will not be retried");
            }
            Err(failure) if !failure.is_about_all_mail() => {
                tracing::warn!(message_id, kind, attempt, reason = %failure, "email deferred; it will be retried");
            }
            Err(failure) if !was_known => {
                if !std::mem::replace(&mut self.server_fails, true) {
                    tracing::warn!(reason = %failure, "mail cannot be sent; it is kept and sent later");
                }
            }
            Err(_) => {}
        }
    }

    /// Records all results. Returns false if this failed and must be repeated.
    async fn record(&mut self) -> bool {
        if self.unrecorded.is_empty() {
            return true;
        }
        let queue = self.queue.clone();
        let recorded = self
            .asked(queue.record_attempts(self.unrecorded.clone()))
            .await
            .is_some();
        if recorded {
            self.unrecorded.clear();
        }
        recorded
    }

    /// The response of the store. Only the first of several consecutive failures is logged.
    async fn asked<T>(&mut self, asking: impl Future<Output = StoreResult<T>>) -> Option<T> {
        let asking = async {
            self.clock
                .within(STORE_TIMEOUT, asking)
                .await
                .unwrap_or_else(|_| {
                    Err(StoreError::Unavailable {
                        doing: WORK,
                        reason: "no response in time".into(),
                    })
                })
        };
        let answer = self
            .instruments
            .store
            .measured(&self.clock, StoreWork::Mail, asking)
            .await;
        match answer {
            Ok(answer) => {
                if std::mem::take(&mut self.store_fails) {
                    tracing::info!("the mail queue can be used again");
                }
                Some(answer)
            }
            Err(error) => {
                if !std::mem::replace(&mut self.store_fails, true) {
                    tracing::warn!(%error, "the mail queue cannot be used; no mail is sent until it can be used again");
                }
                None
            }
        }
    }
}
