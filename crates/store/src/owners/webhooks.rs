//! Webhooks of owners: URLs that get the notices that the owner chose, as signed messages.
//!
//! A message is queued with the mail of its notice, as an email of the kind `webhook` whose recipient is the id of the
//! webhook. Its message id is the notice's, with the webhook in place of the domain. A challenge has its token as the
//! subject. Secrets are stored readable: without them nothing can be signed.

use std::time::Duration;

use crate::NewMail;
use scoregate_base::clock::Wall;
use scoregate_base::keys::OwnerId;
use scoregate_base::secret::Secret;

/// Maximum number of webhooks of an owner.
pub const MAX_WEBHOOKS: usize = 2;
/// Time for which messages are also signed with the secret before a rotation.
const OVERLAP: Duration = Duration::from_hours(24);

/// A webhook of an owner.
#[derive(Clone, Debug)]
pub struct StoredWebhook {
    /// The id.
    pub id: String,
    /// The owner.
    pub owner: OwnerId,
    /// The URL that gets the messages.
    pub url: String,
    /// The secret that signs them.
    pub secret: Secret,
    /// The secret before the last rotation.
    pub old_secret: Option<Secret>,
    /// When the secret was replaced, if it was.
    pub rotated_at: Option<Wall>,
    /// When the receiver answered the challenge. Before that it gets no notices.
    pub verified_at: Option<Wall>,
    /// Why the last attempt for a queued message failed.
    pub last_error: Option<String>,
}

impl StoredWebhook {
    /// The secrets that sign a message, the newest first.
    pub fn secrets(&self, now: Wall) -> impl Iterator<Item = &Secret> {
        let overlaps = self.rotated_at.is_some_and(|at| now < at.plus(OVERLAP));
        std::iter::once(&self.secret).chain(self.old_secret.as_ref().filter(|_| overlaps))
    }
}

/// An atomic change to a webhook.
#[derive(Clone, Debug)]
pub enum WebhookChange {
    /// Adds it, and queues its challenge. Refused if the owner has [`MAX_WEBHOOKS`].
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
    /// Replaces the secret. The old one signs too for a day.
    Rotate(Secret),
    /// Removes it with its queued messages.
    Remove,
}

impl WebhookChange {
    /// Its name in the audit trail.
    pub(crate) const fn word(&self) -> &'static str {
        match self {
            Self::Add { .. } => "add_webhook",
            Self::Verify => "verify_webhook",
            Self::Rotate(_) => "rotate_webhook",
            Self::Remove => "remove_webhook",
        }
    }
}
