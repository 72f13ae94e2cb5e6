//! Metric handles for mail.

use std::time::Duration;

use metrics::Gauge;

use scoregate_observe::telemetry::metrics::{
    CounterMatrix, FixedLabel as _, metric_label, number_value,
};
use scoregate_store::MailKind;

use super::{metric_handles::metric_handles, store::StoreInstruments};

metric_label! {
    /// The result of an attempt to send an email.
    pub(crate) enum MailResult: "result" {
        /// The server accepted the email.
        Sent = "sent",
        /// The email was removed, because it will never be accepted.
        Refused = "refused",
        /// The email will be sent again later.
        Retried = "retried",
        /// The email was removed, because it had expired.
        Expired = "expired",
    }
}

metric_handles! {
    /// Metric handles for mail.
    pub struct MailInstruments;
    pub fn new(registry);

    /// Attempts to send an email.
    pub(crate) mails: CounterMatrix<MailKind, MailResult> = value (registry.counter_matrix("scoregate_mails_total", &MailKind::words(), &MailResult::words())),
    queued: Gauge = gauge "scoregate_mail_queue_length",
    oldest_age: Gauge = gauge "scoregate_mail_oldest_age_seconds",
    /// Handles of the store's metrics, because the store contains the mail queue.
    pub(crate) store: StoreInstruments = value (StoreInstruments::new(registry)),
}

impl MailInstruments {
    /// Sets the number of emails in the queue and the age of the oldest one.
    pub(crate) fn queue(&self, mails: u64, oldest_age: Duration) {
        self.queued.set(number_value(mails));
        self.oldest_age.set(oldest_age.as_secs_f64());
    }
}
