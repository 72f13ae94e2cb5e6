//! The current day of a restored store, whose grants since the backup are unknown.

use crate::statements::{Done, SqlField::Text, SqlRow, Tables};
use scoregate_base::{
    clock::Day,
    limits::{LimitSetting, OwnLimits},
    plans::Tier,
};

const CLOSE: &str = "
INSERT INTO {schema}.ledger_days (day, application, granted)
SELECT $1::text::date, id, 4294967295 FROM {schema}.applications WHERE true
ON CONFLICT (day, application) DO UPDATE SET granted = excluded.granted";
const GRANTED: &str = "
SELECT a.tier, coalesce(a.own_limits, '') AS own_limits, l.granted FROM {schema}.applications a
LEFT JOIN {schema}.ledger_days l ON l.application = a.id AND l.day = $1::text::date";

/// Closes a day: marks the quota of every application as used up.
pub async fn close(tables: Tables<'_>, day: Day) -> Done<()> {
    let day = day.to_string();
    tables.run(CLOSE, &[Text(&day)]).await.map(drop)
}

/// The units of a day that are not granted yet; `None` if a tier is unknown.
pub async fn remaining(tables: Tables<'_>, day: Day, tiers: &[Tier]) -> Done<Option<u64>> {
    let units = tables
        .list(GRANTED, &[Text(&day.to_string())], |row: &SqlRow<'_>| {
            let tier = row.text("tier")?;
            let of_tier = tiers.iter().find(|found| found.name == tier);
            let of_tier = of_tier.map(|found| found.limits.day.into());
            let own = OwnLimits::from_text(&row.any_text("own_limits")).unwrap_or_default();
            let own = own.get(LimitSetting::Day).map(u64::from);
            let quota: Option<u64> = own.or(of_tier);
            let granted = row.optional_number("granted")?.unwrap_or(0);
            Ok(Some(quota.map(|quota| quota.saturating_sub(granted))))
        })
        .await?;
    Ok(units.into_iter().sum())
}
