//! What an operator sees of applications and keys: the JSON of the side port and of `--json`. Never a secret, but for
//! a key in the one answer that issues it.

use serde::{Deserialize, Serialize};

use crate::accounts::{BadField, ImportedKey, IssuedKey, KeyRecord};
use crate::clock::Wall;
use crate::store::{ApplicationPage, AuditRecord, StoredApplication, StoredKey};

use super::key_lines::LineObject;

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
    /// Units of today's quota that the ledger has granted: those used, and those leased to a server ahead of their use.
    pub granted_today: u64,
    /// Units of today's quota that were used. Only a running server knows; units that a crash lost count as used.
    pub used_today: Option<u64>,
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
    /// The beginning of the hour, told late.
    pub last_used_at: Option<String>,
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

/// A part of the audit trail, newest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields' names are the JSON's, documented in README and `keys --help`")]
pub struct AuditView {
    pub records: Vec<ChangeView>,
    /// What to ask for older ones with, as `before`; none if there are none.
    pub next: Option<u64>,
}

/// A change that was made.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields' names are the JSON's, documented in README and `keys --help`")]
pub struct ChangeView {
    pub number: u64,
    pub at: String,
    pub actor: String,
    pub action: String,
    pub application: String,
    pub detail: String,
}

/// What became of a batch of keys.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields' names are the JSON's, documented in README and `keys --help`")]
pub struct ImportView {
    pub imported: usize,
    pub existing: usize,
    pub rejected: usize,
    /// Whether keys of another form than ours are looked up: `keys.accept_imported`.
    pub accept_imported: bool,
    /// For each key, in order.
    pub results: Vec<LineView>,
}

/// What became of one key.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
#[expect(missing_docs, reason = "the fields' names are the JSON's, documented in README and `keys --help`")]
pub enum LineView {
    Imported { application: String },
    Existing,
    Rejected { field: String, error: String },
}

/// A page of keys as lines.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields' names are the JSON's, documented in README and `keys --help`")]
pub struct ExportView {
    pub keys: Vec<LineObject>,
    /// Records that could not be read, with the reasons.
    pub skipped: Vec<String>,
    /// What to ask the next page with.
    pub next: Option<String>,
}

impl ApplicationView {
    /// An application of which so many units were used today, if that is known.
    pub(super) fn new(stored: &StoredApplication, used_today: Option<u64>) -> Self {
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
            used_today,
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
            last_used_at: key.last_used_at.map(Wall::rfc3339),
        }
    }
}

impl IssuedView {
    /// A key that was made just now.
    pub(super) fn new(issued: &IssuedKey, used_today: Option<u64>) -> Self {
        let application = ApplicationView::new(&issued.application, used_today);
        Self { key: issued.key.expose().to_owned(), application }
    }
}

impl PageView {
    /// A page, with the units that each application used today, if that is known.
    pub(super) fn new(
        page: &ApplicationPage,
        used_today: impl Fn(&StoredApplication) -> Option<u64>,
    ) -> Self {
        let view = |stored| ApplicationView::new(stored, used_today(stored));
        Self {
            applications: page.applications.iter().map(view).collect(),
            skipped: page.skipped.clone(),
            next: page.next.map(|id| id.to_string()),
        }
    }
}

impl AuditView {
    /// These records, with older ones before `next`.
    pub(super) fn new(records: &[AuditRecord], next: Option<u64>) -> Self {
        Self { records: records.iter().map(ChangeView::from).collect(), next }
    }
}

impl From<&AuditRecord> for ChangeView {
    fn from(record: &AuditRecord) -> Self {
        Self {
            number: record.number,
            at: record.at.rfc3339(),
            actor: record.who.clone(),
            action: record.what.clone(),
            application: record.application.clone(),
            detail: record.detail.clone(),
        }
    }
}

impl ImportView {
    /// What became of each.
    pub(super) fn new(outcomes: &[Result<ImportedKey, BadField>], accept_imported: bool) -> Self {
        let count =
            |is: fn(&Result<ImportedKey, BadField>) -> bool| outcomes.iter().filter(|one| is(one)).count();
        let view = |outcome: &Result<ImportedKey, BadField>| match outcome {
            Ok(ImportedKey::Taken(id)) => LineView::Imported { application: id.to_string() },
            Ok(ImportedKey::AlreadyThere) => LineView::Existing,
            Err(BadField { field, reason }) => {
                LineView::Rejected { field: field.clone(), error: reason.clone() }
            }
        };
        Self {
            imported: count(|one| matches!(one, Ok(ImportedKey::Taken(_)))),
            existing: count(|one| matches!(one, Ok(ImportedKey::AlreadyThere))),
            rejected: count(Result::is_err),
            accept_imported,
            results: outcomes.iter().map(view).collect(),
        }
    }
}

impl From<&ApplicationPage> for ExportView {
    fn from(page: &ApplicationPage) -> Self {
        Self {
            keys: page.applications.iter().flat_map(KeyRecord::of).map(|key| LineObject::of(&key)).collect(),
            skipped: page.skipped.clone(),
            next: page.next.map(|id| id.to_string()),
        }
    }
}
