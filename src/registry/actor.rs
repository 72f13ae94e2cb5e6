//! The author of a change. An operator may change everything. An owner may change only their own applications.

use scoregate_base::keys::OwnerId;

/// The author of a change, for the audit trail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor<'a> {
    /// An operator or the program, with a name such as `cli:root`.
    Operator(&'a str),
    /// An owner. Changes are refused if the account is suspended. Applications of other owners are treated as unknown.
    Owner(OwnerId),
}

impl Actor<'_> {
    /// The name in the audit trail.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Operator(name) => name.to_owned(),
            Self::Owner(id) => format!("owner:{id}"),
        }
    }

    pub(crate) const fn owner(self) -> Option<OwnerId> {
        match self {
            Self::Operator(_) => None,
            Self::Owner(id) => Some(id),
        }
    }
}

impl<'a> From<&'a str> for Actor<'a> {
    fn from(name: &'a str) -> Self {
        Self::Operator(name)
    }
}

impl From<OwnerId> for Actor<'_> {
    fn from(id: OwnerId) -> Self {
        Self::Owner(id)
    }
}
