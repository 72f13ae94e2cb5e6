//! Owners and their sessions. They have a connection of their own, so that changes of keys do not wait for them.

use crate::postgres::postgres_store::PostgresStore;
use crate::sql::{owners, sign_in, webhooks};
use crate::{
    NewMail, NewSignInLink, OwnerChange, OwnerQuery, OwnerSession, OwnerStore, SignIn, SignInOutcome,
    StoreFuture, StoredOwner, StoredWebhook, UsableLink,
};
use scoregate_base::clock::Wall;
use scoregate_base::keys::{Digest, OwnerId};

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
        let doing = "read a session";
        Box::pin(self.accounts.run(doing, async move |client| owners::session(client, digest, now).await))
    }

    fn end_session(&self, digest: Digest) -> StoreFuture<'_, ()> {
        let doing = "end a session";
        Box::pin(self.accounts.run(doing, async move |client| owners::end_session(client, digest).await))
    }

    fn end_sessions(&self, owner: OwnerId) -> StoreFuture<'_, ()> {
        let doing = "end the sessions of an owner";
        Box::pin(self.accounts.run(doing, async move |client| owners::end_sessions(client, owner).await))
    }

    fn owners(&self, query: OwnerQuery) -> StoreFuture<'_, Vec<StoredOwner>> {
        Box::pin(self.accounts.run("read owners", async move |client| owners::owners(client, &query).await))
    }

    fn owner(&self, id: OwnerId) -> StoreFuture<'_, Option<StoredOwner>> {
        Box::pin(self.accounts.run("read an owner", async move |client| owners::owner(client, id).await))
    }

    fn webhooks(&self, of: String) -> StoreFuture<'_, Vec<StoredWebhook>> {
        Box::pin(self.accounts.run("read webhooks", async move |client| webhooks::find(client, &of).await))
    }

    fn change_owner(&self, change: OwnerChange) -> StoreFuture<'_, StoredOwner> {
        Box::pin(
            self.accounts
                .change("change an owner", async move |client| owners::change(client, &change).await),
        )
    }
}
