//! Changes to the fields of an application.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use scoregate_store::Description;

/// A change to an optional field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FieldChange<T> {
    /// Leave the field unchanged.
    #[default]
    Keep,
    /// Remove the value.
    Remove,
    /// Set a new value.
    Set(T),
}

impl<T> FieldChange<T> {
    pub(crate) fn over(self, before: Option<T>) -> Option<T> {
        match self {
            Self::Keep => before,
            Self::Remove => None,
            Self::Set(value) => Some(value),
        }
    }
}

/// An empty string removes the value.
impl From<&str> for FieldChange<String> {
    fn from(text: &str) -> Self {
        if text.is_empty() {
            Self::Remove
        } else {
            Self::Set(text.to_owned())
        }
    }
}

/// A removal is serialized as null.
impl<T: Serialize> Serialize for FieldChange<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Keep | Self::Remove => serializer.serialize_none(),
            Self::Set(value) => value.serialize(serializer),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for FieldChange<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(deserializer)?.map_or(Self::Remove, Self::Set))
    }
}

/// Deserializes a field that is present. Null means a removal.
pub fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<FieldChange<T>>, D::Error> {
    FieldChange::deserialize(from).map(Some)
}

/// A change to the description of an application.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DescriptionChange {
    /// The new name.
    pub name: Option<String>,
    /// The website.
    pub url: FieldChange<String>,
    /// The contact of the owner.
    pub contact: FieldChange<String>,
    /// A note.
    pub note: FieldChange<String>,
}

impl DescriptionChange {
    /// Creates a change to these columns. `change` returns the change to the column with a given name.
    pub fn of_columns(change: impl Fn(&'static str) -> FieldChange<String>) -> Self {
        let [url, contact, note] = Description::NAMES.map(change);
        Self {
            name: None,
            url,
            contact,
            note,
        }
    }

    pub(crate) fn over(self, before: Description) -> Description {
        Description {
            url: self.url.over(before.url),
            contact: self.contact.over(before.contact),
            note: self.note.over(before.note),
        }
    }
}
