//! Values and parts of statements.

use scoregate_base::clock::Wall;
use scoregate_base::keys::Digest;

/// Joins keys and the units of the day `$1` to applications. All three tables have the order of applications, so a search
/// for a row begins near the one before.
pub(crate) const KEYS_AND_UNITS: &str = "
LEFT JOIN {schema}.keys k ON k.application = a.id
LEFT JOIN {schema}.ledger_days l ON l.day = $1::text::date AND l.application = a.id";

/// A value of a statement. Only a database has lists.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SqlField<'v> {
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
