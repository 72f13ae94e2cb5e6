//! Links by e-mail, and their use to sign up and to sign in.

use tokio_postgres::types::Type;

use super::connection::Parameter;
use super::owners::{OwnerResult, OwnerTransaction, millis, owner, unused};
use super::{audit, mail_queue};
use crate::clock::Wall;
use crate::keys::OwnerId;
use crate::store::{NewMail, NewSignInLink, SignIn, SignInOutcome, UsableLink};

/// Links of one mailbox are counted one after another. Changes of keys do not wait for them.
const LOCK_MAILBOX: &str = "SELECT pg_advisory_xact_lock(hashtext($1))";

const LINKS_SENT: &str =
    "SELECT count(*) FROM {schema}.sign_in_links WHERE mailbox = $1 AND created_at >= $2";

const ADD_LINK: &str = "
INSERT INTO {schema}.sign_in_links (digest, mailbox, email, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)";

const DELETE_LINK_UNLESS: &str = "DELETE FROM {schema}.sign_in_links WHERE digest = $1 AND NOT $2";

const DELETE_MAIL_UNLESS: &str = "DELETE FROM {schema}.mail_queue WHERE message_id = $1 AND NOT $2";

const EMAIL_OF_MAILBOX: &str = "SELECT email FROM {schema}.owners WHERE mailbox = $1";

const USE_LINK: &str = "UPDATE {schema}.sign_in_links SET used_at = $2 WHERE digest = $1";

const ADD_OWNER: &str = "
INSERT INTO {schema}.owners (id, mailbox, email, created_at, terms_version, terms_accepted_at)
VALUES ($1, $2, $3, $4, $5, $4)";

const ACCEPT_TERMS: &str =
    "UPDATE {schema}.owners SET terms_version = $2, terms_accepted_at = $3 WHERE id = $1";

const ADD_SESSION: &str = "
INSERT INTO {schema}.owner_sessions (digest, owner, created_at, expires_at) VALUES ($1, $2, $3, $4)";

impl OwnerTransaction<'_> {
    /// Stores a link with its mail, unless the mailbox has had its allowance. The link to an account goes to its address.
    ///
    /// A link that is not allowed is stored and deleted again: the duration must not depend on the mailbox.
    pub(super) async fn send_link(&self, link: &NewSignInLink, mail: &NewMail) -> OwnerResult<bool> {
        let lock_name = format!("scoregate links of {}", link.mailbox);
        self.execute(LOCK_MAILBOX, &[(&lock_name, Type::TEXT)]).await?;
        let since = millis(link.allowance.since);
        let bounds: [Parameter<'_>; 2] = [(&link.mailbox, Type::TEXT), (&since, Type::INT8)];
        let sent = self.schema.statement(LINKS_SENT);
        let sent: i64 = self.transaction.client().query_typed_one(&sent, &bounds).await?.try_get(0)?;
        let is_allowed = sent < i64::from(link.allowance.links);
        let email = self.email_for(link).await?;
        let digest = link.digest.as_bytes().as_slice();
        let [created_at, expires_at] = [link.created_at, link.expires_at].map(millis);
        let row: [Parameter<'_>; 5] = [
            (&digest, Type::BYTEA),
            (&link.mailbox, Type::TEXT),
            (&email, Type::TEXT),
            (&created_at, Type::INT8),
            (&expires_at, Type::INT8),
        ];
        self.execute(ADD_LINK, &row).await?;
        let mail = NewMail { recipient: email, ..mail.clone() };
        mail_queue::add(self.transaction.client(), self.schema, std::slice::from_ref(&mail)).await?;
        self.execute(DELETE_LINK_UNLESS, &[(&digest, Type::BYTEA), (&is_allowed, Type::BOOL)]).await?;
        let of_mail: [Parameter<'_>; 2] = [(&mail.message_id, Type::TEXT), (&is_allowed, Type::BOOL)];
        self.execute(DELETE_MAIL_UNLESS, &of_mail).await?;
        Ok(is_allowed)
    }

    /// The address that a link goes to.
    async fn email_for(&self, link: &NewSignInLink) -> OwnerResult<String> {
        let statement = self.schema.statement(EMAIL_OF_MAILBOX);
        let mailbox: [Parameter<'_>; 1] = [(&link.mailbox, Type::TEXT)];
        match self.transaction.client().query_typed_opt(&statement, &mailbox).await? {
            Some(row) => row.try_get(0),
            None => Ok(link.email.clone()),
        }
    }

    pub(super) async fn sign_in(&self, sign_in: &SignIn) -> OwnerResult<SignInOutcome> {
        self.execute(audit::LOCK, &[]).await?;
        let link = unused(self.transaction.client(), self.schema, sign_in.link, sign_in.at).await?;
        let Some((UsableLink { email, owner: known }, mailbox)) = link else {
            return Ok(SignInOutcome::InvalidLink);
        };
        let known = match known {
            Some(id) => owner(self.transaction.client(), self.schema, id).await?,
            None => None,
        };
        let is_new = known.is_none();
        let id = known.as_ref().map_or(sign_in.new_owner, |owner| owner.id);
        match (&known, &sign_in.accepted_terms) {
            (None, None) => return Ok(SignInOutcome::TermsRequired),
            (None, Some(terms)) => self.create(sign_in, [&mailbox, &email, terms]).await?,
            (Some(owner), Some(terms)) if owner.terms_version != *terms => {
                self.accept_terms(owner.id, terms, sign_in.at).await?;
            }
            (Some(_), _) => {}
        }
        let (digest, at) = (sign_in.link.as_bytes().as_slice(), millis(sign_in.at));
        self.execute(USE_LINK, &[(&digest, Type::BYTEA), (&at, Type::INT8)]).await?;
        if known.is_some_and(|owner| owner.suspended_at.is_some()) {
            return Ok(SignInOutcome::Suspended);
        }
        let (digest, id) = (sign_in.session.as_bytes().as_slice(), (id, id.to_string()));
        let expires_at = millis(sign_in.expires_at);
        let session: [Parameter<'_>; 4] =
            [(&digest, Type::BYTEA), (&id.1, Type::TEXT), (&at, Type::INT8), (&expires_at, Type::INT8)];
        self.execute(ADD_SESSION, &session).await?;
        let owner = owner(self.transaction.client(), self.schema, id.0).await?;
        Ok(owner.map_or(SignInOutcome::InvalidLink, |owner| SignInOutcome::SignedIn { owner, is_new }))
    }

    async fn create(&self, sign_in: &SignIn, [mailbox, email, terms]: [&str; 3]) -> OwnerResult<()> {
        let (id, at) = (sign_in.new_owner.to_string(), millis(sign_in.at));
        let row: [Parameter<'_>; 5] = [
            (&id, Type::TEXT),
            (&mailbox, Type::TEXT),
            (&email, Type::TEXT),
            (&at, Type::INT8),
            (&terms, Type::TEXT),
        ];
        self.execute(ADD_OWNER, &row).await?;
        let (who, detail) = (format!("owner:{id}"), format!("{id}, terms {terms}"));
        audit::add(self.transaction, self.schema, sign_in.at, [&who, "create_account", "", &detail]).await
    }

    async fn accept_terms(&self, id: OwnerId, terms: &String, at: Wall) -> OwnerResult<()> {
        let (id, millis) = (id.to_string(), millis(at));
        self.execute(ACCEPT_TERMS, &[(&id, Type::TEXT), (terms, Type::TEXT), (&millis, Type::INT8)]).await?;
        let (who, detail) = (format!("owner:{id}"), format!("{id}, terms {terms}"));
        audit::add(self.transaction, self.schema, at, [&who, "accept_terms", "", &detail]).await
    }
}
