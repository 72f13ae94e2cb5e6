//! The description of an application: optional texts. No limit, price or right depends on them.
//!
//! Tables, exports, lists and the audit trail take its columns from here. A new column also needs a schema step.

use std::convert::Infallible;

use serde::{Deserialize, Serialize};

use scoregate_base::keys::{BadText, check_text, check_website};

/// The description of an application.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// The website; an address that `check_website` accepts.
    pub url: Option<String>,
    /// How to reach the owner.
    pub contact: Option<String>,
    /// A remark.
    pub note: Option<String>,
}

impl Description {
    /// The names of the columns: in tables, exports, JSON and forms.
    pub const NAMES: [&str; 3] = ["url", "contact", "note"];

    /// Reads each column, in the order of their names.
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

    /// The same with a function that cannot fail.
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

    /// The columns in a list of a statement, each with its index as `item` writes it.
    pub(crate) fn sql_list(item: impl Fn(usize, &str) -> String) -> String {
        Self::NAMES
            .iter()
            .enumerate()
            .map(|(index, name)| item(index, name))
            .collect::<Vec<_>>()
            .join(", ")
    }
}
