//! Changes of the fields of an application.

/// A change of an optional field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FieldChange<T> {
    /// Leave it unchanged.
    #[default]
    Keep,
    /// Remove it.
    Remove,
    /// Set it.
    Set(T),
}

impl<T> FieldChange<T> {
    /// Whether the field stays unchanged.
    pub const fn is_unchanged(&self) -> bool {
        matches!(self, Self::Keep)
    }

    pub(super) fn over(self, before: Option<T>) -> Option<T> {
        match self {
            Self::Keep => before,
            Self::Remove => None,
            Self::Set(value) => Some(value),
        }
    }
}

/// A change of the description of an application.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DescriptionChange {
    /// The new name.
    pub name: Option<String>,
    /// The website.
    pub url: FieldChange<String>,
    /// How to reach the owner.
    pub contact: FieldChange<String>,
    /// A remark.
    pub note: FieldChange<String>,
}

impl DescriptionChange {
    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
