//! Statements on a connection, which are compiled once.

use rusqlite::types::{FromSql, FromSqlResult, ValueRef};
use rusqlite::{Connection, OptionalExtension as _, Params, Row};

use super::fault::{FileResult, StoreFault};

/// Runs a statement, and returns the number of changed rows.
pub(super) fn run(connection: &Connection, text: &str, values: impl Params) -> FileResult<u64> {
    Ok(connection.prepare_cached(text)?.execute(values)? as u64)
}

/// The columns of the first row as a tuple, if there is one.
pub(super) fn find<T>(
    connection: &Connection,
    text: &str,
    values: impl Params,
) -> FileResult<Option<T>>
where
    T: for<'r> TryFrom<&'r Row<'r>, Error = rusqlite::Error>,
{
    Ok(connection
        .prepare_cached(text)?
        .query_row(values, |row| T::try_from(row))
        .optional()?)
}

/// The columns of the first row; an error without one.
pub(super) fn one<T>(connection: &Connection, text: &str, values: impl Params) -> FileResult<T>
where
    T: for<'r> TryFrom<&'r Row<'r>, Error = rusqlite::Error>,
{
    Ok(find(connection, text, values)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?)
}

/// All rows as `read` returns them, without unreadable ones.
pub(super) fn readable<T>(
    connection: &Connection,
    text: &str,
    values: impl Params,
    read: impl Fn(&Row<'_>) -> FileResult<T>,
) -> FileResult<Vec<T>> {
    let mut statement = connection.prepare_cached(text)?;
    let mut rows = statement.query(values)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        match read(row) {
            Ok(value) => found.push(value),
            Err(StoreFault::Record(_)) => {}
            Err(fault) => return Err(fault),
        }
    }
    Ok(found)
}

/// A text of any bytes, as far as it can be shown.
pub(super) struct AnyText(pub(super) String);

impl FromSql for AnyText {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Ok(Self(
            String::from_utf8_lossy(value.as_bytes().unwrap_or_default()).into_owned(),
        ))
    }
}
