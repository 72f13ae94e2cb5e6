//! Changes to applications and keys: durable first, then in force in this process at once.
//!
//! The command line, the side port and `demo` make changes only through it. On a running server it keeps the key
//! directory current; on a stopped one it works on the store alone.

mod actor;
mod adopt;
mod amend;
mod contact;
mod create;
mod current_use;
mod fleet;
mod follow;
mod intake;
mod local_copy;
mod measure;
mod owners;
mod status;
#[cfg(test)]
mod tests_of_owners;
#[cfg(test)]
mod tests_of_uses;
mod validation;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};

use crate::clock::{Clock, Mono, Wall};
use crate::instruments::{Instruments, StoreWork};
use crate::keys::{ApplicationId, Digest, KeyForm, shown_prefix};
use crate::secret::Secret;
use crate::store::{
    ApplicationPage, AuditQuery, AuditRecord, BadWebsite, ChangeKind, REQUEST_DAYS_KEPT, Store, StoreChange,
    StoreError, StoredApplication, StoredKey,
};

use super::account::Account;
use super::key_directory::KeyDirectory;
use super::terms::TermsByTier;

use follow::FeedProgress;
use local_copy::LocalCopyKeeper;
use validation::{MAX_MESSAGE, MAX_TEXT, TextFlaw, check_text};

pub use actor::Actor;
pub use adopt::AdoptError;
pub use amend::{DescriptionChange, FieldChange};
pub use contact::{ContactOutcome, ContactRequest, ContactSelection, NoticeSettings};
pub use create::{KeyDetails, NewApplication};
pub use current_use::CurrentUse;
pub use fleet::{ApplicationRequests, FleetNodes, FleetUsage};
pub use intake::{BadField, ImportedKey, KeyRecord};

/// Audit records read per page.
const AUDIT_PAGE: usize = 1_000;
/// Maximum number of applications per page.
const LIST_PAGE: usize = 10_000;
/// Uses of keys stored at a time. Leases wait for one write, which may change a page of the file for each.
const USES: usize = 100;
/// Minimum interval between log lines while the store file is missing or replaced.
const LOG_INTERVAL: Duration = Duration::from_mins(1);

/// Makes changes.
pub struct Registrar {
    store: Arc<dyn Store>,
    /// `None` on a stopped system, which serves no requests.
    key_directory: Option<Arc<KeyDirectory>>,
    terms: ArcSwap<TermsByTier>,
    form: KeyForm,
    clock: Clock,
    instruments: Arc<Instruments>,
    /// One change at a time, so that changes take effect in the order in which they become durable; and up to where
    /// changes made elsewhere are applied.
    turn: tokio::sync::Mutex<FeedProgress>,
    /// When the missing or replaced store file was logged last.
    misplaced_logged_at: ArcSwapOption<Mono>,
    /// The local copy of a shared store.
    copy: Option<LocalCopyKeeper>,
    notices: NoticeSettings,
}

/// An application with a new key: the only time the key is visible.
#[derive(Clone, Debug)]
pub struct IssuedKey {
    /// The application.
    pub application: StoredApplication,
    /// The key.
    pub key: Secret,
}

/// Why a change failed. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum RegistrarError {
    /// The tier is not configured.
    #[error("unknown tier `{tier}`; the tiers are {known}")]
    UnknownTier {
        /// The unknown tier.
        tier: String,
        /// The configured tiers.
        known: String,
    },
    /// A text is empty, too long, or has characters that would confuse a terminal.
    #[error("the {0} must be 1 to {MAX_TEXT} printable characters{1}")]
    BadText(&'static str, TextFlaw),
    /// The website is not an address.
    #[error("the url {0}")]
    BadUrl(#[from] BadWebsite),
    /// A message is empty, too long, or has misleading characters.
    #[error("the message must be 1 to {MAX_MESSAGE} printable characters and line breaks")]
    BadMessage,
    /// A limit of zero would refuse everything.
    #[error("a limit must be at least 1; to block an application, revoke its keys")]
    BadLimit,
    /// The expiry is in the past.
    #[error("the expiry must be in the future; to disable a key now, revoke it")]
    BadExpiry,
    /// All keys have expired or are revoked.
    #[error(
        "all keys of {0} have expired or are revoked; name the key to extend, or run `scoregate keys rotate {0}`"
    )]
    NoneInForce(ApplicationId),
    /// Several keys are active, and one of them would expire later than it does.
    #[error(
        "{1} keys of {0} are active, and one of them would expire later than it does now; name the key to change"
    )]
    SeveralInForce(ApplicationId, usize),
    /// No key of the application has this prefix, or several have.
    #[error(
        "{found} keys of {application} begin with `{prefix}`; `scoregate keys show {application}` shows them"
    )]
    NoSuchKey {
        /// The application.
        application: ApplicationId,
        /// The prefix.
        prefix: String,
        /// Number of keys with this prefix.
        found: usize,
    },
    /// The first day is after the last one, or there are too many days.
    #[error("the days must be in order and at most {REQUEST_DAYS_KEPT}, for which requests are kept")]
    BadDays,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The operating system's random generator failed.
    #[error("no key can be created; the operating system returned no random bytes: {0}")]
    NoRandomness(#[from] getrandom::Error),
}

impl Registrar {
    /// A registrar of `store` that keeps `key_directory` current, if there is one.
    pub fn new(
        store: Arc<dyn Store>,
        key_directory: Option<Arc<KeyDirectory>>,
        terms: TermsByTier,
        form: KeyForm,
        clock: Clock,
        instruments: Arc<Instruments>,
    ) -> Self {
        let (terms, turn) = (ArcSwap::from_pointee(terms), tokio::sync::Mutex::default());
        let misplaced_logged_at = ArcSwapOption::empty();
        let notices = NoticeSettings { domain: "localhost".into(), is_sent: false };
        Self {
            store,
            key_directory,
            terms,
            form,
            clock,
            instruments,
            turn,
            misplaced_logged_at,
            copy: None,
            notices,
        }
    }

    /// Creates a new key for an application; its other keys expire after `overlap`. The quota belongs to the
    /// application and is unchanged.
    pub async fn rotate(
        &self,
        who: impl Into<Actor<'_>>,
        id: ApplicationId,
        overlap: Duration,
    ) -> Result<IssuedKey, RegistrarError> {
        self.rotate_with(who, id, overlap, KeyDetails::default()).await
    }

    /// Rotates with a name or an expiry for the new key.
    pub async fn rotate_with(
        &self,
        who: impl Into<Actor<'_>>,
        id: ApplicationId,
        overlap: Duration,
        details: KeyDetails,
    ) -> Result<IssuedKey, RegistrarError> {
        let (now, allowance) = (self.clock.now().wall, details.allowance);
        let (secret, key) = self.mint(now, details)?;
        let what = ChangeKind::Rotate { key, retire_others_at: now.plus(overlap), allowance };
        Ok(IssuedKey { application: self.change(who, id, what).await?, key: secret })
    }

    /// Creates a further key for an application; its other keys are unaffected.
    pub async fn add_key(
        &self,
        who: impl Into<Actor<'_>>,
        id: ApplicationId,
        details: KeyDetails,
    ) -> Result<IssuedKey, RegistrarError> {
        let allowance = details.allowance;
        let (secret, key) = self.mint(self.clock.now().wall, details)?;
        let application = self.change(who, id, ChangeKind::AddKey { key, allowance }).await?;
        Ok(IssuedKey { application, key: secret })
    }

    /// Returns an application.
    pub async fn show(&self, id: ApplicationId) -> Result<StoredApplication, RegistrarError> {
        let day = self.clock.now().wall.day();
        let found = self.store.application(id, day).await?;
        Ok(found.ok_or(StoreError::UnknownApplication(id))?)
    }

    /// The account of an application; `None` on a stopped system, or when none of its keys is in memory.
    pub async fn account(&self, id: ApplicationId) -> Result<Option<Arc<Account>>, RegistrarError> {
        Ok(self.account_of(&self.show(id).await?))
    }

    fn account_of(&self, stored: &StoredApplication) -> Option<Arc<Account>> {
        let key_directory = self.key_directory.as_ref()?;
        stored.keys.iter().find_map(|key| key_directory.find(&key.digest)).map(|found| found.account)
    }

    /// Units that an application used today. `None` on a stopped system, which knows only granted units.
    pub fn used_today(&self, stored: &StoredApplication) -> Option<u64> {
        self.key_directory.as_ref()?;
        let account = self.account_of(stored);
        let today = self.clock.now().wall.day();
        Some(account.map_or(stored.granted, |account| u64::from(account.used(today))))
    }

    /// A page of applications.
    pub async fn list(
        &self,
        after: Option<ApplicationId>,
        most: usize,
    ) -> Result<ApplicationPage, RegistrarError> {
        let day = self.clock.now().wall.day();
        Ok(self.store.page(after, most.clamp(1, LIST_PAGE), day).await?)
    }

    /// Audit records, newest first, and where the next page begins.
    pub async fn audit(&self, ask: AuditQuery) -> Result<(Vec<AuditRecord>, Option<u64>), RegistrarError> {
        let most = ask.limit.clamp(1, AUDIT_PAGE);
        let mut records = self.store.audit(AuditQuery { limit: most + 1, ..ask }).await?;
        let is_last = records.len() <= most;
        records.truncate(most);
        let next = records.last().map(|last| last.number).filter(|_| !is_last);
        Ok((records, next))
    }

    /// Raises the alarm if the store was found damaged. Called periodically.
    pub fn check_damage(&self) {
        self.instruments.store_is_damaged(self.store.damage().is_some());
    }

    /// Raises the alarm while the store file is missing or replaced. Logged at the beginning, every minute, and at
    /// the end. Called every few seconds.
    pub async fn check_file(&self) {
        let store = Arc::clone(&self.store);
        // On a thread of its own: a disk that hangs must not block a serving thread.
        let Ok(found) = tokio::task::spawn_blocking(move || store.missing_or_replaced()).await else {
            return;
        };
        self.instruments.store_file_invalid(found.is_some());
        let now = self.clock.now().mono;
        let before = self.misplaced_logged_at.load();
        match (found, before.as_deref()) {
            (Some(reason), before) if before.is_none_or(|logged| now.since(*logged) >= LOG_INTERVAL) => {
                self.misplaced_logged_at.store(Some(Arc::new(now)));
                tracing::error!(
                    %reason,
                    "store file missing or replaced; key changes are refused and no units are leased. Move the same file \
                     back; or stop the server, run `scoregate store import BACKUP`, and start it again"
                );
            }
            (None, Some(_)) => {
                self.misplaced_logged_at.store(None);
                tracing::info!("store file found again");
            }
            (Some(_) | None, _) => {}
        }
    }

    /// Stores which keys were used since the last call, a few at a time. Waits after each write `pauses` times as long as it
    /// took, so that leases have most of the store's time. Uses that cannot be stored are kept for the next call.
    pub async fn store_uses(&self, pauses: u32) {
        let Some(key_directory) = &self.key_directory else { return };
        let mut last = None;
        loop {
            let uses = key_directory.take_used(last, USES);
            let Some(newest) = uses.last() else { return };
            last = Some(*newest);
            let started = self.clock.now().mono;
            let stored = self.timed(StoreWork::Uses, self.store.record_uses(uses.clone())).await;
            if let Err(error) = stored {
                self.instruments.store_failed(StoreWork::Uses);
                tracing::warn!(%error, "last use of keys could not be recorded");
                key_directory.put_used_back(uses);
                return;
            }
            if pauses > 0 {
                self.clock.sleep(self.clock.now().mono.since(started) * pauses).await;
            }
        }
    }

    async fn change(
        &self,
        who: impl Into<Actor<'_>>,
        id: ApplicationId,
        what: ChangeKind,
    ) -> Result<StoredApplication, RegistrarError> {
        let turn = self.turn.lock().await;
        let application = self.make(who.into(), id, what).await?;
        self.count_keys();
        drop(turn);
        Ok(application)
    }

    /// Makes a change. The caller holds the turn.
    async fn make(
        &self,
        who: Actor<'_>,
        id: ApplicationId,
        what: ChangeKind,
    ) -> Result<StoredApplication, StoreError> {
        let now = self.clock.now().wall;
        // The owner of an application that does not exist yet is checked with its creation.
        let owner = who.owner().filter(|_| !matches!(what, ChangeKind::Create { .. }));
        let change = StoreChange { at: now, who: who.name(), owner, application: id, what };
        let made = self.timed(StoreWork::Change, self.store.change(change)).await;
        let application = made.inspect_err(|error| {
            if error.is_failure() {
                self.instruments.store_failed(StoreWork::Change);
            }
        })?;
        if let Some(key_directory) = &self.key_directory {
            key_directory.apply(&application, &self.terms.load(), now.day());
        }
        self.copy_changes(std::slice::from_ref(&application));
        Ok(application)
    }

    /// Runs a store operation and records its duration.
    async fn timed<T>(&self, work: StoreWork, doing: impl Future<Output = T>) -> T {
        let started = self.clock.now().mono;
        let done = doing.await;
        self.instruments.store_operation(work, self.clock.now().mono.since(started));
        done
    }

    fn count_keys(&self) {
        if let Some(key_directory) = &self.key_directory {
            self.instruments.keys(key_directory.len());
        }
    }

    fn mint(&self, now: Wall, details: KeyDetails) -> Result<(Secret, StoredKey), RegistrarError> {
        let KeyDetails { name, expires_at, .. } = details;
        check_text("key_name", name.as_ref())?;
        if expires_at.is_some_and(|ends| ends <= now) {
            return Err(RegistrarError::BadExpiry);
        }
        let secret = self.form.mint()?;
        let (digest, shown) = (Digest::of(secret.expose()), shown_prefix(secret.expose()).to_owned());
        Ok((
            secret,
            StoredKey {
                digest,
                shown,
                name,
                created_at: now,
                expires_at,
                revoked_at: None,
                last_used_at: None,
            },
        ))
    }

    fn known_tier(&self, tier: &str) -> Result<(), RegistrarError> {
        let terms = self.terms.load();
        if terms.names().any(|name| name == tier) {
            return Ok(());
        }
        let known = terms.names().collect::<Vec<_>>().join(", ");
        Err(RegistrarError::UnknownTier { tier: tier.to_owned(), known })
    }
}
