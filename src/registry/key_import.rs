//! Imports keys created elsewhere, given their SHA-256 digests.
//!
//! Each key is a separate change that is durable before it is reported, so an interrupted batch loses no reported key.
//! The changes of a batch run concurrently to share disk syncs. Existing keys stay unchanged. Input is checked in
//! `admin::key_lines` and `cli`.

use std::collections::{BTreeMap, HashSet};

use futures_util::future::join_all;
use serde::{Deserialize, Serialize};

use scoregate_base::{
    clock::Wall,
    keys::{ApplicationId, Digest, check_text},
    limits::{OwnLimits, Scope},
};
use scoregate_store::{
    ChangeKind, Description, StoreError, StoreResult, StoredApplication, StoredKey,
};

use crate::registry::{
    actor::Actor,
    key_changes::{ChangeTurn, KeyChanges},
    registrar::Registrar,
    registrar_error::RegistrarResult,
};

/// Maximum number of characters of a key that may be shown: enough to distinguish keys.
const LONGEST_PREFIX: usize = 24;

/// A key and its application, for transfer between installations: one line of an import or export, with the fields in
/// this order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyRecord {
    /// SHA-256 of the key.
    #[serde(rename = "sha256")]
    pub digest: Digest,
    /// Name of the application.
    pub name: String,
    /// Tier of the application.
    pub tier: String,
    /// The application of the key; `None` for a new application.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub application: Option<ApplicationId>,
    /// The visible characters of the key; `None` for the first characters of the SHA-256.
    #[serde(rename = "prefix", skip_serializing_if = "Option::is_none")]
    pub shown: Option<String>,
    /// The name of the key, chosen by its owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_name: Option<String>,
    /// Limits of the application that override the tier's limits.
    #[serde(
        default,
        rename = "own_limits",
        skip_serializing_if = "OwnLimits::is_empty"
    )]
    pub own: OwnLimits,
    /// Website of the application.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Contact of the owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contact: Option<String>,
    /// Note about the application.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// When the key was created; `None` for now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Wall>,
    /// When the key expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Wall>,
    /// When the key was revoked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Wall>,
}

/// The result for a key that was not rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportedKey {
    /// Imported, as a key of this application.
    Imported(ApplicationId),
    /// Already known; nothing was changed.
    AlreadyPresent,
}

/// The reason why a key was rejected. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct BadField {
    /// The invalid field.
    pub field: String,
    /// The problem, and the expected value.
    pub reason: String,
}

impl BadField {
    /// A rejection of a field with its reason.
    pub fn new(field: &str, reason: impl Into<String>) -> Self {
        Self {
            field: field.to_owned(),
            reason: reason.into(),
        }
    }
}

/// The result for one key of a batch. A failure of the store affects the whole batch.
type IntakeResult = StoreResult<Result<ImportedKey, BadField>>;

/// An import of a batch.
struct KeyImport<'i> {
    turn: ChangeTurn<'i>,
    who: &'i str,
}

impl Registrar {
    /// Imports keys created elsewhere. Returns one result per key, in order. If the store fails, some keys may have
    /// been imported. Repeating the import is safe.
    pub async fn import(
        &self,
        who: &str,
        records: Vec<KeyRecord>,
    ) -> RegistrarResult<Vec<Result<ImportedKey, BadField>>> {
        let import = KeyImport {
            turn: self.changes.turn().await,
            who,
        };
        let mut results: Vec<(usize, IntakeResult)> = Vec::with_capacity(records.len());
        let mut seen = HashSet::new();
        let mut applications = BTreeMap::<_, Vec<_>>::new();
        for (place, record) in records.into_iter().enumerate() {
            let checked = record
                .check()
                .and_then(|()| check_tier(&self.changes, &record.tier));
            let is_new = seen.insert(record.digest);
            match checked {
                Err(bad) => results.push((place, Ok(Err(bad)))),
                Ok(()) if !is_new => results.push((place, Ok(Err(twice())))),
                Ok(()) => {
                    let id = record.application.map_or_else(ApplicationId::mint, Ok)?;
                    applications.entry(id).or_default().push((place, record));
                }
            }
        }
        // All changes are awaited before an error is returned, because durable changes must take effect.
        let work = applications
            .into_iter()
            .map(|(id, records)| import.application(id, records));
        results.extend(join_all(work).await.into_iter().flatten());
        results.sort_by_key(|(place, _)| *place);
        Ok(results
            .into_iter()
            .map(|(_, outcome)| outcome)
            .collect::<Result<_, _>>()?)
    }
}

impl KeyImport<'_> {
    /// Imports the keys of one application one after another.
    async fn application(
        &self,
        id: ApplicationId,
        records: Vec<(usize, KeyRecord)>,
    ) -> Vec<(usize, IntakeResult)> {
        let mut results = Vec::with_capacity(records.len());
        let mut known = None;
        for (place, record) in records {
            results.push((place, self.take_one(id, record, &mut known).await));
        }
        results
    }

    async fn take_one(
        &self,
        id: ApplicationId,
        record: KeyRecord,
        known: &mut Option<StoredApplication>,
    ) -> IntakeResult {
        let who = Actor::Operator(self.who);
        let now = self.turn.now();
        if known.is_none() {
            // Most keys are new, so creation is tried first.
            match self.turn.make(who, id, record.clone().creation(now)).await {
                Ok(application) => {
                    *known = Some(application);
                    return Ok(Ok(ImportedKey::Imported(id)));
                }
                Err(StoreError::Exists(_)) if record.application.is_none() => {
                    return Ok(Ok(ImportedKey::AlreadyPresent));
                }
                Err(StoreError::Exists(_)) => {}
                Err(error) => return Err(error),
            }
            match self.turn.changes.store.application(id, now.day()).await {
                Err(StoreError::Damaged { reason, .. }) => {
                    return Ok(Err(BadField::new("application", reason)));
                }
                read => *known = read?,
            }
        }
        // The application does not exist, so the conflict was about the key.
        let Some(there) = known else {
            return Ok(Err(of_another()));
        };
        self.add_key(there, record).await
    }

    /// Adds the key of a record to an existing application.
    async fn add_key(&self, there: &mut StoredApplication, record: KeyRecord) -> IntakeResult {
        let id = there.id;
        if there.keys.iter().any(|key| key.digest == record.digest) {
            return Ok(Ok(ImportedKey::AlreadyPresent));
        }
        if let Err(differs) = record.agrees_with(there) {
            return Ok(Err(differs));
        }
        let who = Actor::Operator(self.who);
        let change = ChangeKind::AddKey {
            key: record.key(self.turn.now()),
            allowance: None,
        };
        match self.turn.make(who, id, change).await {
            Ok(application) => {
                *there = application;
                Ok(Ok(ImportedKey::Imported(id)))
            }
            Err(StoreError::Exists(_)) => Ok(Err(of_another())),
            Err(error) => Err(error),
        }
    }
}

/// The error does not repeat the value, which may be a key in the wrong column.
fn check_tier(changes: &KeyChanges, tier: &str) -> Result<(), BadField> {
    if changes.has_tier(tier) {
        return Ok(());
    }
    let reason = format!("is not configured; the tiers are {}", changes.tiers());
    Err(BadField::new("tier", reason))
}

impl KeyRecord {
    /// One record for each key of an application.
    pub fn of(application: &StoredApplication) -> impl Iterator<Item = Self> {
        application.keys.iter().map(|key| Self {
            digest: key.digest,
            name: application.name.clone(),
            tier: application.tier.clone(),
            application: Some(application.id),
            shown: Some(key.shown.clone()).filter(|shown| !shown.is_empty()),
            key_name: key.name.clone(),
            own: application.own.within(Scope::Application),
            url: application.description.url.clone(),
            contact: application.description.contact.clone(),
            note: application.description.note.clone(),
            created_at: Some(key.created_at),
            expires_at: key.expires_at,
            revoked_at: key.revoked_at,
        })
    }

    /// Checks everything that can be checked without the store.
    pub fn check(&self) -> Result<(), BadField> {
        // The tier is also checked, because a batch of unchecked lines of maximum length would be too large to send.
        let texts = [
            ("name", Some(self.name.as_str())),
            ("tier", Some(self.tier.as_str())),
            ("key_name", self.key_name.as_deref()),
        ];
        for (field, text) in texts {
            check_text(field, text).map_err(|error| BadField::new(field, error.to_string()))?;
        }
        self.description()
            .check()
            .map_err(|bad| BadField::new(bad.name(), bad.to_string()))?;
        self.own
            .check(Scope::Application)
            .map_err(|error| BadField::new("own_limits", error.to_string()))?;
        let Some(shown) = &self.shown else {
            return Ok(());
        };
        if Digest::of(shown) == self.digest {
            return Err(BadField::new(
                "prefix",
                "must not be the whole key; use its first characters",
            ));
        }
        let is_fit = (1..=LONGEST_PREFIX).contains(&shown.len())
            && shown.bytes().all(|b| b.is_ascii_graphic());
        let would_do = format!("must be 1 to {LONGEST_PREFIX} visible ASCII characters");
        if is_fit {
            Ok(())
        } else {
            Err(BadField::new("prefix", would_do))
        }
    }

    /// Checks that the fields about the application match the existing application.
    fn agrees_with(&self, there: &StoredApplication) -> Result<(), BadField> {
        let mut own = self.own.each();
        let ours = self.description();
        let same = [
            ("name", self.name == there.name),
            ("tier", self.tier == there.tier),
            (
                "own_limits",
                own.all(|(setting, value)| there.own.get(setting) == Some(value)),
            ),
        ];
        let columns = ours.columns().zip(there.description.columns());
        let same_columns =
            columns.map(|((name, ours), (_, known))| (name, ours.is_none() || ours == known));
        let differs = same
            .into_iter()
            .chain(same_columns)
            .find(|(_, is_same)| !is_same)
            .map(|(field, _)| field);
        differs.map_or(Ok(()), |field| {
            let id = there.id;
            let reason = format!("differs from the application {id}; see `scoregate keys show`");
            Err(BadField::new(field, reason))
        })
    }

    fn description(&self) -> Description {
        Description {
            url: self.url.clone(),
            contact: self.contact.clone(),
            note: self.note.clone(),
        }
    }

    fn key(&self, now: Wall) -> StoredKey {
        StoredKey {
            digest: self.digest,
            shown: self
                .shown
                .clone()
                .unwrap_or_else(|| format!("sha256:{:.8}", self.digest.to_string())),
            name: self.key_name.clone(),
            created_at: self.created_at.unwrap_or(now),
            expires_at: self.expires_at,
            revoked_at: self.revoked_at,
            last_used_at: None,
        }
    }

    fn creation(self, now: Wall) -> ChangeKind {
        ChangeKind::Create {
            own: self.own,
            description: self.description(),
            key: self.key(now),
            name: self.name,
            tier: self.tier,
            owner: None,
        }
    }
}

fn twice() -> BadField {
    BadField::new("sha256", "occurs twice; the first value was used")
}

fn of_another() -> BadField {
    BadField::new(
        "sha256",
        "belongs to another application; a key belongs to only one",
    )
}
