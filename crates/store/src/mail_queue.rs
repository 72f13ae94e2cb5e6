//! Mail to be sent.
//!
//! A gateway claims an email for a limited time, sends it, and removes it. If the gateway stops before that, another
//! gateway sends the email again with the same message id when the claim has expired.

use std::time::Duration;

use scoregate_base::{clock::Wall, words};
use scoregate_observe::telemetry::metrics::metric_label;
use serde_json::{Value, json};

words! {
    /// The purpose of an email.
    #[derive(Hash)]
    pub enum MailKind: word {
        /// A link to sign in.
        SignIn = "sign_in",
        /// A message from an operator, or about a leaked key.
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
    /// The purpose of the email.
    pub kind: MailKind,
    /// The recipient's address.
    pub recipient: String,
    /// The subject line.
    pub subject: String,
    /// The plain text.
    pub text: String,
    /// The HTML form.
    pub html: String,
    /// The body for the recipient's webhooks; empty if there is none. It is not stored with the mail.
    pub webhook: String,
    /// The `Message-ID`, without angle brackets. It is unique.
    pub message_id: String,
    /// When it was queued.
    pub created_at: Wall,
    /// When the email becomes useless.
    pub expires_at: Wall,
}

/// The recipient of messages to the operator's webhook, whose address is in the settings. Owners' webhooks have longer ids.
pub const OPERATOR: &str = "operator";
/// How long delivery of a message to the operator is retried.
const REPEATED_TO_OPERATOR: Duration = Duration::from_hours(72);

impl NewMail {
    /// A message to the operator's webhook. Its id consists of its type and `about`.
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

/// An email from an operator to owners, recorded in the audit trail without its text and addresses.
#[derive(Clone, Debug)]
pub struct NewNotice {
    /// The time of the request.
    pub at: Wall,
    /// The actor.
    pub who: String,
    /// Number of all recipients.
    pub recipients: usize,
    /// The emails to the first recipients.
    pub mails: Vec<NewMail>,
}

impl NewNotice {
    /// Name of the change in the audit trail.
    pub(crate) const WORD: &str = "contact_accounts";

    /// The details of the audit record.
    pub(crate) fn audited(&self) -> String {
        format!("recipients: {}", self.recipients)
    }
}

/// A queued email, claimed by the reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedMail {
    /// The mail.
    pub mail: NewMail,
    /// Number of attempts to send the email so far, including this one; also the claim number.
    pub attempt: u32,
}

/// A claim of due emails.
#[derive(Clone, Debug)]
pub struct MailClaim {
    /// The kind of email to claim.
    pub lane: MailLane,
    /// The current time.
    pub now: Wall,
    /// When the claim expires.
    pub until: Wall,
    /// Maximum number of emails.
    pub limit: usize,
    /// Maximum number of emails to one recipient.
    pub each: usize,
    /// Recipients whose emails are skipped.
    pub except: Vec<String>,
}

/// A group of emails that are claimed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MailLane {
    /// Mail.
    Mail,
    /// Messages to the operator's webhook.
    Operator,
    /// Messages to owners' webhooks.
    Owners,
}

impl MailClaim {
    /// A claim of at most `limit` emails.
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
    /// The message id of the email.
    pub message_id: String,
    /// Number of the attempt. An attempt whose claim was taken over changes nothing.
    pub attempt: u32,
    /// The next state of the email.
    pub outcome: MailOutcome,
}

/// The next state of an email after an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MailOutcome {
    /// The email is removed: it was sent, or will never be sent.
    Remove,
    /// The email is sent again later.
    Retry {
        /// The time of the next attempt.
        at: Wall,
        /// Why the attempt failed.
        reason: String,
    },
}

/// The state of the queue. Webhook messages are not included, because owners run the receivers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MailBacklog {
    /// Emails in the queue.
    pub mails: u64,
    /// When the oldest email was queued.
    pub oldest: Option<Wall>,
    /// Why the last attempt to send the oldest email failed, if it did.
    pub last_error: Option<String>,
}
