//! Statements on a file. They complete without waiting.

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use foldhash::fast::RandomState;
use futures_util::FutureExt as _;
use parking_lot::ReentrantMutex;
use rusqlite::{
    Connection, Row, ToSql, params_from_iter,
    types::{ToSqlOutput, ValueRef},
};

use super::{
    fault::Done,
    fields::{KEYS_AND_UNITS, SqlField},
    rows::{EngineRow, SqlRow, SqlValue},
};
use crate::stored::millis;

/// A connection to a file. Only one thread uses it. The mutex is needed because work that is written for both engines must be
/// `Send`.
pub type FileConnection = ReentrantMutex<Connection>;

/// Replacements for the placeholders in statements on a file, which has one data set and no clock.
const TERMS: [(&str, &str); 10] = [
    ("{position}", "instr"),
    ("{notify}", ""),
    ("{source}", "'file'"),
    ("{clock}", "NULL"),
    ("{skip_locked}", ""),
    ("{at_once}", "500"),
    ("{keys_and_units}", KEYS_AND_UNITS),
    ("{schema}.", ""),
    ("::text::date", ""),
    ("$", "?"),
];

/// Maximum number of cached translations. The program has about 300 short texts.
const KEPT: usize = 500;
/// Maximum length of a cached text in bytes. The texts of a lease have at most 400. A text with many rows is rarely
/// used twice.
const LONGEST_KEPT: usize = 1_000;

/// The result of work on a file.
pub fn done<T>(work: impl Future<Output = T>) -> T {
    work.now_or_never()
        .expect("statements on a file do not wait")
}

thread_local! {
    /// Translated statements, because a translation costs 1,300 instructions and a lease has several statements.
    static TRANSLATED: RefCell<HashMap<Box<str>, Rc<str>, RandomState>> = RefCell::default();
}

fn statement(text: &str) -> Rc<str> {
    TRANSLATED.with_borrow_mut(|known| {
        if let Some(translated) = known.get(text) {
            return Rc::clone(translated);
        }
        let translated = TERMS
            .iter()
            .fold(text.to_owned(), |text, (term, own)| text.replace(term, own));
        let translated: Rc<str> = translated.into();
        if text.len() <= LONGEST_KEPT {
            // Lists of different lengths are different texts. They must not keep others out.
            if known.len() == KEPT {
                known.clear();
            }
            known.insert(text.into(), Rc::clone(&translated));
        }
        translated
    })
}

pub fn run(file: &FileConnection, text: &str, values: &[SqlField<'_>]) -> Done<u64> {
    let connection = file.lock();
    let mut statement = connection.prepare_cached(&statement(text))?;
    Ok(statement.execute(params_from_iter(values))? as u64)
}

pub fn each(
    file: &FileConnection,
    text: &str,
    values: &[SqlField<'_>],
    mut take: impl FnMut(&SqlRow<'_>),
) -> Done<()> {
    let connection = file.lock();
    let mut statement = connection.prepare_cached(&statement(text))?;
    let names = statement.column_names();
    let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
    let mut rows = statement.query(params_from_iter(values))?;
    while let Some(row) = rows.next()? {
        let row = FileRow { row, names: &names };
        take(&SqlRow::new(&row));
    }
    Ok(())
}

/// A row and its column names, which SQLite would return one at a time.
struct FileRow<'r> {
    row: &'r Row<'r>,
    names: &'r [String],
}

impl EngineRow for FileRow<'_> {
    fn column_count(&self) -> usize {
        self.names.len()
    }

    fn column_name(&self, column: usize) -> &str {
        self.names.get(column).map_or("", String::as_str)
    }

    fn value(&self, column: usize) -> SqlValue<'_> {
        match self.row.get_ref(column) {
            Ok(ValueRef::Null) => SqlValue::Null,
            Ok(ValueRef::Integer(number)) => SqlValue::Number(number),
            Ok(ValueRef::Text(text)) => SqlValue::Text(text),
            Ok(ValueRef::Blob(bytes)) => SqlValue::Bytes(bytes),
            Ok(ValueRef::Real(_)) | Err(_) => SqlValue::Other,
        }
    }
}

impl ToSql for SqlField<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match self {
            Self::Text(text) => text.to_sql(),
            Self::OptionalText(text) => text.to_sql(),
            Self::Number(number) => number.to_sql(),
            Self::OptionalNumber(number) => number.to_sql(),
            Self::Time(at) => Ok(millis(*at).into()),
            Self::OptionalTime(at) => Ok(ToSqlOutput::Owned(at.map(millis).into())),
            Self::Digest(digest) => digest.as_bytes().to_sql(),
            Self::Bytes(bytes) => bytes.to_sql(),
            Self::Flag(flag) => flag.to_sql(),
            Self::Texts(_) | Self::OptionalTexts(_) | Self::Numbers(_) => {
                let error = "a file has no lists";
                Err(rusqlite::Error::ToSqlConversionFailure(error.into()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn translations_are_bounded_and_lists_do_not_keep_others_out() {
        for length in 0..2 * KEPT {
            let list = format!("SELECT {length} FROM {{schema}}.keys WHERE id = $1");
            let translated = format!("SELECT {length} FROM keys WHERE id = ?1");
            assert_eq!(&*statement(&list), translated);
        }
        let long = "$".repeat(LONGEST_KEPT + 1);
        for text in ["SELECT $1", "SELECT $2", &long] {
            assert_eq!(&*statement(text), text.replace('$', "?"));
        }
        TRANSLATED.with_borrow(|known| {
            assert!(known.len() <= KEPT && known.contains_key("SELECT $2"));
            assert!(!known.contains_key(&*long));
        });
    }
}
