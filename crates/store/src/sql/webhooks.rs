//! Webhooks of owners. The rules are in `store::owners`.

use super::store::{Access::Read, Store};
use crate::{
    MAX_WEBHOOKS, MailKind, NewMail, StoreError, StoreResult, StoredWebhook, WebhookChange,
    statements::{
        Done,
        SqlField::{OptionalText, Text, Time},
        SqlRow, Tables,
    },
};
use scoregate_base::{clock::Wall, secret::Secret};

const FIND: &str = "
SELECT id, owner, url, secret, old_secret, rotated_at, verified_at,
       (SELECT max(last_error) FROM {schema}.mail_queue WHERE recipient = w.id) AS last_error
FROM {schema}.owner_webhooks w WHERE owner = $1 OR id = $1 ORDER BY created_at, id";
const VERIFIED: &str = "
SELECT w.id FROM {schema}.owner_webhooks w JOIN {schema}.owners o ON o.id = w.owner
WHERE o.email = $1 AND w.verified_at IS NOT NULL ORDER BY w.id";
const ADD: &str = "INSERT INTO {schema}.owner_webhooks (id, owner, url, secret, created_at) VALUES ($1, $2, $3, $4, $5)";
const VERIFY: &str = "
UPDATE {schema}.owner_webhooks SET verified_at = coalesce(verified_at, $3) WHERE id = $1 AND owner = $2";
const ROTATE: &str = "
UPDATE {schema}.owner_webhooks SET old_secret = secret, secret = $3, rotated_at = $4 WHERE id = $1 AND owner = $2";
const REMOVE_MESSAGES: &str = "
DELETE FROM {schema}.mail_queue WHERE recipient IN (
    SELECT id FROM {schema}.owner_webhooks WHERE owner = $1 AND id = coalesce($2, id))";
const REMOVE: &str =
    "DELETE FROM {schema}.owner_webhooks WHERE owner = $1 AND id = coalesce($2, id)";

impl Store {
    /// The webhooks of the owner, or the webhook, with this id.
    pub async fn webhooks(&self, of: String) -> StoreResult<Vec<StoredWebhook>> {
        self.run_for_accounts(Read, "read webhooks", async move |tables| {
            find(tables, &of).await
        })
        .await
    }
}

async fn find(tables: Tables<'_>, of: &str) -> Done<Vec<StoredWebhook>> {
    tables
        .list(FIND, &[Text(of)], |row: &SqlRow<'_>| {
            let Ok(owner) = row.text("owner")?.parse() else {
                return Ok(None);
            };
            Ok(Some(StoredWebhook {
                id: row.text("id")?,
                owner,
                url: row.text("url")?,
                secret: Secret::new(row.text("secret")?),
                old_secret: row.optional_text("old_secret")?.map(Secret::new),
                rotated_at: row.optional_time("rotated_at")?,
                verified_at: row.optional_time("verified_at")?,
                last_error: row.optional_text("last_error")?,
            }))
        })
        .await
}

/// Queues the message of a notice for each verified webhook of the email's recipient.
pub async fn queue(tables: Tables<'_>, mail: &NewMail, id: &str) -> Done<()> {
    if mail.webhook.is_empty() {
        return Ok(());
    }
    let webhooks = tables
        .list(VERIFIED, &[Text(&mail.recipient)], |row| {
            row.text("id").map(Some)
        })
        .await?;
    tables
        .queue_mail(
            &webhooks
                .into_iter()
                .map(|webhook| NewMail {
                    kind: MailKind::Webhook,
                    message_id: format!("{id}@{webhook}"),
                    recipient: webhook,
                    subject: String::new(),
                    text: mail.webhook.clone(),
                    html: String::new(),
                    ..mail.clone()
                })
                .collect::<Vec<_>>(),
        )
        .await
}

/// Makes a change in a transaction. Other changes must be locked out.
pub async fn change(
    tables: Tables<'_>,
    owner: &str,
    id: &str,
    change: &WebhookChange,
    at: Wall,
) -> Done<()> {
    match change {
        WebhookChange::Add {
            url,
            secret,
            challenge,
        } => {
            if find(tables, owner).await?.len() >= MAX_WEBHOOKS {
                return Err(StoreError::Exists("the largest number of webhooks").into());
            }
            let row = [
                Text(id),
                Text(owner),
                Text(url),
                Text(secret.expose()),
                Time(at),
            ];
            tables.run(ADD, &row).await?;
            tables.queue_mail(std::slice::from_ref(&**challenge)).await
        }
        WebhookChange::Verify => tables
            .run(VERIFY, &[Text(id), Text(owner), Time(at)])
            .await
            .map(drop),
        WebhookChange::Rotate(secret) => {
            let values = [Text(id), Text(owner), Text(secret.expose()), Time(at)];
            tables.run(ROTATE, &values).await.map(drop)
        }
        WebhookChange::Remove => remove(tables, owner, Some(id)).await,
    }
}

/// Removes one webhook or all webhooks of an owner, and their messages.
pub async fn remove(tables: Tables<'_>, owner: &str, id: Option<&str>) -> Done<()> {
    let values = [Text(owner), OptionalText(id)];
    tables.run(REMOVE_MESSAGES, &values).await?;
    tables.run(REMOVE, &values).await.map(drop)
}
