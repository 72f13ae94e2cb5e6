//! Queries that return several rows.

use rusqlite::{Connection, Params, Row};

use super::Trouble;

/// Passes each row of a query to `each` until it returns `false`.
pub fn each(
    file: &Connection,
    sql: &str,
    params: impl Params,
    mut each: impl FnMut(&Row<'_>) -> Result<bool, Trouble>,
) -> Result<(), Trouble> {
    let mut query = file.prepare_cached(sql)?;
    let mut found = query.query(params)?;
    while let Some(row) = found.next()?
        && each(row)?
    {}
    Ok(())
}

/// Reads all rows of a query.
pub fn all<T>(
    file: &Connection,
    sql: &str,
    params: impl Params,
    mut read: impl FnMut(&Row<'_>) -> Result<T, Trouble>,
) -> Result<Vec<T>, Trouble> {
    let mut found = Vec::new();
    each(file, sql, params, |row| {
        found.push(read(row)?);
        Ok(true)
    })?;
    Ok(found)
}
