//! Owners and their sessions. They have a connection of their own, so that changes of keys do not wait for them.

use crate::postgres::accounts::owners::{self, COLUMNS, END_SESSIONS, described};
use crate::postgres::accounts::sign_in;
use crate::postgres::connection::schema_client::RowColumns as _;
use crate::postgres::postgres_store::PostgresStore;
use crate::stored::{millis, stored};
use crate::{
    NewMail, NewSignInLink, OwnerChange, OwnerQuery, OwnerSession, OwnerStore, SignIn, SignInOutcome,
    StoreFuture, StoredOwner, UsableLink,
};
use scoregate_base::clock::Wall;
use scoregate_base::keys::{Digest, OwnerId};

const OWNERS: &str = "
SELECT {columns}
FROM {schema}.owners o
WHERE ($1::text IS NULL OR position(lower($1) IN lower(o.email)) > 0 OR position(lower($1) IN o.mailbox) > 0)
  AND ($2::text IS NULL OR o.id = (SELECT owner FROM {schema}.owned_applications WHERE application = $2))
  AND ($3::text IS NULL OR o.id > $3)
ORDER BY o.id LIMIT $4";

const SESSION: &str = "
SELECT {columns},
       s.created_at AS session_created_at, s.expires_at AS session_expires_at
FROM {schema}.owner_sessions s JOIN {schema}.owners o ON o.id = s.owner WHERE s.digest = $1 AND s.expires_at > $2";

const END_SESSION: &str = "DELETE FROM {schema}.owner_sessions WHERE digest = $1";

impl OwnerStore for PostgresStore {
    fn send_link(&self, link: NewSignInLink, mail: NewMail) -> StoreFuture<'_, bool> {
        Box::pin(
            self.accounts
                .change("store a link", async move |client| sign_in::send_link(client, &link, &mail).await),
        )
    }

    fn usable_link(&self, digest: Digest, now: Wall) -> StoreFuture<'_, Option<UsableLink>> {
        Box::pin(self.accounts.run("read a link", async move |client| {
            Ok(sign_in::unused(client, digest, now).await?.map(|(link, _)| link))
        }))
    }

    fn sign_in(&self, sign_in: SignIn) -> StoreFuture<'_, SignInOutcome> {
        Box::pin(
            self.accounts
                .change("sign in an owner", async move |client| sign_in::sign_in(client, &sign_in).await),
        )
    }

    fn session(&self, digest: Digest, now: Wall) -> StoreFuture<'_, Option<OwnerSession>> {
        Box::pin(self.accounts.run("read a session", async move |client| {
            let statement = SESSION.replace("{columns}", COLUMNS);
            let found = client.query_opt(&statement, &[&digest.as_bytes().as_slice(), &millis(now)]).await?;
            let Some(row) = found else { return Ok(None) };
            let (created_at, expires_at) = (row.at("session_created_at")?, row.at("session_expires_at")?);
            Ok(described(&row)?.map(|owner| OwnerSession { owner, created_at, expires_at }))
        }))
    }

    fn end_session(&self, digest: Digest) -> StoreFuture<'_, ()> {
        let doing = "end a session";
        Box::pin(self.accounts.run(doing, async move |client| {
            client.execute(END_SESSION, &[&digest.as_bytes().as_slice()]).await.map(drop)
        }))
    }

    fn end_sessions(&self, owner: OwnerId) -> StoreFuture<'_, ()> {
        let doing = "end the sessions of an owner";
        Box::pin(self.accounts.run(doing, async move |client| {
            client.execute(END_SESSIONS, &[&owner.to_string()]).await.map(drop)
        }))
    }

    fn owners(&self, query: OwnerQuery) -> StoreFuture<'_, Vec<StoredOwner>> {
        Box::pin(self.accounts.run("read owners", async move |client| {
            let OwnerQuery { email, application, after, limit } = &query;
            let (application, after) = (application.map(|id| id.to_string()), after.map(|id| id.to_string()));
            let statement = OWNERS.replace("{columns}", COLUMNS);
            let rows = client.query(&statement, &[email, &application, &after, &stored(*limit)]).await?;
            rows.iter().filter_map(|row| described(row).transpose()).collect()
        }))
    }

    fn owner(&self, id: OwnerId) -> StoreFuture<'_, Option<StoredOwner>> {
        Box::pin(self.accounts.run("read an owner", async move |client| owners::owner(client, id).await))
    }

    fn change_owner(&self, change: OwnerChange) -> StoreFuture<'_, StoredOwner> {
        Box::pin(
            self.accounts
                .change("change an owner", async move |client| owners::change(client, &change).await),
        )
    }
}
