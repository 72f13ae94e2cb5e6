//! Documented properties of a mapped data source: ignored parameters, and the listed fields of endpoints whose items
//! have the shape of the data source. Values are converted to the documented types.

use std::{collections::BTreeMap, fmt};

use super::{
    field::{FieldShape, ItemField},
    params::Param,
    table::Route,
};

/// Documented properties of a data source. They depend only on the configuration, so they are the same on every
/// gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceDescription {
    /// The listed fields of endpoints whose items have the shape of the data source. Other endpoints have the fields of
    /// their row.
    pub fields: BTreeMap<Route, Vec<PublishedField>>,
    /// Parameters of an endpoint that the data source does not support. The data is the same for all values.
    pub ignored: BTreeMap<Route, Vec<Param>>,
}

/// A field that a mapping lists. It may be absent, and items may have other fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedField {
    /// The name in an item.
    pub name: String,
    /// The type.
    pub kind: PublishedKind,
}

/// The type of a listed field. A value is converted to this type, or omitted if that is not possible.
#[derive(Clone)]
pub enum PublishedKind {
    /// A field of this API, with its type and meaning.
    Standard(&'static ItemField),
    /// A number or null.
    Number,
    /// A string or null.
    Text,
    /// A constant value, as JSON text.
    Constant(String),
    /// An unknown type. The value is passed through as the data source sends it.
    Any,
}

impl PublishedKind {
    /// A word for the kind. The names of fields of this API are unique, so the word and the name together identify the
    /// kind.
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
    /// The text identifies stored documents, so it does not contain the documentation of a field.
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
    /// Whether the values are strings.
    pub const fn is_text(&self) -> bool {
        matches!(self, Self::Text | Self::Instant | Self::Words(_))
    }

    /// Whether the values are numbers.
    pub const fn is_number(&self) -> bool {
        matches!(self, Self::Number | Self::Score | Self::Integer)
    }
}
