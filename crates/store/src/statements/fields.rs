//! Values and parts of statements.

use scoregate_base::{clock::Wall, keys::Digest};

/// Joins applications with their keys and the units of day `$1`. All three tables are ordered by application, so each
/// lookup starts near the previous row.
pub const KEYS_AND_UNITS: &str = "
LEFT JOIN {schema}.keys k ON k.application = a.id
LEFT JOIN {schema}.ledger_days l ON l.day = $1::text::date AND l.application = a.id";

/// A parameter of a statement. Only a database supports lists.
#[derive(Clone, Copy, Debug)]
pub enum SqlField<'v> {
    Text(&'v str),
    OptionalText(Option<&'v str>),
    Number(i64),
    OptionalNumber(Option<i64>),
    Time(Wall),
    OptionalTime(Option<Wall>),
    Digest(&'v Digest),
    Bytes(&'v [u8]),
    Flag(bool),
    Texts(&'v [String]),
    OptionalTexts(&'v [Option<String>]),
    Numbers(&'v [i64]),
}
