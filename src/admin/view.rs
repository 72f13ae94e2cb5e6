//! What an operator sees of applications and keys: the JSON of the side port and of `--json`. Never a secret, but for
//! a key in the one answer that issues it.

use serde::{Deserialize, Serialize};

use crate::clock::Wall;
use crate::gateway::Issued;
use crate::store::{Page, StoredApplication, StoredKey};

/// An application.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields' names are the JSON's, documented in README and `keys --help`")]
pub struct ApplicationView {
    pub id: String,
    pub name: String,
    pub tier: String,
    pub minute_limit: Option<u32>,
    pub day_limit: Option<u32>,
    pub contact: Option<String>,
    pub note: Option<String>,
    pub created_at: String,
    /// Units of today's quota that the ledger has granted.
    pub granted_today: u64,
    pub keys: Vec<KeyView>,
}

/// A key, without the key.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields' names are the JSON's, documented in README and `keys --help`")]
pub struct KeyView {
    pub prefix: String,
    pub created_at: String,
    pub expires_at: Option<String>,
    pub revoked_at: Option<String>,
}

/// An application with the key that was made just now.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields' names are the JSON's, documented in README and `keys --help`")]
pub struct IssuedView {
    pub key: String,
    pub application: ApplicationView,
}

/// A page of applications.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields' names are the JSON's, documented in README and `keys --help`")]
pub struct PageView {
    pub applications: Vec<ApplicationView>,
    /// Records that could not be read, with the reasons.
    pub skipped: Vec<String>,
    /// What to ask the next page with.
    pub next: Option<String>,
}

impl From<&StoredApplication> for ApplicationView {
    fn from(stored: &StoredApplication) -> Self {
        Self {
            id: stored.id.to_string(),
            name: stored.name.clone(),
            tier: stored.tier.clone(),
            minute_limit: stored.own.minute,
            day_limit: stored.own.day,
            contact: stored.contact.clone(),
            note: stored.note.clone(),
            created_at: stored.created_at.rfc3339(),
            granted_today: stored.granted,
            keys: stored.keys.iter().map(KeyView::from).collect(),
        }
    }
}

impl From<&StoredKey> for KeyView {
    fn from(key: &StoredKey) -> Self {
        Self {
            prefix: key.shown.clone(),
            created_at: key.created_at.rfc3339(),
            expires_at: key.expires_at.map(Wall::rfc3339),
            revoked_at: key.revoked_at.map(Wall::rfc3339),
        }
    }
}

impl From<&Issued> for IssuedView {
    fn from(issued: &Issued) -> Self {
        Self { key: issued.key.expose().to_owned(), application: ApplicationView::from(&issued.application) }
    }
}

impl From<&Page> for PageView {
    fn from(page: &Page) -> Self {
        Self {
            applications: page.applications.iter().map(ApplicationView::from).collect(),
            skipped: page.skipped.clone(),
            next: page.next.map(|id| id.to_string()),
        }
    }
}
