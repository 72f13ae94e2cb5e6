//! What is said of a field: its name, what it holds, and when it is there.
//!
//! Not for: which fields there are (`shapes`, `bodies`).

/// A field of an item.
#[derive(Debug)]
pub struct ItemField {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub shape: FieldShape,
    /// When it is there.
    pub presence: Presence,
    /// Whether only paid keys see it: it is then absent from a Free key's answer.
    pub paid_only: bool,
    /// What it means.
    pub meaning: &'static str,
}

/// When a field is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Always, with a value.
    Always,
    /// Always; `null` stands for no value. Only in what the gateway writes itself.
    Nullable,
    /// Where it has a value: otherwise it is left out, since a client reads `null` as zero. A foreign backend may send
    /// `null`.
    IfKnown,
    /// As [`Presence::IfKnown`], and only in the answer to some parameters.
    IfAsked,
}

/// What a field holds.
#[derive(Debug)]
pub enum FieldShape {
    /// Any text.
    Text,
    /// An RFC 3339 instant in UTC.
    Instant,
    /// A number.
    Number,
    /// A score from 0 to 100; a foreign backend may send the text `unavailable`.
    Score,
    /// A whole number.
    Integer,
    /// True or false.
    Flag,
    /// One of these words.
    Words(&'static [&'static str]),
    /// An object of these fields.
    Object(&'static [ItemField]),
    /// A list of objects of these fields.
    Objects(&'static [ItemField]),
    /// A list of texts.
    Texts,
    /// The values of a parameter: a list of texts, or an object of JSON Schema's keywords.
    Values,
}

pub(super) const fn field(name: &'static str, shape: FieldShape, meaning: &'static str) -> ItemField {
    ItemField { name, shape, presence: Presence::Always, paid_only: false, meaning }
}

pub(super) const fn nullable(name: &'static str, shape: FieldShape, meaning: &'static str) -> ItemField {
    ItemField { name, shape, presence: Presence::Nullable, paid_only: false, meaning }
}

pub(super) const fn maybe(name: &'static str, shape: FieldShape, meaning: &'static str) -> ItemField {
    ItemField { name, shape, presence: Presence::IfKnown, paid_only: false, meaning }
}

pub(super) const fn asked(name: &'static str, shape: FieldShape, meaning: &'static str) -> ItemField {
    ItemField { name, shape, presence: Presence::IfAsked, paid_only: false, meaning }
}

pub(super) const fn paid(name: &'static str, shape: FieldShape, meaning: &'static str) -> ItemField {
    ItemField { name, shape, presence: Presence::IfKnown, paid_only: true, meaning }
}

impl Presence {
    /// Whether `null` may stand in its place.
    pub const fn allows_null(self) -> bool {
        !matches!(self, Self::Always)
    }

    /// Whether an item of the built-in backend may be without it.
    pub const fn may_be_absent(self) -> bool {
        matches!(self, Self::IfKnown | Self::IfAsked)
    }
}
