//! Rows of calendar windows longer than a day: the part of an exchange that creates, locks and writes them.
//! `window_rows` decides which units count towards them.

use crate::{
    LedgerReport,
    statements::{
        Done, SchemaClient,
        SqlField::{self, Numbers, Texts},
        SqlRow,
    },
    window_rows::{WindowKey, WindowRows},
};
use scoregate_base::{
    clock::Day,
    limits::{CalendarQuota, Scope},
};

/// Creates missing rows of the windows that reports name. Their units are counted after the days are locked.
const OPEN: &str = "
INSERT INTO {schema}.ledger_windows (scope, kind, starts, ends)
SELECT DISTINCT s.scope, r.kind, r.starts, r.ends
FROM unnest($1::text[], $2::text[], $3::text[]::date[], $4::text[]::date[], $5::int8[])
    AS r (application, kind, starts, ends, of_owner)
JOIN {schema}.applications a ON a.id = r.application
LEFT JOIN {schema}.owned_applications o ON o.application = a.id
CROSS JOIN LATERAL (SELECT CASE WHEN r.of_owner = 1 THEN o.owner ELSE a.id END AS scope) s
WHERE s.scope IS NOT NULL
ORDER BY 1, 2, 3, 4
ON CONFLICT DO NOTHING";

/// Locks all windows that contain the days of the reports, including windows that no limit needs now. A row is returned
/// as it is after it has been locked.
const LOCK: &str = "
SELECT w.scope, w.kind, w.starts::text AS starts, w.ends::text AS ends, w.granted
FROM unnest($1::text[]::date[], $2::text[]) AS r (day, application)
LEFT JOIN {schema}.owned_applications o ON o.application = r.application
JOIN {schema}.ledger_windows w ON w.scope IN (r.application, o.owner) AND w.starts <= r.day AND w.ends > r.day
ORDER BY w.scope, w.kind, w.starts, w.ends FOR UPDATE OF w";

/// The units of new windows, computed from their days. A day that was closed after a restore has no actual total and is
/// left out.
const COUNT: &str = "
SELECT r.position, coalesce(sum(d.granted), 0)::int8 AS granted
FROM unnest($1::text[], $2::text[], $3::text[]::date[], $4::text[]::date[]) WITH ORDINALITY
    AS r (scope, kind, starts, ends, position)
LEFT JOIN LATERAL (
    SELECT l.granted FROM generate_series(r.starts, r.ends - 1, interval '1 day') AS g (day)
    CROSS JOIN (SELECT r.scope AS id
                UNION ALL SELECT application FROM {schema}.owned_applications WHERE owner = r.scope) a
    JOIN {schema}.ledger_days l ON (l.day, l.application) = (g.day::date, a.id) AND l.granted < 4294967295
) d ON true
GROUP BY r.position ORDER BY r.position";

const WRITE: &str = "
UPDATE {schema}.ledger_windows w SET granted = r.granted
FROM unnest($1::text[], $2::text[], $3::text[]::date[], $4::text[]::date[], $5::int8[])
    AS r (scope, kind, starts, ends, granted)
WHERE (w.scope, w.kind, w.starts, w.ends) = (r.scope, r.kind, r.starts, r.ends)";

/// The row keys, column by column.
#[derive(Default)]
struct KeyColumns([Vec<String>; 4]);

/// The locked rows, and the keys of rows whose units are not counted yet.
pub struct LockedWindows {
    counted: WindowRows,
    new: Vec<WindowKey>,
}

impl KeyColumns {
    fn push(&mut self, texts: [String; 4]) {
        for (column, text) in self.0.iter_mut().zip(texts) {
            column.push(text);
        }
    }

    fn values(&self) -> Vec<SqlField<'_>> {
        self.0.iter().map(|column| Texts(column)).collect()
    }
}

/// Locks the windows that contain the days of the reports. `keys` are the days and applications of the reports.
pub async fn lock(
    client: SchemaClient<'_>,
    reports: &[LedgerReport],
    keys: &[SqlField<'_>],
) -> Done<LockedWindows> {
    let mut named = KeyColumns::default();
    let mut of_owner = Vec::new();
    for report in reports {
        for CalendarQuota { window, .. } in &report.windows {
            named.push([
                report.application.to_string(),
                window.rule.name().into(),
                window.start.to_string(),
                window.end.to_string(),
            ]);
            of_owner.push(i64::from(window.rule.row().scope == Scope::Owner));
        }
    }
    let mut open = named.values();
    open.push(Numbers(&of_owner));
    let opening = async {
        if !of_owner.is_empty() {
            client.query(OPEN, &open).await?;
        }
        Ok(())
    };
    // Polled together, so that both statements are sent before the first answer arrives.
    let (opened, locked) = tokio::join!(opening, client.query(LOCK, keys));
    opened.and_then(|()| {
        let mut windows = LockedWindows {
            counted: WindowRows::default(),
            new: Vec::new(),
        };
        for row in locked? {
            windows.add(&SqlRow::new(&row))?;
        }
        Ok(windows)
    })
}

fn texts(key: &WindowKey) -> [String; 4] {
    [
        key.scope.clone(),
        key.kind.clone(),
        key.start.to_string(),
        key.end.to_string(),
    ]
}

/// Counts the units of the new rows.
pub async fn count_new(client: SchemaClient<'_>, locked: LockedWindows) -> Done<WindowRows> {
    let LockedWindows { mut counted, new } = locked;
    if new.is_empty() {
        return Ok(counted);
    }
    let mut keys = KeyColumns::default();
    for key in &new {
        keys.push(texts(key));
    }
    let sums = client.query(COUNT, &keys.values()).await?;
    for (key, sum) in new.into_iter().zip(sums) {
        counted.insert(key, SqlRow::new(&sum).number("granted")?, true);
    }
    Ok(counted)
}

/// Writes the changed rows.
pub async fn write(client: SchemaClient<'_>, rows: &WindowRows) -> Done<()> {
    let mut keys = KeyColumns::default();
    let mut units = Vec::new();
    for (key, granted) in rows.changed() {
        keys.push(texts(key));
        units.push(granted.cast_signed());
    }
    if units.is_empty() {
        return Ok(());
    }
    let mut values = keys.values();
    values.push(Numbers(&units));
    client.execute(WRITE, &values).await.map(drop)
}

impl LockedWindows {
    fn add(&mut self, row: &SqlRow<'_>) -> Done<()> {
        let key = WindowKey {
            scope: row.text("scope")?,
            kind: row.text("kind")?,
            start: Day::parse(&row.text("starts")?).unwrap_or_default(),
            end: Day::parse(&row.text("ends")?).unwrap_or_default(),
        };
        match row.optional_number("granted")? {
            Some(granted) => self.counted.insert(key, granted, false),
            // Two reports of one transaction may belong to the same window.
            None if self.new.contains(&key) => {}
            None => self.new.push(key),
        }
        Ok(())
    }
}
