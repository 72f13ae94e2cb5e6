//! Notices to owners. The rules are in `store::notices`.

use super::request_totals::IS_CHARGED;
use super::rows::{RowResult, SqlRow};
use super::tables::SqlField::{Number, Text, Time};
use super::tables::{SqlDone, SqlField, SqlTables};
use super::webhooks;
use crate::{
    DueNotice, MailKind, NewMail, NoticeQuery, NoticeSubject, NoticeTier, OwnerNotice, notice_words,
};

/// Applications whose owners want a kind. The list of tiers begins with none, so that it is never empty.
const WANTED: &str = "
WITH tiers (tier, quota, defaults) AS (VALUES {tiers})
SELECT a.id, o.email{columns}
FROM {schema}.owned_applications w
JOIN {schema}.owners o ON o.id = w.owner
JOIN {schema}.applications a ON a.id = w.application
LEFT JOIN tiers t ON t.tier = a.tier{joined}
WHERE {position}(',' || coalesce(o.notices, t.defaults, '') || ',', ',' || $1 || ',') > 0 AND {condition}";

const KEYS: [&str; 3] = [
    ", k.shown, k.expires_at",
    " JOIN {schema}.keys k ON k.application = a.id",
    "k.revoked_at IS NULL AND k.expires_at > $2 AND k.expires_at <= $3",
];
/// Used are the granted units without those that a live gateway holds; what it delivered is recorded every minute, and so are
/// refused requests. After a notice about the whole quota there is none about a part of it.
const QUOTAS: [&str; 3] = [
    ", coalesce(a.own_day, t.quota) AS quota, l.used",
    " JOIN (
    SELECT l.application, l.granted, l.granted - coalesce((
        SELECT CAST(sum(n.granted - n.returned - coalesce((
            SELECT sum(r.requests) FROM {schema}.request_nodes r
            WHERE r.day = n.day AND r.application = n.application AND r.node = n.node AND {is_charged}), 0)) AS bigint)
        FROM {schema}.ledger_nodes n
        WHERE n.day = l.day AND n.application = l.application AND {position}($4, ',' || n.node || ',') > 0), 0) AS used
    FROM {schema}.ledger_days l WHERE l.day = $2::text::date AND l.granted > 0
) l ON l.application = a.id",
    "l.granted * 100 >= $3 * coalesce(a.own_day, t.quota)
    AND NOT EXISTS (
        SELECT 1 FROM {schema}.notices
        WHERE id IN ($1 || '.' || a.id || '.' || $2, 'quota_100.' || a.id || '.' || $2))
    AND (l.used * 100 >= $3 * coalesce(a.own_day, t.quota) OR EXISTS (
        SELECT 1 FROM {schema}.request_nodes r
        WHERE r.day = $2::text::date AND r.application = a.id AND r.outcome = 'quota_exceeded'))",
];
const APPLICATION: [&str; 3] = ["", "", "a.id = $2"];

const ADD: &str = "INSERT INTO {schema}.notices (id, at) VALUES ($1, $2) ON CONFLICT DO NOTHING";

/// Notices that are due.
pub(crate) async fn due<T: SqlTables>(
    tables: T,
    query: &NoticeQuery,
) -> SqlDone<T, Vec<DueNotice>> {
    let NoticeQuery {
        kind,
        now,
        until,
        live,
        tiers,
    } = query;
    let live: Vec<String> = live
        .iter()
        .map(|node| node.cast_signed().to_string())
        .collect();
    let live = format!(",{},", live.join(","));
    let day = now.day().to_string();
    let quota = |percent| vec![Text(&day), Number(percent), Text(&live)];
    let (parts, values) = match kind {
        MailKind::Quota80 => (QUOTAS, quota(80)),
        MailKind::Quota100 => (QUOTAS, quota(100)),
        MailKind::KeyExpires => (KEYS, vec![Time(*now), Time(*until)]),
        MailKind::SignIn
        | MailKind::Notice
        | MailKind::KeyChanged
        | MailKind::NewSignIn
        | MailKind::Webhook => return Ok(Vec::new()),
    };
    wanted(tables, *kind, (parts, &values), tiers, |row| {
        due_notice(*kind, row)
    })
    .await
}

fn due_notice(kind: MailKind, row: &SqlRow<'_>) -> RowResult<Option<DueNotice>> {
    let Ok(application) = row.text("id")?.parse() else {
        return Ok(None);
    };
    let subject = if kind == MailKind::KeyExpires {
        NoticeSubject::Key {
            shown: row.any_text("shown"),
            expires_at: row.time("expires_at")?,
        }
    } else {
        NoticeSubject::Quota {
            used: row.number("used")?,
            quota: row.number("quota")?,
        }
    };
    Ok(Some(DueNotice {
        application,
        recipient: row.text("email")?,
        subject,
    }))
}

/// Queues a notice about an application if its owner wants it.
pub(super) async fn tell<T: SqlTables>(
    tables: T,
    application: &str,
    OwnerNotice { mail, tiers }: &OwnerNotice,
) -> SqlDone<T, ()> {
    let read = |row: &SqlRow<'_>| row.text("email").map(Some);
    let owner = wanted(
        tables,
        mail.kind,
        (APPLICATION, &[Text(application)]),
        tiers,
        read,
    )
    .await?;
    let mails: Vec<NewMail> = owner
        .into_iter()
        .map(|recipient| NewMail {
            recipient,
            ..mail.clone()
        })
        .collect();
    queue_once(tables, &mails).await
}

async fn wanted<T: SqlTables, R>(
    tables: T,
    kind: MailKind,
    ([columns, joined, condition], values): ([&str; 3], &[SqlField<'_>]),
    tiers: &[NoticeTier],
    read: impl Fn(&SqlRow<'_>) -> RowResult<Option<R>>,
) -> SqlDone<T, Vec<R>> {
    let mut all = vec![Text(kind.word())];
    let mut rows = vec!["('', 0, '')".to_owned()];
    all.extend_from_slice(values);
    for NoticeTier {
        name,
        quota,
        defaults,
    } in tiers
    {
        all.push(Text(name));
        rows.push(format!(
            "(${}, {quota}, '{}')",
            all.len(),
            notice_words(defaults)
        ));
    }
    let parts = [
        ("columns", columns),
        ("joined", joined),
        ("condition", condition),
        ("tiers", &rows.join(", ")),
    ];
    let statement = parts
        .into_iter()
        .chain([("position", T::POSITION), ("is_charged", IS_CHARGED)])
        .fold(WANTED.to_owned(), |text, (name, part)| {
            text.replace(&format!("{{{name}}}"), part)
        });
    tables.list(&statement, &all, read).await
}

/// Queues each mail and its messages to webhooks, unless one with its message id was queued before.
pub(crate) async fn queue_once<T: SqlTables>(tables: T, mails: &[NewMail]) -> SqlDone<T, ()> {
    for mail in mails {
        let id = mail.message_id.split('@').next().unwrap_or_default();
        if tables.run(ADD, &[Text(id), Time(mail.created_at)]).await? > 0 {
            tables.queue_mail(std::slice::from_ref(mail)).await?;
            webhooks::queue(tables, mail, id).await?;
        }
    }
    Ok(())
}
