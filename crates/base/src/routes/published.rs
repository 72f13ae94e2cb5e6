//! Documented properties of a mapped data source: ignored parameters, and the listed fields of endpoints whose items
//! have its shape. Values are converted to the documented types.

use std::collections::BTreeMap;
use std::fmt;

use super::field::{FieldShape, ItemField};
use super::params::Param;
use super::table::Route;

/// Documented properties of a data source. They depend only on the configuration, so they are equal on every gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceDescription {
    /// The listed fields of endpoints whose items have the shape of the data source. Other endpoints have the fields of
    /// their row.
    pub fields: BTreeMap<Route, Vec<PublishedField>>,
    /// Parameters of an endpoint that the data source lacks: all values get the same data.
    pub ignored: BTreeMap<Route, Vec<Param>>,
}

/// A field that a mapping lists. It may be absent, and items may have other fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedField {
    /// Its name in an item.
    pub name: String,
    /// Its type.
    pub kind: PublishedKind,
}

/// The type of a listed field. A value is converted to it, or omitted if that is impossible.
#[derive(Clone)]
pub enum PublishedKind {
    /// A field of this API, with its type and meaning.
    Standard(&'static ItemField),
    /// A number or null.
    Number,
    /// A string or null.
    Text,
    /// Always this value, as JSON text.
    Constant(String),
    /// Unknown: the value is as the data source sends it.
    Any,
}

impl PublishedKind {
    /// The names of fields of this API are unique, so the word identifies the kind together with the name.
    fn word(&self) -> &str {
        match self {
            Self::Standard(_) => "standard",
            Self::Number => "number",
            Self::Text => "string",
            Self::Constant(json) => json,
            Self::Any => "any",
        }
    }
}

impl fmt::Debug for PublishedKind {
    /// Without the documentation of a field: stored documents are identified by this text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl PartialEq for PublishedKind {
    fn eq(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other) && self.word() == other.word()
    }
}

impl Eq for PublishedKind {}

impl FieldShape {
    /// Whether its values are strings.
    pub const fn is_text(&self) -> bool {
        matches!(self, Self::Text | Self::Instant | Self::Words(_))
    }

    /// Whether its values are numbers.
    pub const fn is_number(&self) -> bool {
        matches!(self, Self::Number | Self::Score | Self::Integer)
    }
}
