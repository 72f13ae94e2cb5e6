//! Owners of applications that an operator created.

use super::{limits_until, owners, sign_in};
use crate::{
    Attachment, LinkAllowance, NewMail, NewSignInLink, OwnerRefusal, StoreChange, StoreError,
    StoredOwner,
    statements::{
        Done,
        SqlField::{Text, Time},
        Tables,
    },
};
use scoregate_base::{clock::Day, limits::OwnLimits};

const INVITE: &str = "
INSERT INTO {schema}.owners (id, mailbox, email, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";
/// In a database, rows are locked in the same order as the ledger locks them.
const LOCK_WINDOWS: &str = "
SELECT FROM {schema}.ledger_windows WHERE scope = $1 ORDER BY kind, starts, ends FOR UPDATE";
const LOCK_DAYS: &str = "
SELECT FROM {schema}.ledger_days
WHERE application = $1 AND day IN ($2::text::date, $3::text::date, $4::text::date) ORDER BY day FOR UPDATE";
const COUNT: &str = "
UPDATE {schema}.ledger_windows SET granted = granted + (
    SELECT coalesce(sum(l.granted), 0) FROM {schema}.ledger_days l
    WHERE l.application = $1 AND l.day IN ($2::text::date, $3::text::date, $4::text::date)
        AND l.day >= starts AND l.day < ends AND l.granted < 4294967295
) WHERE scope = $5";
const OWNER_OF_MAILBOX: &str = "SELECT id FROM {schema}.owners WHERE mailbox = $1";

/// Assigns an application to the owner of a mailbox, and returns the details of the change. If the mailbox has no
/// account, an account is created that has not accepted the terms yet.
pub async fn attach(
    tables: Tables<'_>,
    change: &StoreChange,
    attachment: &Attachment,
) -> Done<String> {
    let (owner, is_new) = owner_of_mailbox(tables, change, attachment).await?;
    if owner.suspended_at.is_some() {
        return Err(StoreError::Owner(OwnerRefusal::Suspended(owner.id)).into());
    }
    let before = owners::of_application(tables, change.application).await?;
    let others = before.filter(|before| before.id != owner.id);
    let mut detail = format!("owner {}", owner.id);
    if let Some(before) = others {
        if !attachment.moves {
            let refusal = OwnerRefusal::Owned(change.application, before.id);
            return Err(StoreError::Owner(refusal).into());
        }
        release(tables, change, &before, &attachment.detached).await?;
        detail = format!("{detail}, before {}", before.id);
    }
    let is_invited = invite(tables, change, attachment, &owner, is_new).await?;
    let application = change.application.to_string();
    if !owner.applications.contains(&change.application) {
        owners::give(tables, &application, &owner).await?;
        count_units(tables, &application, &owner).await?;
    } else if !is_invited {
        return Err(StoreError::Exists("that owner of the application").into());
    }
    if !is_invited {
        tell(tables, &owner, &attachment.attached).await?;
    }
    Ok(detail)
}

/// Removes an application from its owner, and returns the details of the change.
pub async fn detach(tables: Tables<'_>, change: &StoreChange, mail: &NewMail) -> Done<String> {
    let owner = owners::of_application(tables, change.application).await?;
    let owner = owner.ok_or(StoreError::Owner(OwnerRefusal::NotOwned(
        change.application,
    )))?;
    release(tables, change, &owner, mail).await?;
    Ok(format!("owner {}", owner.id))
}

/// Counts an application's units in the windows of its new owner, for the days whose units gateways may still return. A return
/// takes units out of these windows, even if the application had another owner at the time of the grant.
async fn count_units(tables: Tables<'_>, application: &str, owner: &StoredOwner) -> Done<()> {
    let Some(today) = tables.today().await? else {
        return Ok(());
    };
    let owner = owner.id.to_string();
    let yesterday = Day::from_number(today.number().saturating_sub(1));
    let [before, day, after] = [yesterday, today, today.next()].map(|day| day.to_string());
    let [application, owner] = [Text(application), Text(&owner)];
    let [before, day, after] = [Text(&before), Text(&day), Text(&after)];
    if let Tables::Database(_) = tables {
        tables.run(LOCK_WINDOWS, &[owner]).await?;
        let days = [application, before, day, after];
        tables.run(LOCK_DAYS, &days).await?;
    }
    let values = [application, before, day, after, owner];
    tables.run(COUNT, &values).await.map(drop)
}

/// The owner of the mailbox, and whether the mailbox was unknown.
async fn owner_of_mailbox(
    tables: Tables<'_>,
    change: &StoreChange,
    attachment: &Attachment,
) -> Done<(StoredOwner, bool)> {
    let Attachment { mailbox, email, .. } = attachment;
    let new_owner = attachment.new_owner.to_string();
    let row = [
        Text(&new_owner),
        Text(mailbox),
        Text(email),
        Time(change.at),
    ];
    let is_new = tables.run(INVITE, &row).await? > 0;
    let id = tables
        .find(OWNER_OF_MAILBOX, &[Text(mailbox)], |row| {
            Ok(row.text("id")?.parse().ok())
        })
        .await?;
    let id = id.flatten().unwrap_or(attachment.new_owner);
    Ok((owners::existing(tables, id).await?, is_new))
}

/// Sends an invitation to an owner who has not accepted one, unless an earlier invitation can still be used. Returns whether
/// an invitation was sent.
async fn invite(
    tables: Tables<'_>,
    change: &StoreChange,
    attachment: &Attachment,
    owner: &StoredOwner,
    is_new: bool,
) -> Done<bool> {
    if !owner.is_invited() || owner.refuses_mail() {
        return Ok(false);
    }
    let at = change.at;
    let allowance = LinkAllowance {
        since: at.minus(attachment.valid_for),
        // Anyone can have links sent to a mailbox, so such links do not replace the first invitation.
        links: if is_new { u32::MAX } else { 1 },
    };
    let link = NewSignInLink {
        digest: attachment.link,
        email: attachment.email.clone(),
        mailbox: attachment.mailbox.clone(),
        created_at: at,
        expires_at: at.plus(attachment.valid_for),
        allowance,
    };
    sign_in::send_link(tables, &link, &attachment.invitation).await
}

/// Removes an application from an owner, who is notified. An owner who was only invited and has no other application is
/// deleted.
async fn release(
    tables: Tables<'_>,
    change: &StoreChange,
    owner: &StoredOwner,
    mail: &NewMail,
) -> Done<()> {
    let application = change.application.to_string();
    tables.run(owners::DISOWN, &[Text(&application)]).await?;
    if !owner.own.is_empty() {
        limits_until::set_owner(tables, &application, OwnLimits::NONE).await?;
    }
    if owner.is_invited() && owner.applications.len() == 1 {
        owners::delete(tables, owner).await?;
    }
    tell(tables, owner, mail).await
}

async fn tell(tables: Tables<'_>, owner: &StoredOwner, mail: &NewMail) -> Done<()> {
    let mail = owner.addressed(mail);
    tables.queue_mail(mail.as_slice()).await
}
