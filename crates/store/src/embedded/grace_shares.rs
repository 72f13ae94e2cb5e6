//! Shares of a day's grace, by the rules of `limits::GraceClaim`. With the store in a file a day has one share.

use rusqlite::{Connection, params};

use super::fault::StoreFault;
use super::ledger;
use super::statements::run;
use crate::HeldGraceShare;
use scoregate_base::clock::Day;
use scoregate_base::limits::{GraceClaim, GraceHolder, GraceShare};

/// Applies a claim.
pub(super) fn claim(connection: &Connection, claim: &GraceClaim) -> Result<Option<GraceShare>, StoreFault> {
    let day = ledger::written(claim.day)?;
    let mut select = connection
        .prepare_cached("SELECT share, shares, token, life, node FROM grace_shares WHERE day = ?1")?;
    let row = |row: &rusqlite::Row<'_>| {
        let share = GraceShare { number: row.get(0)?, shares: row.get(1)? };
        let [token, node] = [row.get::<_, i64>(2)?, row.get(4)?].map(i64::cast_unsigned);
        Ok(GraceHolder { share, token, life: row.get(3)?, node })
    };
    let holders: Vec<GraceHolder> = select.query_map([&day], row)?.collect::<Result<_, _>>()?;
    let Some(applied) = claim.applied_to(&holders) else { return Ok(None) };
    if !holders.contains(&applied) {
        let GraceHolder { share, token, life, node } = applied;
        run(
            connection,
            "INSERT OR REPLACE INTO grace_shares (day, share, shares, token, life, node) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![day, share.number, share.shares, token.cast_signed(), life, node.cast_signed()],
        )?;
        // Only open days matter.
        let oldest = Day::from_number(claim.day.number().saturating_sub(2)).to_string();
        run(connection, "DELETE FROM grace_shares WHERE day < ?1", [oldest])?;
    }
    Ok(Some(applied.share))
}

/// Returns a share.
pub(super) fn give_back(connection: &Connection, share: &HeldGraceShare) -> Result<(), StoreFault> {
    let held = params![ledger::written(share.day)?, share.token.cast_signed(), share.life];
    run(connection, "DELETE FROM grace_shares WHERE day = ?1 AND token = ?2 AND life = ?3", held).map(drop)
}

/// Gives the grace of a day to nobody: it may have been used with a store that this one replaces.
pub(super) fn withhold(connection: &Connection, day: Day) -> Result<(), StoreFault> {
    connection.execute("DELETE FROM grace_shares WHERE day = ?1", [day.to_string()])?;
    connection.execute("INSERT INTO grace_shares VALUES (?1, 0, 1, 0, 0, 0)", [day.to_string()])?;
    Ok(())
}
