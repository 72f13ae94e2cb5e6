//! Links by e-mail, and their use to sign up and to sign in.

use crate::postgres::accounts::mail_queue;
use crate::postgres::accounts::owners::owner;
use crate::postgres::connection::schema_client::{SchemaClient, SqlResult};
use crate::postgres::keys::audit;
use crate::stored::millis;
use crate::{NewMail, NewSignInLink, SignIn, SignInOutcome, UsableLink};
use scoregate_base::clock::Wall;
use scoregate_base::keys::{Digest, OwnerId};

const UNUSED_LINK: &str = "
SELECT l.email, l.mailbox, (SELECT id FROM {schema}.owners o WHERE o.mailbox = l.mailbox) AS owner
FROM {schema}.sign_in_links l WHERE l.digest = $1 AND l.used_at IS NULL AND l.expires_at > $2";

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

/// An unused link, and its mailbox.
pub(crate) async fn unused(
    client: SchemaClient<'_>,
    digest: Digest,
    now: Wall,
) -> SqlResult<Option<(UsableLink, String)>> {
    let found = client.query_opt(UNUSED_LINK, &[&digest.as_bytes().as_slice(), &millis(now)]).await?;
    let Some(row) = found else { return Ok(None) };
    let owner: Option<&str> = row.try_get("owner")?;
    let link = UsableLink { email: row.try_get("email")?, owner: owner.and_then(|id| id.parse().ok()) };
    Ok(Some((link, row.try_get("mailbox")?)))
}

/// Stores a link with its mail, unless the mailbox has had its allowance. The link to an account goes to its address.
///
/// A link that is not allowed is stored and deleted again: the duration must not depend on the mailbox.
pub(crate) async fn send_link(
    client: SchemaClient<'_>,
    link: &NewSignInLink,
    mail: &NewMail,
) -> SqlResult<bool> {
    // Links of one mailbox are counted one after another.
    audit::lock(client).await?;
    let since = millis(link.allowance.since);
    let sent: i64 = client.query_one(LINKS_SENT, &[&link.mailbox, &since]).await?.try_get(0)?;
    let is_allowed = sent < i64::from(link.allowance.links);
    let email: String = match client.query_opt(EMAIL_OF_MAILBOX, &[&link.mailbox]).await? {
        Some(row) => row.try_get(0)?,
        None => link.email.clone(),
    };
    let digest = link.digest.as_bytes().as_slice();
    let [created_at, expires_at] = [link.created_at, link.expires_at].map(millis);
    client.execute(ADD_LINK, &[&digest, &link.mailbox, &email, &created_at, &expires_at]).await?;
    let mail = NewMail { recipient: email, ..mail.clone() };
    mail_queue::add(client, std::slice::from_ref(&mail)).await?;
    client.execute(DELETE_LINK_UNLESS, &[&digest, &is_allowed]).await?;
    client.execute(DELETE_MAIL_UNLESS, &[&mail.message_id, &is_allowed]).await?;
    Ok(is_allowed)
}

/// Uses a link.
pub(crate) async fn sign_in(client: SchemaClient<'_>, sign_in: &SignIn) -> SqlResult<SignInOutcome> {
    audit::lock(client).await?;
    let link = unused(client, sign_in.link, sign_in.at).await?;
    let Some((UsableLink { email, owner: known }, mailbox)) = link else {
        return Ok(SignInOutcome::InvalidLink);
    };
    let known = match known {
        Some(id) => owner(client, id).await?,
        None => None,
    };
    let is_new = known.is_none();
    let id = known.as_ref().map_or(sign_in.new_owner, |owner| owner.id);
    match (&known, &sign_in.accepted_terms) {
        (None, None) => return Ok(SignInOutcome::TermsRequired),
        (None, Some(terms)) => create(client, sign_in, [&mailbox, &email, terms]).await?,
        (Some(owner), Some(terms)) if owner.terms_version != *terms => {
            accept_terms(client, owner.id, terms, sign_in.at).await?;
        }
        (Some(_), _) => {}
    }
    let (digest, at) = (sign_in.link.as_bytes().as_slice(), millis(sign_in.at));
    client.execute(USE_LINK, &[&digest, &at]).await?;
    if known.is_some_and(|owner| owner.suspended_at.is_some()) {
        return Ok(SignInOutcome::Suspended);
    }
    let (digest, expires_at) = (sign_in.session.as_bytes().as_slice(), millis(sign_in.expires_at));
    client.execute(ADD_SESSION, &[&digest, &id.to_string(), &at, &expires_at]).await?;
    let owner = owner(client, id).await?;
    Ok(owner.map_or(SignInOutcome::InvalidLink, |owner| SignInOutcome::SignedIn { owner, is_new }))
}

async fn create(client: SchemaClient<'_>, sign_in: &SignIn, texts: [&str; 3]) -> SqlResult<()> {
    let ([mailbox, email, terms], id) = (&texts, sign_in.new_owner.to_string());
    client.execute(ADD_OWNER, &[&id, mailbox, email, &millis(sign_in.at), terms]).await?;
    let (who, detail) = (format!("owner:{id}"), format!("{id}, terms {terms}"));
    audit::add(client, sign_in.at, [&who, "create_account", "", &detail]).await
}

async fn accept_terms(client: SchemaClient<'_>, id: OwnerId, terms: &String, at: Wall) -> SqlResult<()> {
    client.execute(ACCEPT_TERMS, &[&id.to_string(), terms, &millis(at)]).await?;
    let (who, detail) = (format!("owner:{id}"), format!("{id}, terms {terms}"));
    audit::add(client, at, [&who, "accept_terms", "", &detail]).await
}
