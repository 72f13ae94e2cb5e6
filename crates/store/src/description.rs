//! The description of an application: optional texts. No limit, price or right depends on them.
//!
//! Tables, exports, lists and the audit trail take the columns from this file. A new column also needs a schema step.

use std::convert::Infallible;

use serde::{Deserialize, Serialize};

use scoregate_base::keys::{BadText, check_text, check_website};

/// The description of an application.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// The website, checked by `check_website`.
    pub url: Option<String>,
    /// How to contact the owner.
    pub contact: Option<String>,
    /// A remark.
    pub note: Option<String>,
}

impl Description {
    /// The names of the columns: in tables, exports, JSON and forms.
    pub const NAMES: [&str; 3] = ["url", "contact", "note"];

    /// Reads the columns in the order of their names.
    pub fn try_from_fn<E>(
        mut read: impl FnMut(&'static str) -> Result<Option<String>, E>,
    ) -> Result<Self, E> {
        let [url, contact, note] = Self::NAMES;
        Ok(Self {
            url: read(url)?,
            contact: read(contact)?,
            note: read(note)?,
        })
    }

    /// Like [`Self::try_from_fn`], with a function that cannot fail.
    pub fn from_fn(mut read: impl FnMut(&'static str) -> Option<String>) -> Self {
        let Ok(description) = Self::try_from_fn(|name| Ok::<_, Infallible>(read(name)));
        description
    }

    /// The columns with their names.
    pub fn columns(&self) -> impl Iterator<Item = (&'static str, &Option<String>)> {
        let Self { url, contact, note } = self;
        Self::NAMES.into_iter().zip([url, contact, note])
    }

    /// Checks every text.
    pub fn check(&self) -> Result<(), BadText> {
        self.columns()
            .try_for_each(|(name, text)| match (name, text) {
                ("url", Some(url)) => check_website(url).map_err(|bad| BadText::Website(name, bad)),
                (_, text) => check_text(name, text.as_deref()),
            })
    }

    /// The columns as a list for a statement. `item` writes each column, given its index and name.
    pub(crate) fn sql_list(item: impl Fn(usize, &str) -> String) -> String {
        Self::NAMES
            .iter()
            .enumerate()
            .map(|(index, name)| item(index, name))
            .collect::<Vec<_>>()
            .join(", ")
    }
}
