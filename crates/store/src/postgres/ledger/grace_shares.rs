//! Shares of a day's grace, by the rules of `limits::GraceClaim`. Claims exclude each other, and changes, by the row of `site`.

use tokio_postgres::Row;

use crate::postgres::connection::schema_client::{SchemaClient, SqlResult};
use crate::sql::tables::{SqlRow as _, SqlTables as _};
use scoregate_base::limits::{GraceClaim, GraceHolder, GraceShare};

const HOLDERS: &str =
    "SELECT share, shares, token, life, node FROM {schema}.grace_shares WHERE day = $1::text::date";

const STORE: &str = "
INSERT INTO {schema}.grace_shares (day, share, shares, token, life, node) VALUES ($1::text::date, $2, $3, $4, $5, $6)
ON CONFLICT (day, share) DO UPDATE SET token = excluded.token, life = excluded.life, node = excluded.node";

/// Shares of days that are closed.
const DELETE: &str = "DELETE FROM {schema}.grace_shares WHERE day < (SELECT day FROM {schema}.calendar)";

/// Applies a claim in a transaction.
pub(crate) async fn claim(client: SchemaClient<'_>, claim: &GraceClaim) -> SqlResult<Option<GraceShare>> {
    // Most claims change nothing: they wait neither for changes nor for a standby.
    let (applied, is_change) = applied(client, claim).await?;
    if !is_change {
        return Ok(applied.map(|applied| applied.share));
    }
    client.lock().await?;
    let (applied, is_change) = self::applied(client, claim).await?;
    if let (Some(GraceHolder { share, token, life, node }), true) = (applied, is_change) {
        let [number, shares, life] = [share.number, share.shares, life].map(i64::from);
        let [token, node] = [token, node].map(u64::cast_signed);
        let day = claim.day.to_string();
        client.execute(STORE, &[&day, &number, &shares, &token, &life, &node]).await?;
        client.execute(DELETE, &[]).await?;
    }
    Ok(applied.map(|applied| applied.share))
}

/// The holder by a claim, and whether it differs from what is stored.
async fn applied(client: SchemaClient<'_>, claim: &GraceClaim) -> SqlResult<(Option<GraceHolder>, bool)> {
    let rows = client.query(HOLDERS, &[&claim.day.to_string()]).await?;
    let holders: Vec<GraceHolder> = rows.iter().map(holder).collect::<Result<_, _>>()?;
    let applied = claim.applied_to(&holders);
    let is_change = applied.as_ref().is_some_and(|applied| !holders.contains(applied));
    Ok((applied, is_change))
}

fn holder(row: &Row) -> SqlResult<GraceHolder> {
    let share = GraceShare { number: row.small_number("share")?, shares: row.small_number("shares")? };
    let [token, node] = [row.try_get::<_, i64>("token")?, row.try_get("node")?].map(i64::cast_unsigned);
    Ok(GraceHolder { share, token, life: row.small_number("life")?, node })
}
