//! Sweeps that queue notices to owners about quotas and about keys that are about to expire.

use std::{sync::Arc, time::Duration};

use scoregate_store::{MailKind, NoticeQuery, StoreResult};

use crate::registry::{key_changes::KeyChanges, notice_texts::NoticeTexts};

/// Time between the first notice and the expiry of a key. The second notice is sent a day before the expiry.
const WEEK: Duration = Duration::from_hours(7 * 24);
/// Maximum number of notices that are queued in one step, so that leases do not wait long.
const BATCH: usize = 200;

/// Queues the notices that are due.
pub struct NoticeSweep {
    changes: Arc<KeyChanges>,
    texts: NoticeTexts,
}

impl NoticeSweep {
    /// A sweep over the store of `changes`; `None` if owners get no notices.
    pub fn new(changes: &Arc<KeyChanges>) -> Option<Self> {
        let texts = changes.notices.clone()?;
        Some(Self {
            changes: Arc::clone(changes),
            texts,
        })
    }

    /// Queues the notices about quotas. Called every minute.
    pub async fn quotas(&self) {
        // Once the notice about a fully used quota is sent, the notice about 80 % of the quota is no longer sent.
        for kind in [MailKind::Quota100, MailKind::Quota80] {
            self.queue(kind).await;
        }
    }

    /// Queues the notices about keys that are about to expire. Called every hour.
    pub async fn keys(&self) {
        self.queue(MailKind::KeyExpires).await;
    }

    async fn queue(&self, kind: MailKind) {
        if let Err(error) = self.try_queue(kind).await {
            tracing::warn!(%error, kind = kind.word(), "notices to owners were not queued; the next attempt includes them");
        }
    }

    async fn try_queue(&self, kind: MailKind) -> StoreResult<()> {
        let store = &self.changes.store;
        let now = self.changes.now().wall;
        let live = store
            .nodes()
            .await?
            .live(now)
            .map(|node| node.node)
            .collect();
        let tiers = self.changes.notice_tiers();
        let due = store
            .due_notices(NoticeQuery {
                kind,
                now,
                until: now.plus(WEEK),
                live,
                tiers,
            })
            .await?;
        let mut mails: Vec<_> = due
            .into_iter()
            .map(|due| self.texts.of_due(kind, due, now))
            .collect();
        // Gateways queue notices concurrently. They use the same order to avoid deadlocks.
        mails.sort_by(|one, other| one.message_id.cmp(&other.message_id));
        for some in mails.chunks(BATCH) {
            store.queue_once(some.to_vec()).await?;
        }
        Ok(())
    }
}
