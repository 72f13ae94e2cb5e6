//! Shares of a day's grace, by the rules of `limits::GraceClaim`. Claims exclude each other by a lock of their transactions.

use tokio_postgres::types::Type;
use tokio_postgres::{Client, Row};

use super::connection::{Parameter, SchemaName};
use crate::limits::{GraceClaim, GraceHolder, GraceShare};
use crate::store::HeldGraceShare;

/// The statements, with the schema's name.
pub(super) struct GraceStatements {
    lock_name: String,
    holders: String,
    store: String,
    delete: String,
    give_back: String,
}

const LOCK: &str = "SELECT pg_advisory_xact_lock(hashtext($1))";

const HOLDERS: &str =
    "SELECT share, shares, token, life, node FROM {schema}.grace_shares WHERE day = $1::text::date";

const STORE: &str = "
INSERT INTO {schema}.grace_shares (day, share, shares, token, life, node) VALUES ($1::text::date, $2, $3, $4, $5, $6)
ON CONFLICT (day, share) DO UPDATE SET token = excluded.token, life = excluded.life, node = excluded.node";

/// Shares of days that are closed.
const DELETE: &str = "DELETE FROM {schema}.grace_shares WHERE day < (SELECT day FROM {schema}.calendar)";

const GIVE_BACK: &str =
    "DELETE FROM {schema}.grace_shares WHERE day = $1::text::date AND token = $2 AND life = $3";

impl GraceStatements {
    pub(super) fn new(schema: &SchemaName) -> Self {
        let [holders, store, delete, give_back] =
            [HOLDERS, STORE, DELETE, GIVE_BACK].map(|text| schema.statement(text));
        Self { lock_name: schema.statement("{schema} grace"), holders, store, delete, give_back }
    }

    /// Applies a claim.
    pub(super) async fn claim(
        &self,
        client: &mut Client,
        claim: &GraceClaim,
    ) -> Result<Option<GraceShare>, tokio_postgres::Error> {
        let day = claim.day.to_string();
        let transaction = client.transaction().await?;
        let lock: [Parameter<'_>; 1] = [(&self.lock_name, Type::TEXT)];
        transaction.query_typed(LOCK, &lock).await?;
        let of_day: [Parameter<'_>; 1] = [(&day, Type::TEXT)];
        let rows = transaction.query_typed(&self.holders, &of_day).await?;
        let holders: Vec<GraceHolder> = rows.iter().map(holder).collect::<Result<_, _>>()?;
        let Some(applied) = claim.applied_to(&holders) else { return Ok(None) };
        if !holders.contains(&applied) {
            let GraceHolder { share, token, life, node } = applied;
            let numbers = [
                share.number.into(),
                share.shares.into(),
                token.cast_signed(),
                life.into(),
                node.cast_signed(),
            ];
            let [number, shares, token, life, node] = &numbers;
            let row: [Parameter<'_>; 6] = [
                (&day, Type::TEXT),
                (number, Type::INT8),
                (shares, Type::INT8),
                (token, Type::INT8),
                (life, Type::INT8),
                (node, Type::INT8),
            ];
            transaction.execute_typed(&self.store, &row).await?;
            transaction.execute_typed(&self.delete, &[]).await?;
        }
        transaction.commit().await?;
        Ok(Some(applied.share))
    }

    /// Returns a share.
    pub(super) async fn give_back(
        &self,
        client: &Client,
        share: &HeldGraceShare,
    ) -> Result<(), tokio_postgres::Error> {
        let (day, token, life) = (share.day.to_string(), share.token.cast_signed(), i64::from(share.life));
        let row: [Parameter<'_>; 3] = [(&day, Type::TEXT), (&token, Type::INT8), (&life, Type::INT8)];
        client.execute_typed(&self.give_back, &row).await.map(drop)
    }
}

fn holder(row: &Row) -> Result<GraceHolder, tokio_postgres::Error> {
    let number = |column: usize| -> Result<u32, tokio_postgres::Error> {
        Ok(u32::try_from(row.try_get::<_, i64>(column)?).unwrap_or(u32::MAX))
    };
    let share = GraceShare { number: number(0)?, shares: number(1)? };
    let (token, node): (i64, i64) = (row.try_get(2)?, row.try_get(4)?);
    Ok(GraceHolder { share, token: token.cast_unsigned(), life: number(3)?, node: node.cast_unsigned() })
}
