//! Links sent by email, which are used to sign up and to sign in.

use super::{
    notices,
    owners::owner,
    store::{
        Access::{Change, Read},
        Store,
    },
};
use crate::{
    MailKind, NewMail, NewSignInLink, SignIn, SignInOutcome, StoreResult, StoredOwner, UsableLink,
    statements::{
        Done,
        SqlField::{Digest as DigestOf, Flag, Text, Time},
        SqlRow, Tables,
    },
};
use scoregate_base::{
    clock::Wall,
    keys::{Digest, OwnerId},
};

const UNUSED_LINK: &str = "
SELECT l.email, l.mailbox, (SELECT id FROM {schema}.owners o WHERE o.mailbox = l.mailbox) AS owner
FROM {schema}.sign_in_links l WHERE l.digest = $1 AND l.used_at IS NULL AND l.expires_at > $2";
const LINKS_SENT: &str =
    "SELECT count(*) AS sent FROM {schema}.sign_in_links WHERE mailbox = $1 AND created_at >= $2";
const ADD_LINK: &str = "
INSERT INTO {schema}.sign_in_links (digest, mailbox, email, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)";
const DELETE_LINK_UNLESS: &str = "DELETE FROM {schema}.sign_in_links WHERE digest = $1 AND NOT $2";
const DELETE_MAIL_UNLESS: &str = "DELETE FROM {schema}.mail_queue WHERE message_id = $1 AND NOT $2";
/// Reads only the address, so that the duration does not depend on the number of the owner's applications.
const EMAIL_OF_MAILBOX: &str = "SELECT email FROM {schema}.owners WHERE mailbox = $1";
const USE_LINK: &str = "UPDATE {schema}.sign_in_links SET used_at = $2 WHERE digest = $1";
const ADD_OWNER: &str = "
INSERT INTO {schema}.owners (id, mailbox, email, created_at, terms_version, terms_accepted_at)
VALUES ($1, $2, $3, $4, $5, $4)";
/// An owner who accepts an invitation gets the default notices of the tiers, even if mail to the address was stopped before.
const ACCEPT_TERMS: &str = "
UPDATE {schema}.owners SET notices = CASE WHEN terms_version IS NULL THEN NULL ELSE notices END,
    terms_version = $2, terms_accepted_at = $3
WHERE id = $1";
const ADD_SESSION: &str = "
INSERT INTO {schema}.owner_sessions (digest, owner, created_at, expires_at) VALUES ($1, $2, $3, $4)";

/// Applied after a restore: since the backup, sessions may have ended, links may have been used, and mail may have been
/// sent.
pub const END_SIGN_INS: &str = "
DELETE FROM {schema}.owner_sessions;
DELETE FROM {schema}.mail_queue;
UPDATE {schema}.sign_in_links SET used_at = coalesce(used_at, created_at);";

impl Store {
    /// Stores a link and its email durably, in one transaction. Returns `false` and stores nothing if the mailbox has
    /// used its allowance.
    pub async fn send_link(&self, link: NewSignInLink, mail: NewMail) -> StoreResult<bool> {
        self.run_for_accounts(Change, "store a link", async move |tables| {
            send_link(tables, &link, &mail).await
        })
        .await
    }

    /// The link with this digest, unless it has been used or has expired.
    pub async fn usable_link(&self, digest: Digest, now: Wall) -> StoreResult<Option<UsableLink>> {
        self.run_for_accounts(Read, "read a link", async move |tables| {
            Ok(unused(tables, digest, now).await?.map(|(link, _)| link))
        })
        .await
    }

    /// Uses a link: creates a session, and an owner if the mailbox is unknown. If a link is used several times
    /// concurrently, only one use succeeds.
    pub async fn sign_in(&self, sign_in: SignIn) -> StoreResult<SignInOutcome> {
        self.run_for_accounts(Change, "sign in an owner", async move |tables| {
            self::sign_in(tables, &sign_in).await
        })
        .await
    }
}

/// An unused link, and its mailbox.
async fn unused(
    tables: Tables<'_>,
    digest: Digest,
    now: Wall,
) -> Done<Option<(UsableLink, String)>> {
    tables
        .find(
            UNUSED_LINK,
            &[DigestOf(&digest), Time(now)],
            |row: &SqlRow<'_>| {
                let owner = row.optional_text("owner")?.and_then(|id| id.parse().ok());
                Ok((
                    UsableLink {
                        email: row.text("email")?,
                        owner,
                    },
                    row.text("mailbox")?,
                ))
            },
        )
        .await
}

/// Stores a link with its email, unless the mailbox has used its allowance. If the mailbox has an account, the link is
/// sent to the address of the account.
///
/// A link that exceeds the allowance is stored and deleted again, so that the duration does not depend on the mailbox.
pub async fn send_link(tables: Tables<'_>, link: &NewSignInLink, mail: &NewMail) -> Done<bool> {
    // The lock makes sure that links of one mailbox are counted one after another.
    tables.lock().await?;
    let mailbox = Text(&link.mailbox);
    let since = Time(link.allowance.since);
    let sent = tables
        .find(LINKS_SENT, &[mailbox, since], |row| row.number("sent"))
        .await?;
    let is_allowed = sent.unwrap_or_default() < u64::from(link.allowance.links);
    let known = tables
        .find(EMAIL_OF_MAILBOX, &[mailbox], |row| row.text("email"))
        .await?;
    let email = known.unwrap_or_else(|| link.email.clone());
    let digest = DigestOf(&link.digest);
    let times = (Time(link.created_at), Time(link.expires_at));
    tables
        .run(ADD_LINK, &[digest, mailbox, Text(&email), times.0, times.1])
        .await?;
    let mail = NewMail {
        recipient: email,
        ..mail.clone()
    };
    tables.queue_mail(std::slice::from_ref(&mail)).await?;
    tables
        .run(DELETE_LINK_UNLESS, &[digest, Flag(is_allowed)])
        .await?;
    tables
        .run(
            DELETE_MAIL_UNLESS,
            &[Text(&mail.message_id), Flag(is_allowed)],
        )
        .await?;
    Ok(is_allowed)
}

async fn sign_in(tables: Tables<'_>, sign_in: &SignIn) -> Done<SignInOutcome> {
    tables.lock().await?;
    let Some((link, mailbox)) = unused(tables, sign_in.link, sign_in.at).await? else {
        return Ok(SignInOutcome::InvalidLink);
    };
    let known = match link.owner {
        Some(id) => owner(tables, id).await?,
        None => None,
    };
    let address = [mailbox.as_str(), &link.email];
    if !accept(tables, sign_in, known.as_ref(), address).await? {
        return Ok(SignInOutcome::TermsRequired);
    }
    tables
        .run(USE_LINK, &[DigestOf(&sign_in.link), Time(sign_in.at)])
        .await?;
    let is_new = known.is_none();
    let id = known.as_ref().map_or(sign_in.new_owner, |owner| owner.id);
    if let Some(known) = known {
        if known.suspended_at.is_some() {
            return Ok(SignInOutcome::Suspended);
        }
        tell(tables, known, sign_in).await?;
    }
    add_session(tables, id, sign_in).await?;
    let owner = owner(tables, id).await?;
    Ok(owner.map_or(SignInOutcome::InvalidLink, |owner| {
        SignInOutcome::SignedIn { owner, is_new }
    }))
}

/// Creates an account, or records the accepted terms. Returns `false` if terms are required but were not accepted.
async fn accept(
    tables: Tables<'_>,
    sign_in: &SignIn,
    known: Option<&StoredOwner>,
    address: [&str; 2],
) -> Done<bool> {
    let [mailbox, email] = address;
    match (known, &sign_in.accepted_terms) {
        (None, None) => return Ok(false),
        (Some(owner), None) => return Ok(!owner.is_invited()),
        (None, Some(terms)) => create(tables, sign_in, [mailbox, email, terms]).await?,
        (Some(owner), Some(terms)) if owner.terms_version.as_ref() != Some(terms) => {
            accept_terms(tables, owner.id, terms, sign_in.at).await?;
        }
        (Some(_), Some(_)) => {}
    }
    Ok(true)
}

async fn add_session(tables: Tables<'_>, owner: OwnerId, sign_in: &SignIn) -> Done<()> {
    let row = [
        DigestOf(&sign_in.session),
        Text(&owner.to_string()),
        Time(sign_in.at),
        Time(sign_in.expires_at),
    ];
    tables.run(ADD_SESSION, &row).await.map(drop)
}

/// Queues the notice of a new sign-in, if the owner selected it.
async fn tell(tables: Tables<'_>, owner: StoredOwner, sign_in: &SignIn) -> Done<()> {
    let kinds = owner.notices.unwrap_or_default();
    let Some(mail) = sign_in.notice.as_ref() else {
        return Ok(());
    };
    if !kinds.contains(&MailKind::NewSignIn) {
        return Ok(());
    }
    let mail = NewMail {
        recipient: owner.email,
        ..mail.clone()
    };
    notices::queue_once(tables, &[mail]).await
}

async fn create(tables: Tables<'_>, sign_in: &SignIn, texts: [&str; 3]) -> Done<()> {
    let [mailbox, email, terms] = texts;
    let id = sign_in.new_owner.to_string();
    let row = [
        Text(&id),
        Text(mailbox),
        Text(email),
        Time(sign_in.at),
        Text(terms),
    ];
    tables.run(ADD_OWNER, &row).await?;
    tables.queue_mail(sign_in.sign_up.as_slice()).await?;
    let who = format!("owner:{id}");
    let detail = format!("{id}, terms {terms}");
    tables
        .audit(sign_in.at, [&who, "create_account", "", &detail])
        .await
}

/// Records that an owner accepted another version of the terms.
async fn accept_terms(tables: Tables<'_>, id: OwnerId, terms: &str, at: Wall) -> Done<()> {
    tables
        .run(
            ACCEPT_TERMS,
            &[Text(&id.to_string()), Text(terms), Time(at)],
        )
        .await?;
    let who = format!("owner:{id}");
    let detail = format!("{id}, terms {terms}");
    tables.audit(at, [&who, "accept_terms", "", &detail]).await
}
