//! Revokes keys that were found in a public place, or makes them expire, and notifies the owners of the applications by
//! mail.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use crate::instruments::LeakOutcome;
use scoregate_base::{
    clock::Wall,
    keys::{ApplicationId, Digest},
    words,
};
use scoregate_store::{ChangeKind, LeakReport, MailKind, NewMail, StoreError};

use crate::registry::{
    key_changes::KeyChanges,
    letter::{letter, random_id},
    owner_mail::NoticeSettings,
    registrar::Registrar,
    registrar_error::{RegistrarError, RegistrarResult},
};

/// The actor in the audit trail.
const ACTOR: &str = "secret scanning";
/// Repeated reports of a key at the same place have no effect within this time, so that they do not revoke a reinstated
/// key.
const KNOWN_FOR: Duration = Duration::from_hours(90 * 24);
const EXPIRES_AFTER: Duration = Duration::from_hours(1);
/// Maximum number of keys looked up, and of places recorded for a key, in one step, so that other changes do not wait long.
const BATCH: usize = 200;
/// Maximum number of places listed in an email.
// A report can name many places, and the mail must stay readable.
const SHOWN_PLACES: usize = 20;

words! {
    /// The change to a key that was found in a public place.
    pub enum LeakAction: word {
        /// The key is revoked.
        Revoke = "revoke",
        /// The key expires after an hour.
        Expire = "expire",
    }
}

/// A key that was found in a public place.
#[derive(Clone, Debug)]
pub struct LeakedKey {
    /// The key.
    pub digest: Digest,
    /// The first characters of the key.
    pub shown: String,
    /// The places where the key was found, in visible ASCII.
    pub places: BTreeSet<String>,
}

/// The settings for leaked keys.
#[derive(Clone, Debug)]
pub struct LeakSettings {
    /// The change to leaked keys.
    pub action: LeakAction,
    /// The name of the service.
    pub service: String,
    /// The mail to owners.
    pub mail: NoticeSettings,
}

/// Acts on keys that were found in a public place.
pub struct LeakedKeys {
    changes: Arc<KeyChanges>,
    settings: LeakSettings,
}

impl LeakedKeys {
    /// Changes the keys that `registrar` administers.
    pub fn new(registrar: &Registrar, settings: LeakSettings) -> Self {
        Self {
            changes: Arc::clone(&registrar.changes),
            settings,
        }
    }

    /// Acts on each of these keys that exists. The call can be repeated after a failure.
    pub async fn act_on(
        &self,
        keys: &[LeakedKey],
    ) -> RegistrarResult<HashMap<Digest, LeakOutcome>> {
        let mut outcomes = HashMap::new();
        for some in keys.chunks(BATCH) {
            let digests = some.iter().map(|key| key.digest).collect();
            let found: HashMap<_, _> = self
                .changes
                .store
                .find_keys(digests)
                .await?
                .into_iter()
                .collect();
            for key in some {
                let outcome = match found.get(&key.digest) {
                    Some(application) => self.change(*application, key).await?,
                    None => LeakOutcome::Unknown,
                };
                self.count(outcome);
                outcomes.insert(key.digest, outcome);
            }
        }
        Ok(outcomes)
    }

    /// Counts the outcome of a report.
    pub fn count(&self, outcome: LeakOutcome) {
        self.changes.instruments.leaked_keys.count(outcome);
    }

    async fn change(&self, id: ApplicationId, key: &LeakedKey) -> RegistrarResult<LeakOutcome> {
        let now = self.changes.now().wall;
        let expires_at =
            (self.settings.action == LeakAction::Expire).then(|| now.plus(EXPIRES_AFTER));
        let mail = self.mail(id, key, expires_at, now)?;
        let since = now.minus(KNOWN_FOR);
        let LeakedKey {
            digest,
            shown,
            places,
        } = key.clone();
        let report = LeakReport {
            digest,
            shown,
            places: Vec::new(),
            since,
            expires_at,
            mail,
        };
        let mut outcome = LeakOutcome::Repeated;
        for some in places.into_iter().collect::<Vec<_>>().chunks(BATCH) {
            let report = LeakReport {
                places: some.to_vec(),
                ..report.clone()
            };
            match self
                .changes
                .change(ACTOR, id, ChangeKind::ReportLeak(report))
                .await
            {
                Ok(_) => outcome = LeakOutcome::Changed,
                // All places were reported before. Only a new place counts as a change.
                Err(RegistrarError::Store(StoreError::Exists(_))) => {}
                Err(error) => return Err(error),
            }
        }
        if outcome == LeakOutcome::Changed {
            tracing::warn!(application = %id, key = key.shown, "a key was found in public");
        }
        Ok(outcome)
    }

    /// The mail to the owner. Places are shown as text, not as links.
    fn mail(
        &self,
        id: ApplicationId,
        key: &LeakedKey,
        expires_at: Option<Wall>,
        now: Wall,
    ) -> RegistrarResult<NewMail> {
        let shown = &key.shown;
        let LeakSettings { service, mail, .. } = &self.settings;
        let state = expires_at.map_or_else(
            || "was revoked and no longer works".to_owned(),
            |at| format!("expires at {}", at.rfc3339()),
        );
        let places: Vec<&str> = key
            .places
            .iter()
            .take(SHOWN_PLACES)
            .map(String::as_str)
            .collect();
        let more = key.places.len() - places.len();
        let more = if more == 0 {
            String::new()
        } else {
            format!("\nand {more} more")
        };
        let text = format!(
            "The key of {service} that begins with {shown} was found in public, so it {state}. It belongs to the \
             application {id}.\n\nFound at:\n{}{more}\n\nRemove the key there, and replace it with a new one wherever you \
             use it. Do not reinstate it: everyone who has seen it can use it.",
            places.join("\n")
        );
        let subject = format!("Your key {shown} was found in public");
        let message_id = format!("{}.0@{}", random_id()?, mail.domain);
        let kind = MailKind::Notice;
        Ok(letter(kind, message_id, subject, text, &mail.root, now))
    }
}
