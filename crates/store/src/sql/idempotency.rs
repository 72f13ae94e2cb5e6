//! Requests with an idempotency key. `outdated` deletes them.

use super::store::{Access::Write, Store};
use crate::{
    KeyedRequest, StoreResult,
    statements::{
        SqlField::{OptionalText, Text, Time},
        SqlRow,
    },
};

const KEEP_REQUEST: &str = "
INSERT INTO {schema}.idempotency_keys AS k (digest, content, salt, at, reply) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (digest) DO UPDATE SET reply = coalesce(k.reply, excluded.reply)
RETURNING content, salt, reply";

impl Store {
    /// Stores a request, or the reply to a request that has none yet. Returns the stored record of the first request
    /// with this key.
    pub async fn keep_request(&self, request: KeyedRequest) -> StoreResult<KeyedRequest> {
        self.run(Write, "keep a request", async move |tables| {
            let [digest, content, salt] =
                [&request.digest, &request.content, &request.salt].map(|text| Text(text));
            let reply = OptionalText(request.reply.as_deref());
            let values = [digest, content, salt, Time(request.at), reply];
            let kept = tables
                .find(KEEP_REQUEST, &values, |row: &SqlRow<'_>| {
                    Ok(KeyedRequest {
                        content: row.text("content")?,
                        salt: row.text("salt")?,
                        reply: row.optional_text("reply")?,
                        ..request.clone()
                    })
                })
                .await?;
            Ok(kept.unwrap_or_else(|| request.clone()))
        })
        .await
    }
}
