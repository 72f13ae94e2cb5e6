//! Notices to owners. The rules are in `store::notices`.

use super::{
    request_totals::IS_CHARGED,
    store::{
        Access::{Change, Read},
        Store,
    },
    webhooks,
};
use crate::statements::{
    Done, RowResult,
    SqlField::{self, Number, Text, Time},
    SqlRow, Tables,
};
use scoregate_base::{
    clock::Day,
    limits::{CalendarQuota, OwnLimits},
};

use crate::{
    DueNotice, MailKind, NewMail, NoticeQuery, NoticeSubject, NoticeTier, OwnerNotice, StoreResult,
    notice_words,
};

/// Applications whose owners want a kind of notice. The lists of tiers and quotas start with a null entry, so that they
/// are never empty.
const WANTED: &str = "
WITH tiers (tier, defaults) AS (VALUES {tiers}), quotas (tier, kind, quota) AS (VALUES {quotas})
SELECT a.id, o.email{columns}
FROM {schema}.owned_applications w
JOIN {schema}.owners o ON o.id = w.owner
JOIN {schema}.applications a ON a.id = w.application
LEFT JOIN tiers t ON t.tier = a.tier{joined}
WHERE {position}(',' || coalesce(o.notices, t.defaults, '') || ',', ',' || $1 || ',') > 0 AND {condition}
ORDER BY a.id";

const KEYS: [&str; 3] = [
    ", k.shown, k.expires_at",
    " JOIN {schema}.keys k ON k.application = a.id",
    "k.revoked_at IS NULL AND k.expires_at > $2 AND k.expires_at <= $3",
];
/// The day and the other current windows, each with an application whose units count in it. The used units are the
/// granted ones minus the units that live gateways hold. Delivered units and refused requests are recorded every
/// minute. After a notice about the whole quota, no notice about a part of it is sent. Only [`used_quota`] parses an
/// application's own limits, because an unreadable record would make the whole statement fail.
const QUOTAS: [&str; 3] = [
    ", a.tier, coalesce(a.own_limits, '') AS own_limits, u.scope, u.kind, CAST(u.starts AS text) AS starts, u.granted, u.used,
    EXISTS (
        SELECT 1 FROM {schema}.request_nodes r
        WHERE r.day = $2::text::date AND r.application = a.id AND r.outcome = 'quota_exceeded') AS is_refused",
    " JOIN (
    SELECT s.*, s.granted - coalesce((
        SELECT CAST(sum(n.granted - n.returned - coalesce((
            SELECT sum(r.requests) FROM {schema}.request_nodes r
            WHERE r.day = n.day AND r.application = n.application AND r.node = n.node AND {is_charged}), 0)) AS bigint)
        FROM {schema}.ledger_nodes n
        WHERE n.day >= $2::text::date AND n.day < s.ends AND {position}($4, ',' || n.node || ',') > 0
          AND (n.application = s.scope OR n.application IN (
              SELECT application FROM {schema}.owned_applications WHERE owner = s.scope))), 0) AS used
    FROM (
        SELECT 'day' AS kind, application AS scope, application, day AS starts, $5::text::date AS ends, granted
        FROM {schema}.ledger_days WHERE day = $2::text::date
        UNION ALL SELECT kind, scope, scope, starts, ends, granted FROM {schema}.ledger_windows
        UNION ALL SELECT l.kind, l.scope, x.application, l.starts, l.ends, l.granted
        FROM {schema}.ledger_windows l JOIN {schema}.owned_applications x ON x.owner = l.scope
    ) s WHERE s.starts <= $2::text::date AND s.ends > $2::text::date AND s.granted > 0
) u ON u.application = a.id LEFT JOIN quotas q ON q.tier = a.tier AND q.kind = u.kind",
    "(a.own_limits IS NOT NULL OR u.granted * 100 >= $3 * q.quota)
    AND NOT EXISTS (
        SELECT 1 FROM {schema}.notices WHERE id IN (
            $1 || '.' || u.scope || '.' || u.kind || '.' || u.starts,
            'quota_100.' || u.scope || '.' || u.kind || '.' || u.starts))",
];
const APPLICATION: [&str; 3] = ["", "", "a.id = $2"];

const ADD: &str = "INSERT INTO {schema}.notices (id, at) VALUES ($1, $2) ON CONFLICT DO NOTHING";

impl Store {
    /// Queues all emails, except those whose message ids were queued before.
    pub async fn queue_once(&self, mails: Vec<NewMail>) -> StoreResult<()> {
        self.run_for_accounts(Change, "queue notices", async move |tables| {
            queue_once(tables, &mails).await
        })
        .await
    }

    /// Due notices that owners want. Notices about a quota are left out if they were queued before.
    pub async fn due_notices(&self, query: NoticeQuery) -> StoreResult<Vec<DueNotice>> {
        let doing = "read notices that are due";
        self.run_for_accounts(Read, doing, async move |tables| due(tables, &query).await)
            .await
    }
}

/// The due notices.
async fn due(tables: Tables<'_>, query: &NoticeQuery) -> Done<Vec<DueNotice>> {
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
    let tomorrow = now.day().next().to_string();
    let percent = Number(percent(*kind).cast_signed());
    let (parts, values) = match kind {
        MailKind::Quota80 | MailKind::Quota100 => {
            let values = vec![Text(&day), percent, Text(&live), Text(&tomorrow)];
            (QUOTAS, values)
        }
        MailKind::KeyExpires => (KEYS, vec![Time(*now), Time(*until)]),
        MailKind::SignIn
        | MailKind::Notice
        | MailKind::KeyChanged
        | MailKind::NewSignIn
        | MailKind::Webhook => return Ok(Vec::new()),
    };
    wanted(tables, *kind, (parts, &values), tiers, |row| {
        due_notice(query, row)
    })
    .await
}

/// The percentage of a quota at which a kind of notice is sent.
fn percent(kind: MailKind) -> u64 {
    if kind == MailKind::Quota80 { 80 } else { 100 }
}

fn due_notice(query: &NoticeQuery, row: &SqlRow<'_>) -> RowResult<Option<DueNotice>> {
    let Ok(application) = row.text("id")?.parse() else {
        return Ok(None);
    };
    let subject = if query.kind == MailKind::KeyExpires {
        Some(NoticeSubject::Key {
            shown: row.any_text("shown"),
            expires_at: row.time("expires_at")?,
        })
    } else {
        used_quota(query, row)?
    };
    let recipient = row.text("email")?;
    Ok(subject.map(|subject| DueNotice {
        application,
        recipient,
        subject,
    }))
}

/// The use of a window's quota. `None` if the use is below the notice's percentage, or if the window is no longer in
/// force, for example a month with an earlier anchor. If the application's own limits are unreadable, they are ignored.
fn used_quota(query: &NoticeQuery, row: &SqlRow<'_>) -> RowResult<Option<NoticeSubject>> {
    let tier = row.text("tier")?;
    let own = OwnLimits::from_text(&row.text("own_limits")?).unwrap_or_default();
    let kind = row.text("kind")?;
    let starts = row.text("starts")?;
    let limits = query.tiers.iter().find(|known| *known.name == tier);
    let limits = limits.map(|known| own.over(known.limits));
    let limit = limits.and_then(|limits| {
        limits.calendar_on(query.now.day()).find(|limit| {
            let window = limit.window;
            window.rule.name() == kind && window.start.to_string() == starts
        })
    });
    let Some(limit) = limit else {
        return Ok(None);
    };
    let used = row.number("used")?;
    let least = percent(query.kind) * u64::from(limit.quota);
    let is_used = used * 100 >= least || row.flag("is_refused")?;
    if !is_used || row.number("granted")? * 100 < least {
        return Ok(None);
    }
    let scope = row.text("scope")?;
    Ok(Some(NoticeSubject::Quota { used, limit, scope }))
}

/// Queues a notice about an application if its owner wants it.
pub async fn tell(
    tables: Tables<'_>,
    application: &str,
    OwnerNotice { mail, tiers }: &OwnerNotice,
) -> Done<()> {
    let owner = wanted(
        tables,
        mail.kind,
        (APPLICATION, &[Text(application)]),
        tiers,
        |row: &SqlRow<'_>| row.text("email").map(Some),
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

async fn wanted<R>(
    tables: Tables<'_>,
    kind: MailKind,
    ([columns, joined, condition], values): ([&str; 3], &[SqlField<'_>]),
    tiers: &[NoticeTier],
    read: impl Fn(&SqlRow<'_>) -> RowResult<Option<R>>,
) -> Done<Vec<R>> {
    let mut all = vec![Text(kind.word())];
    let mut rows = vec!["('', '')".to_owned()];
    let mut quotas = vec!["('', '', 0)".to_owned()];
    all.extend_from_slice(values);
    for tier in tiers {
        all.push(Text(&tier.name));
        let name = format!("${}", all.len());
        rows.push(format!("({name}, '{}')", notice_words(&tier.defaults)));
        for CalendarQuota { window, quota } in tier.limits.calendar_on(Day::default()) {
            quotas.push(format!("({name}, '{}', {quota})", window.rule.name()));
        }
    }
    let parts = [
        ("columns", columns),
        ("joined", joined),
        ("condition", condition),
        ("tiers", &rows.join(", ")),
        ("quotas", &quotas.join(", ")),
    ];
    let statement = parts
        .into_iter()
        .chain([("is_charged", IS_CHARGED)])
        .fold(WANTED.to_owned(), |text, (name, part)| {
            text.replace(&format!("{{{name}}}"), part)
        });
    tables.list(&statement, &all, read).await
}

/// Queues each email and its webhook messages, unless its message id was queued before.
pub async fn queue_once(tables: Tables<'_>, mails: &[NewMail]) -> Done<()> {
    for mail in mails {
        let id = mail.message_id.split('@').next().unwrap_or_default();
        if tables.run(ADD, &[Text(id), Time(mail.created_at)]).await? > 0 {
            tables.queue_mail(std::slice::from_ref(mail)).await?;
            webhooks::queue(tables, mail, id).await?;
        }
    }
    Ok(())
}
