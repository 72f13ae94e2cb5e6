//! Applications and keys as JSON, for the side port and `--json`. The only secret is a new key, in the response that
//! issues it.

#![expect(
    missing_docs,
    reason = "the fields' names are the JSON's, documented in docs/keys.md and `keys --help`"
)]

use serde::{Deserialize, Serialize};

use crate::accounts::{BadField, ImportedKey, IssuedKey, KeyRecord};
use scoregate_base::clock::Wall;
use scoregate_store::{ApplicationPage, AuditRecord, Description, StoredApplication, StoredKey};

use super::key_lines::LineObject;

/// An application and its keys.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ApplicationView {
    pub id: String,
    pub name: String,
    pub tier: String,
    pub minute_limit: Option<u32>,
    pub day_limit: Option<u32>,
    /// When the limits before these return.
    #[serde(default)]
    pub limits_until: Option<String>,
    #[serde(flatten)]
    pub description: Description,
    pub created_at: String,
    /// Units of today's quota that the ledger has granted: used ones, and ones leased to a server in advance.
    pub granted_today: u64,
    /// Used units of today's quota, counted by a running server only. Units lost in a crash count as used.
    pub used_today: Option<u64>,
    pub keys: Vec<KeyView>,
}

/// A key, without its secret.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeyView {
    pub prefix: String,
    #[serde(default)]
    pub name: Option<String>,
    pub created_at: String,
    pub expires_at: Option<String>,
    pub revoked_at: Option<String>,
    /// Start of the hour of the last use, recorded with a delay.
    pub last_used_at: Option<String>,
}

/// A new key and its application.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct IssuedView {
    pub key: String,
    pub application: ApplicationView,
}

/// A page of applications.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PageView {
    pub applications: Vec<ApplicationView>,
    /// Reasons for records that could not be read.
    pub skipped: Vec<String>,
    /// `after` of the next page; none on the last page.
    pub next: Option<String>,
}

/// A page of the audit trail, newest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AuditView {
    pub records: Vec<ChangeView>,
    /// `before` of the next page; none on the last page.
    pub next: Option<u64>,
}

/// A record of the audit trail.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ChangeView {
    pub number: u64,
    pub at: String,
    pub actor: String,
    pub action: String,
    pub application: String,
    pub detail: String,
}

/// Outcome of a batch of imported keys.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ImportView {
    pub imported: usize,
    pub existing: usize,
    pub rejected: usize,
    /// The setting `keys.accept_imported`: whether keys of other formats are accepted.
    pub accept_imported: bool,
    /// One for each key, in order.
    pub results: Vec<LineView>,
}

/// Outcome of one imported key.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum LineView {
    Imported { application: String },
    Existing,
    Rejected { field: String, error: String },
}

/// A page of exported keys.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExportView {
    pub keys: Vec<LineObject>,
    /// Reasons for records that could not be read.
    pub skipped: Vec<String>,
    /// `after` of the next page; none on the last page.
    pub next: Option<String>,
}

impl ApplicationView {
    pub(super) fn new(stored: &StoredApplication, used_today: Option<u64>) -> Self {
        Self {
            id: stored.id.to_string(),
            name: stored.name.clone(),
            tier: stored.tier.clone(),
            minute_limit: stored.own.minute,
            day_limit: stored.own.day,
            limits_until: stored.limits_until.map(Wall::rfc3339),
            description: stored.description.clone(),
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
            name: key.name.clone(),
            created_at: key.created_at.rfc3339(),
            expires_at: key.expires_at.map(Wall::rfc3339),
            revoked_at: key.revoked_at.map(Wall::rfc3339),
            last_used_at: key.last_used_at.map(Wall::rfc3339),
        }
    }
}

impl IssuedView {
    pub(super) fn new(issued: &IssuedKey, used_today: Option<u64>) -> Self {
        let application = ApplicationView::new(&issued.application, used_today);
        Self { key: issued.key.expose().to_owned(), application }
    }
}

impl PageView {
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
    pub(super) fn new(outcomes: &[Result<ImportedKey, BadField>], accept_imported: bool) -> Self {
        let count =
            |is: fn(&Result<ImportedKey, BadField>) -> bool| outcomes.iter().filter(|one| is(one)).count();
        let view = |outcome: &Result<ImportedKey, BadField>| match outcome {
            Ok(ImportedKey::Imported(id)) => LineView::Imported { application: id.to_string() },
            Ok(ImportedKey::AlreadyPresent) => LineView::Existing,
            Err(BadField { field, reason }) => {
                LineView::Rejected { field: field.clone(), error: reason.clone() }
            }
        };
        Self {
            imported: count(|one| matches!(one, Ok(ImportedKey::Imported(_)))),
            existing: count(|one| matches!(one, Ok(ImportedKey::AlreadyPresent))),
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
