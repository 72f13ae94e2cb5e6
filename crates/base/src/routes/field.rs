//! The description of a field: name, type, and presence.

/// A field of an item.
#[derive(Debug)]
pub struct ItemField {
    /// The name.
    pub name: &'static str,
    /// The type.
    pub shape: FieldShape,
    /// The condition for its presence.
    pub presence: Presence,
    /// Whether only paid keys see the field. Responses to Free keys omit it.
    pub paid_only: bool,
    /// The meaning.
    pub meaning: &'static str,
    /// The value in examples, as JSON, if the field has a specific one.
    pub example: Option<&'static str>,
}

/// The condition under which a field is present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Always present, with a value.
    Always,
    /// Always present; `null` means no value. Used only for bodies that the gateway writes itself.
    Nullable,
    /// Present if it has a value. Otherwise it is omitted, because some clients read `null` as zero. A foreign backend
    /// may send `null`.
    IfKnown,
    /// Like [`Presence::IfKnown`], but only for some parameters.
    IfRequested,
}

/// The type of a field.
#[derive(Debug)]
pub enum FieldShape {
    /// A string.
    Text,
    /// An RFC 3339 time in UTC.
    Instant,
    /// A number.
    Number,
    /// A score from 0 to 100. A foreign backend may send the string `unavailable`.
    Score,
    /// A whole number.
    Integer,
    /// True or false.
    Flag,
    /// One of these words.
    Words(&'static [&'static str]),
    /// An object with these fields.
    Object(&'static [ItemField]),
    /// A list of objects with these fields.
    Objects(&'static [ItemField]),
    /// A list of strings.
    Texts,
}

pub const fn field(name: &'static str, shape: FieldShape, meaning: &'static str) -> ItemField {
    ItemField {
        name,
        shape,
        presence: Presence::Always,
        paid_only: false,
        meaning,
        example: None,
    }
}

pub const fn nullable(name: &'static str, shape: FieldShape, meaning: &'static str) -> ItemField {
    ItemField {
        name,
        shape,
        presence: Presence::Nullable,
        paid_only: false,
        meaning,
        example: None,
    }
}

pub const fn maybe(name: &'static str, shape: FieldShape, meaning: &'static str) -> ItemField {
    ItemField {
        name,
        shape,
        presence: Presence::IfKnown,
        paid_only: false,
        meaning,
        example: None,
    }
}

pub const fn requested(name: &'static str, shape: FieldShape, meaning: &'static str) -> ItemField {
    ItemField {
        name,
        shape,
        presence: Presence::IfRequested,
        paid_only: false,
        meaning,
        example: None,
    }
}

pub const fn paid(name: &'static str, shape: FieldShape, meaning: &'static str) -> ItemField {
    ItemField {
        name,
        shape,
        presence: Presence::IfKnown,
        paid_only: true,
        meaning,
        example: None,
    }
}

impl ItemField {
    /// Whether the field, or a field in it, is only for paid callers.
    pub fn has_paid_part(&self) -> bool {
        self.paid_only || self.shape.fields().iter().any(Self::has_paid_part)
    }
}

impl FieldShape {
    /// The fields of the objects.
    pub const fn fields(&self) -> &'static [ItemField] {
        match self {
            Self::Object(fields) | Self::Objects(fields) => fields,
            Self::Text
            | Self::Instant
            | Self::Number
            | Self::Score
            | Self::Integer
            | Self::Flag
            | Self::Words(_)
            | Self::Texts => &[],
        }
    }
}

impl Presence {
    /// Whether `null` is allowed.
    pub const fn allows_null(self) -> bool {
        !matches!(self, Self::Always)
    }

    /// Whether the built-in backend may omit the field.
    pub const fn may_be_absent(self) -> bool {
        matches!(self, Self::IfKnown | Self::IfRequested)
    }
}
