//! Rows of both engines, whose values are read by column name.
//!
//! Anyone with `sqlite3` or `psql` can write values that this program would never write. Such a value is a
//! [`BadRecord`], so that one mistake affects one record and not the whole gateway.

use std::cell::Cell;

use scoregate_base::{clock::Wall, keys::Digest};

/// Why a record cannot be read.
#[derive(Debug)]
pub struct BadRecord(pub String);

/// The result of reading a row.
pub type RowResult<T> = Result<T, BadRecord>;

/// A value as an engine returns it.
#[derive(Debug)]
pub enum SqlValue<'r> {
    Null,
    /// Booleans too, as 0 or 1.
    Number(i64),
    /// A string. In a file, it may contain any bytes.
    Text(&'r [u8]),
    Bytes(&'r [u8]),
    /// A value of a type that no table uses.
    Other,
}

/// A row as an engine returns it.
pub trait EngineRow {
    fn column_count(&self) -> usize;

    fn column_name(&self, column: usize) -> &str;

    fn value(&self, column: usize) -> SqlValue<'_>;
}

/// A row whose values are read by column name.
pub struct SqlRow<'r> {
    row: &'r dyn EngineRow,
    /// The column after the one that was read last. The search starts there, so reading the columns in the order of the
    /// statement costs one comparison for each. A million rows may be read at startup.
    next: Cell<usize>,
}

impl<'r> SqlRow<'r> {
    pub fn new(row: &'r dyn EngineRow) -> Self {
        let next = Cell::new(0);
        Self { row, next }
    }

    pub fn text(&self, column: &str) -> RowResult<String> {
        required(column, self.optional_text(column)?)
    }

    pub fn optional_text(&self, column: &str) -> RowResult<Option<String>> {
        match self.value(column) {
            SqlValue::Null => Ok(None),
            SqlValue::Text(text) => match std::str::from_utf8(text) {
                Ok(text) => Ok(Some(text.into())),
                Err(error) => Err(unreadable(column, &error)),
            },
            SqlValue::Number(_) | SqlValue::Bytes(_) | SqlValue::Other => {
                Err(unreadable(column, &"it is not a text"))
            }
        }
    }

    /// A string, with invalid bytes replaced.
    pub fn any_text(&self, column: &str) -> String {
        match self.value(column) {
            SqlValue::Text(text) | SqlValue::Bytes(text) => {
                String::from_utf8_lossy(text).into_owned()
            }
            SqlValue::Null | SqlValue::Number(_) | SqlValue::Other => String::new(),
        }
    }

    pub fn bytes(&self, column: &str) -> RowResult<Vec<u8>> {
        required(column, self.optional_bytes(column)?).map(<[u8]>::to_vec)
    }

    pub fn optional_digest(&self, column: &str) -> RowResult<Option<Digest>> {
        let Some(bytes) = self.optional_bytes(column)? else {
            return Ok(None);
        };
        match bytes.try_into() {
            Ok(digest) => Ok(Some(Digest::from_bytes(digest))),
            Err(_) => Err(unreadable(column, &"it does not have 32 bytes")),
        }
    }

    pub fn flag(&self, column: &str) -> RowResult<bool> {
        Ok(self.signed(column)? != 0)
    }

    pub fn signed(&self, column: &str) -> RowResult<i64> {
        required(column, self.optional_signed(column)?)
    }

    pub fn optional_signed(&self, column: &str) -> RowResult<Option<i64>> {
        match self.value(column) {
            SqlValue::Null => Ok(None),
            SqlValue::Number(number) => Ok(Some(number)),
            SqlValue::Text(_) | SqlValue::Bytes(_) | SqlValue::Other => {
                Err(BadRecord(format!("{column} is not a number")))
            }
        }
    }

    pub fn number(&self, column: &str) -> RowResult<u64> {
        required(column, self.optional_number(column)?)
    }

    /// A non-negative number.
    pub fn optional_number(&self, column: &str) -> RowResult<Option<u64>> {
        let number = self.optional_signed(column)?.map(u64::try_from).transpose();
        number.map_err(|_| BadRecord(format!("{column} is negative")))
    }

    /// A number, limited to the maximum of `u32`.
    pub fn small_number(&self, column: &str) -> RowResult<u32> {
        Ok(u32::try_from(self.number(column)?).unwrap_or(u32::MAX))
    }

    /// A limit or a number of units.
    pub fn limit(&self, column: &str) -> RowResult<Option<u32>> {
        let Some(found) = self.optional_signed(column)? else {
            return Ok(None);
        };
        u32::try_from(found).map(Some).map_err(|_| {
            BadRecord(format!(
                "{column} is {found}, which is not between 0 and {}",
                u32::MAX
            ))
        })
    }

    pub fn time(&self, column: &str) -> RowResult<Wall> {
        required(column, self.optional_time(column)?)
    }

    pub fn optional_time(&self, column: &str) -> RowResult<Option<Wall>> {
        let Some(found) = self.optional_signed(column)? else {
            return Ok(None);
        };
        let at = Wall::from_millis(found.cast_unsigned());
        if found >= 0 && at.millis() == found.cast_unsigned() {
            return Ok(Some(at));
        }
        Err(BadRecord(format!(
            "{column} is {found}, which is not a timestamp between 1970 and 2554"
        )))
    }

    fn optional_bytes(&self, column: &str) -> RowResult<Option<&'r [u8]>> {
        match self.value(column) {
            SqlValue::Null => Ok(None),
            SqlValue::Bytes(bytes) => Ok(Some(bytes)),
            SqlValue::Number(_) | SqlValue::Text(_) | SqlValue::Other => {
                Err(unreadable(column, &"it is not binary"))
            }
        }
    }

    /// The value of a column; `Null` if the statement does not return the column.
    fn value(&self, column: &str) -> SqlValue<'r> {
        let count = self.row.column_count();
        let next = self.next.get();
        let mut places = (next..count).chain(0..next);
        match places.find(|place| self.row.column_name(*place) == column) {
            Some(place) => {
                self.next.set(place + 1);
                self.row.value(place)
            }
            None => SqlValue::Null,
        }
    }
}

fn required<T>(column: &str, value: Option<T>) -> RowResult<T> {
    value.ok_or_else(|| BadRecord(format!("{column} is missing")))
}

fn unreadable(column: &str, reason: &dyn std::fmt::Display) -> BadRecord {
    BadRecord(format!("{column} cannot be read: {reason}"))
}
