//! Applications and keys as JSON, for the side port and `--json`. The only secret is a new key in the response that
//! issues it.

#![expect(
    missing_docs,
    reason = "the field names are the JSON names, documented in docs/keys.md and `keys --help`"
)]

use serde::{Deserialize, Serialize};

use crate::registry::{BadField, ImportedKey, KeyRecord, Registrar};
use scoregate_store::{ApplicationPage, StoredApplication};

/// An application and its keys.
#[derive(Serialize)]
pub struct ApplicationView<'s> {
    #[serde(flatten)]
    stored: &'s StoredApplication,
    /// Used units of today's quota. Only a running server counts them. Units lost in a crash count as used.
    used_today: Option<u64>,
    /// Warnings about limits that may be a mistake.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// The outcome of a batch of imported keys.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ImportView {
    pub imported: usize,
    pub existing: usize,
    pub rejected: usize,
    /// The setting `keys.accept_imported`: whether keys of other formats are accepted.
    pub accept_imported: bool,
    /// One result for each key, in order.
    pub results: Vec<LineView>,
}

/// The outcome of one imported key.
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
    pub keys: Vec<KeyRecord>,
    /// The reasons why records could not be read.
    pub skipped: Vec<String>,
    /// The value of `after` for the next page. `None` on the last page.
    pub next: Option<String>,
}

impl<'s> ApplicationView<'s> {
    pub fn new(stored: &'s StoredApplication, registrar: &Registrar) -> Self {
        Self {
            stored,
            used_today: registrar.used_today(stored),
            warnings: registrar.limit_warnings(stored),
        }
    }
}

impl ImportView {
    pub(super) fn new(outcomes: &[Result<ImportedKey, BadField>], accept_imported: bool) -> Self {
        let count = |is: fn(&Result<ImportedKey, BadField>) -> bool| {
            outcomes.iter().filter(|one| is(one)).count()
        };
        Self {
            imported: count(|one| matches!(one, Ok(ImportedKey::Imported(_)))),
            existing: count(|one| matches!(one, Ok(ImportedKey::AlreadyPresent))),
            rejected: count(Result::is_err),
            accept_imported,
            results: outcomes
                .iter()
                .map(|outcome| match outcome {
                    Ok(ImportedKey::Imported(id)) => LineView::Imported {
                        application: id.to_string(),
                    },
                    Ok(ImportedKey::AlreadyPresent) => LineView::Existing,
                    Err(BadField { field, reason }) => LineView::Rejected {
                        field: field.clone(),
                        error: reason.clone(),
                    },
                })
                .collect(),
        }
    }
}

impl From<&ApplicationPage> for ExportView {
    fn from(page: &ApplicationPage) -> Self {
        Self {
            keys: page.applications.iter().flat_map(KeyRecord::of).collect(),
            skipped: page.skipped.clone(),
            next: page.next.map(|id| id.to_string()),
        }
    }
}
