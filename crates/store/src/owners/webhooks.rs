//! Webhooks of owners: URLs that receive the notices that the owner selected, as signed messages.
//!
//! A message is queued together with the email of its notice, as an email of kind `webhook` whose recipient is the id
//! of the webhook. Its message id is the notice's message id, with the webhook in place of the domain. The subject of a
//! challenge is its token. Secrets are stored in plain text, because they are needed for signing.

use std::time::Duration;

use crate::NewMail;
use scoregate_base::{clock::Wall, keys::OwnerId, secret::Secret};

/// Maximum number of webhooks of an owner.
pub const MAX_WEBHOOKS: usize = 2;
/// Time for which messages are also signed with the previous secret after a rotation.
const OVERLAP: Duration = Duration::from_hours(24);

/// A webhook of an owner.
#[derive(Clone, Debug)]
pub struct StoredWebhook {
    /// The id.
    pub id: String,
    /// The owner.
    pub owner: OwnerId,
    /// The URL that receives the messages.
    pub url: String,
    /// The secret that signs them.
    pub secret: Secret,
    /// The secret before the last rotation.
    pub old_secret: Option<Secret>,
    /// When the secret was replaced, if it was.
    pub rotated_at: Option<Wall>,
    /// When the receiver answered the challenge. Before that, the webhook gets no notices.
    pub verified_at: Option<Wall>,
    /// Why the last attempt to send a queued message failed.
    pub last_error: Option<String>,
}

impl StoredWebhook {
    /// The secrets that sign a message, newest first.
    pub fn secrets(&self, now: Wall) -> impl Iterator<Item = &Secret> {
        let overlaps = self.rotated_at.is_some_and(|at| now < at.plus(OVERLAP));
        std::iter::once(&self.secret).chain(self.old_secret.as_ref().filter(|_| overlaps))
    }
}

/// An atomic change to a webhook.
#[derive(Clone, Debug)]
pub enum WebhookChange {
    /// Adds the webhook, and queues its challenge. Refused if the owner already has [`MAX_WEBHOOKS`].
    Add {
        /// The URL.
        url: String,
        /// The secret.
        secret: Secret,
        /// The challenge.
        challenge: Box<NewMail>,
    },
    /// Records that the receiver answered the challenge.
    Verify,
    /// Replaces the secret. For a day, messages are signed with the old secret too.
    Rotate(Secret),
    /// Removes the webhook with its queued messages.
    Remove,
}

impl WebhookChange {
    /// Name of the change in the audit trail.
    pub(crate) const fn word(&self) -> &'static str {
        match self {
            Self::Add { .. } => "add_webhook",
            Self::Verify => "verify_webhook",
            Self::Rotate(_) => "rotate_webhook",
            Self::Remove => "remove_webhook",
        }
    }
}
