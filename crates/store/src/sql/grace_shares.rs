//! Shares of a day's grace, according to the rules of `limits::GraceClaim`. Claims that change a row are serialized with each other and with all audited changes.

use crate::{
    HeldGraceShare,
    nodes::LIVE,
    statements::{
        Done,
        SqlField::{Number, Text},
        SqlRow, Tables,
    },
};
use scoregate_base::{
    clock::Day,
    limits::{GraceClaim, GraceHolder, GraceShare},
};

const HOLDERS: &str =
    "SELECT share, shares, token, life, node FROM {schema}.grace_shares WHERE day = $1::text::date";
const STORE: &str = "
INSERT INTO {schema}.grace_shares (day, share, shares, token, life, node) VALUES ($1::text::date, $2, $3, $4, $5, $6)
ON CONFLICT (day, share) DO UPDATE SET token = excluded.token, life = excluded.life, node = excluded.node";
/// Only open days matter.
const DELETE: &str = "DELETE FROM {schema}.grace_shares WHERE day < $1::text::date";
const GIVE_BACK: &str =
    "DELETE FROM {schema}.grace_shares WHERE day = $1::text::date AND token = $2 AND life = $3";

const OTHER_HOLDERS: &str = "
SELECT node FROM {schema}.grace_shares JOIN {schema}.nodes USING (node)
WHERE day = $1::text::date AND node <> $2 AND last_seen_at > extract(epoch FROM clock_timestamp()) * 1000 - $3::int8";

/// Whether another gateway that was seen recently holds a share. Only a database can be shared by several gateways.
pub async fn others_hold(tables: Tables<'_>, day: Day, node: u64) -> Done<bool> {
    if let Tables::File(_) = tables {
        return Ok(false);
    }
    let day = day.to_string();
    let live = i64::try_from(LIVE.as_millis()).unwrap_or(i64::MAX);
    let values = [Text(&day), Number(node.cast_signed()), Number(live)];
    let others = tables.list(OTHER_HOLDERS, &values, |_| Ok(Some(())));
    Ok(!others.await?.is_empty())
}

/// Applies a claim in a transaction.
pub async fn claim(tables: Tables<'_>, claim: &GraceClaim) -> Done<Option<GraceShare>> {
    // Most claims change nothing, so they do not wait for other changes or for a standby.
    let (mut applied, mut is_change) = applied(tables, claim).await?;
    if is_change {
        tables.lock().await?;
        (applied, is_change) = self::applied(tables, claim).await?;
    }
    if let Some(GraceHolder {
        share,
        token,
        life,
        node,
    }) = applied
        && let true = is_change
    {
        let [number, shares, life] =
            [share.number, share.shares, life].map(|number| Number(number.into()));
        let [token, node] = [token, node].map(|number| Number(number.cast_signed()));
        let day = claim.day.to_string();
        tables
            .run(STORE, &[Text(&day), number, shares, token, life, node])
            .await?;
        // A claim for a future day must not delete shares of the current day.
        if let Some(today) = tables.today().await? {
            let two_before = Day::from_number(claim.day.number().saturating_sub(2));
            tables
                .run(DELETE, &[Text(&today.min(two_before).to_string())])
                .await?;
        }
    }
    Ok(applied.map(|applied| applied.share))
}

/// The holder according to a claim, and whether it differs from the stored holder.
async fn applied(tables: Tables<'_>, claim: &GraceClaim) -> Done<(Option<GraceHolder>, bool)> {
    let holders = tables
        .list(
            HOLDERS,
            &[Text(&claim.day.to_string())],
            |row: &SqlRow<'_>| {
                let share = GraceShare {
                    number: row.small_number("share")?,
                    shares: row.small_number("shares")?,
                };
                let [token, node] =
                    [row.signed("token")?, row.signed("node")?].map(i64::cast_unsigned);
                Ok(Some(GraceHolder {
                    share,
                    token,
                    life: row.small_number("life")?,
                    node,
                }))
            },
        )
        .await?;
    let applied = claim.applied_to(&holders);
    let is_change = applied
        .as_ref()
        .is_some_and(|applied| !holders.contains(applied));
    Ok((applied, is_change))
}

/// Returns a share.
pub async fn give_back(tables: Tables<'_>, share: &HeldGraceShare) -> Done<()> {
    let day = share.day.to_string();
    let token = share.token.cast_signed();
    let life = share.life.into();
    tables
        .run(GIVE_BACK, &[Text(&day), Number(token), Number(life)])
        .await
        .map(drop)
}
