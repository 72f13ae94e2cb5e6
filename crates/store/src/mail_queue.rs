//! Mail to be sent.
//!
//! A gateway claims an email for some time, sends it, and removes it. If it stops in between, another gateway sends the
//! email again, with the same message id, after the claim has expired.

use std::time::Duration;

use scoregate_base::clock::Wall;
use scoregate_base::words;
use scoregate_observe::telemetry::metrics::metric_label;
use serde_json::{Value, json};

words! {
    /// The purpose of an email.
    #[derive(Hash)]
    pub enum MailKind: word {
        /// A link to sign in.
        SignIn = "sign_in",
        /// A message of an operator, or about a leaked key.
        Notice = "notice",
        /// 80 % of a quota is used.
        Quota80 = "quota_80",
        /// A quota is used up.
        Quota100 = "quota_100",
        /// A key expires soon.
        KeyExpires = "key_expires",
        /// A key was created, replaced or revoked.
        KeyChanged = "key_changed",
        /// Somebody signed in.
        NewSignIn = "new_sign_in",
        /// A message to a webhook.
        Webhook = "webhook",
    }
}

metric_label!(MailKind: "kind", MailKind::ALL, MailKind::word);

/// An email to be queued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMail {
    /// Its purpose.
    pub kind: MailKind,
    /// The recipient's address.
    pub recipient: String,
    /// Its subject.
    pub subject: String,
    /// Its plain text.
    pub text: String,
    /// Its HTML form.
    pub html: String,
    /// The body for webhooks of the recipient; empty without one. It is not stored with the mail.
    pub webhook: String,
    /// Its `Message-ID`, without angle brackets. Unique.
    pub message_id: String,
    /// When it was queued.
    pub created_at: Wall,
    /// When it is no longer of use.
    pub expires_at: Wall,
}

/// The recipient of messages to the webhook of the operator, which is in the settings. Webhooks of owners have longer ids.
pub const OPERATOR: &str = "operator";
/// Time for which delivery of a message to the operator is retried.
const REPEATED_TO_OPERATOR: Duration = Duration::from_hours(72);

impl NewMail {
    /// A message to the webhook of the operator. Its id consists of its type and `about`.
    pub fn to_operator(message: &str, about: &str, data: &Value, at: Wall) -> Self {
        Self {
            kind: MailKind::Webhook,
            recipient: OPERATOR.into(),
            subject: String::new(),
            text: json!({"type": message, "timestamp": at.rfc3339(), "data": data}).to_string(),
            html: String::new(),
            webhook: String::new(),
            message_id: format!("{message}.{about}@{OPERATOR}"),
            created_at: at,
            expires_at: at.plus(REPEATED_TO_OPERATOR),
        }
    }
}

/// An email of an operator to owners, recorded in the audit trail without text and addresses.
#[derive(Clone, Debug)]
pub struct NewNotice {
    /// When.
    pub at: Wall,
    /// The actor.
    pub who: String,
    /// Number of all recipients.
    pub recipients: usize,
    /// The emails to the first of them.
    pub mails: Vec<NewMail>,
}

impl NewNotice {
    /// Its name in the audit trail.
    pub(crate) const WORD: &str = "contact_accounts";

    /// The details of its audit record.
    pub(crate) fn audited(&self) -> String {
        format!("recipients: {}", self.recipients)
    }
}

/// An email of the queue, claimed by the reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedMail {
    /// The mail.
    pub mail: NewMail,
    /// Attempts to send it so far, this one included; also the number of the claim.
    pub attempt: u32,
}

/// A claim of emails that are due.
#[derive(Clone, Debug)]
pub struct MailClaim {
    /// The emails that are claimed.
    pub lane: MailLane,
    /// The current time.
    pub now: Wall,
    /// When the claim expires.
    pub until: Wall,
    /// Maximum number of emails.
    pub limit: usize,
    /// Maximum number of emails to one recipient.
    pub each: usize,
    /// Recipients whose emails are not claimed.
    pub except: Vec<String>,
}

/// Emails that are claimed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MailLane {
    /// Mail.
    Mail,
    /// Messages to the webhook of the operator.
    Operator,
    /// Messages to webhooks of owners.
    Owners,
}

impl MailClaim {
    /// A claim of at most this number of emails.
    pub fn new(lane: MailLane, now: Wall, until: Wall, limit: usize) -> Self {
        Self {
            lane,
            now,
            until,
            limit,
            each: limit,
            except: Vec::new(),
        }
    }
}

/// The result of an attempt to send an email.
#[derive(Clone, Debug)]
pub struct MailAttempt {
    /// The mail.
    pub message_id: String,
    /// The number of the attempt. An attempt whose claim was taken over changes nothing.
    pub attempt: u32,
    /// The next state of the mail.
    pub outcome: MailOutcome,
}

/// The next state of an email after an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MailOutcome {
    /// It is removed: it was sent, or will never be.
    Remove,
    /// It is sent again later.
    Retry {
        /// When.
        at: Wall,
        /// Why the attempt failed.
        reason: String,
    },
}

/// The state of the queue, without messages to webhooks: their receivers belong to owners.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MailBacklog {
    /// Emails in the queue.
    pub mails: u64,
    /// When the oldest of them was queued.
    pub oldest: Option<Wall>,
    /// Why the last attempt for the oldest mail failed, if it did.
    pub last_error: Option<String>,
}
