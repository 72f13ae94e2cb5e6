//! Metric handles for mail.

use std::time::Duration;

use metrics::Gauge;

use crate::store::MailKind;
use crate::telemetry::metrics::{CounterMatrix, MetricLabel, MetricsRegistry};

/// The result of an attempt to send a mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MailResult {
    /// The server accepted it.
    Sent,
    /// It will never be accepted, and was removed.
    Refused,
    /// It is sent again later.
    Retried,
    /// It was removed because it was of no use any more.
    Expired,
}

/// Metric handles for mail.
pub(crate) struct MailMetrics {
    mails: CounterMatrix<MailKind, MailResult>,
    queued: Gauge,
    oldest_age: Gauge,
}

impl MailResult {
    /// Label values, in the order of the variants.
    const WORDS: [&str; 4] = ["sent", "refused", "retried", "expired"];
}

impl MailMetrics {
    pub(super) fn new(registry: &MetricsRegistry) -> Self {
        let kinds = MailKind::ALL.map(|kind| kind.word().to_owned());
        let results = MailResult::WORDS.map(String::from);
        Self {
            mails: registry.counter_matrix("scoregate_mails_total", &kinds, &results),
            queued: registry.gauge("scoregate_mail_queue_length"),
            oldest_age: registry.gauge("scoregate_mail_oldest_age_seconds"),
        }
    }

    /// Counts an attempt.
    pub(crate) fn done(&self, kind: MailKind, result: MailResult) {
        self.mails.count(kind, result);
    }

    /// Sets the number of mails in the queue and the age of the oldest one.
    #[expect(clippy::cast_precision_loss, reason = "a gauge of a count far below 2^52")]
    pub(crate) fn queue(&self, mails: u64, oldest_age: Duration) {
        self.queued.set(mails as f64);
        self.oldest_age.set(oldest_age.as_secs_f64());
    }
}

impl MetricLabel for MailKind {
    const NAME: &'static str = "kind";
    fn index(self) -> usize {
        self as usize
    }
}

impl MetricLabel for MailResult {
    const NAME: &'static str = "result";
    fn index(self) -> usize {
        self as usize
    }
}
