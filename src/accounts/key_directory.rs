//! The directory of known keys, which maps a key digest to an application, its terms and its balances. A key is found
//! by a single lookup of its digest. The cost does not depend on the number of keys. Unknown keys are never added.
//! `store` makes changes durable.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    hash::{BuildHasherDefault, Hasher},
    ops::Bound,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use dashmap::DashMap;
use parking_lot::Mutex;

use scoregate_base::{
    clock::{Day, Now, Wall},
    keys::{ApplicationId, Digest},
    words,
};
use scoregate_store::{KeyUse, LedgerReport, StoredApplication, StoredKey};

use crate::accounts::{
    account::Account, balance_ahead::BalanceAhead, key_freshness::KeyFreshness, terms::TermsByTier,
};

words! {
    /// The reason why a key is refused. Responses do not contain it.
    pub enum KeyFault: word {
        /// The request does not have exactly one well-formed key.
        Malformed = "malformed",
        /// No application has the key.
        Unknown = "unknown",
        /// The key has expired.
        Expired = "expired",
        /// The key was revoked.
        Revoked = "revoked",
    }
}

/// A known key.
#[derive(Clone, Debug)]
pub struct KeyLookup {
    /// The application of the key.
    pub account: Arc<Account>,
    /// Time of expiry; `None` for never.
    pub expires_at: Option<Wall>,
    /// The hour of the last use.
    used: UseHour,
}

#[derive(Debug)]
struct DirectoryEntry {
    account: Arc<Account>,
    expires_at: KeyExpiry,
    used: AtomicU32,
}

/// Expiry of a key; [`NEVER`] for none. It is a single number to save memory, because there may be a million keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct KeyExpiry(Wall);

const NEVER: KeyExpiry = KeyExpiry(Wall::from_seconds(u64::MAX));
/// The expiry of a revoked key: the earliest possible time, so that the key stays revoked regardless of the wall clock.
const REVOKED: Wall = Wall::from_seconds(0);

/// Hours since 1970; 0 for never. An hour is precise enough to find unused keys, and is cheap to record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct UseHour(u32);

/// All known keys, by digest. The lists are consistent after every step, so a panic cannot leave a list half changed.
#[derive(Debug, Default)]
pub struct KeyDirectory {
    /// Whether the directory has the changes that other gateways made.
    pub freshness: Arc<KeyFreshness>,
    entries: DashMap<Digest, DirectoryEntry, BuildHasherDefault<DigestHasher>>,
    /// Expiry of the keys that a sweep removed, so that operators can see why these keys are refused.
    ended: DashMap<Digest, Wall, BuildHasherDefault<DigestHasher>>,
    /// Keys whose hour of last use changed, at most one entry per key and hour.
    used: Mutex<BTreeSet<KeyUse>>,
    /// Keys that expire, by expiry, so that a sweep visits only keys that are due. A key whose expiry changed is listed
    /// twice.
    by_expiry: Mutex<BTreeSet<(Wall, Digest)>>,
    /// Accounts that have no known keys, but whose units of the day must be kept. Otherwise a new account would get these units
    /// from the ledger as unspent.
    without_keys: Mutex<HashMap<ApplicationId, Arc<Account>>>,
    /// Accounts with changed terms, and the number of units that they have to return.
    with_changed_terms: Mutex<Vec<(Arc<Account>, u32)>>,
}

/// Digests are uniformly distributed, so the first bytes of a digest are its hash. Only digests of issued keys are
/// stored, so clients cannot choose hashes.
#[derive(Default)]
pub struct DigestHasher(u64);

impl Hasher for DigestHasher {
    fn write(&mut self, bytes: &[u8]) {
        if let Some(first) = bytes.first_chunk() {
            self.0 = u64::from_le_bytes(*first);
        }
    }

    fn write_usize(&mut self, _length: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

impl KeyDirectory {
    /// An empty directory for keys that other gateways also change.
    pub fn shared(freshness: KeyFreshness) -> Self {
        Self {
            freshness: Arc::new(freshness),
            ..Self::default()
        }
    }

    /// Removes all keys. May be called only before requests are served.
    pub(crate) fn clear(&self) {
        self.entries.clear();
        self.ended.clear();
        self.by_expiry.lock().clear();
    }

    /// Looks up a key.
    pub fn find(&self, digest: &Digest) -> Option<KeyLookup> {
        self.entries.get(digest).map(|entry| KeyLookup {
            account: Arc::clone(&entry.account),
            expires_at: entry.expires_at.instant(),
            // If this hour is outdated, `mark_used` compares again.
            used: UseHour(entry.used.load(Ordering::Relaxed)),
        })
    }

    /// Looks up a key that is valid now.
    pub(crate) fn find_valid(&self, digest: &Digest, now: Wall) -> Result<KeyLookup, KeyFault> {
        let end = match self.find(digest) {
            Some(found) => match found.expires_at {
                Some(end) if end <= now => Some(end),
                Some(_) | None => return Ok(found),
            },
            None => self.ended.get(digest).map(|end| *end),
        };
        Err(match end {
            None => KeyFault::Unknown,
            Some(REVOKED) => KeyFault::Revoked,
            Some(_) => KeyFault::Expired,
        })
    }

    /// Records the use of a key, at most once per key and hour.
    pub(crate) fn mark_used(&self, digest: &Digest, found: &KeyLookup, now: Wall) {
        let hour = UseHour::of(now);
        if hour <= found.used {
            return;
        }
        let before = self
            .entries
            .get(digest)
            // If the first requests of an hour are concurrent, exactly one sees the older value and records the use.
            .map(|entry| entry.used.fetch_max(hour.0, Ordering::Relaxed));
        if before.is_some_and(|before| before < hour.0) {
            let application = found.account.id;
            let at = hour.start();
            self.used.lock().insert(KeyUse {
                application,
                digest: *digest,
                at,
            });
        }
    }

    /// Takes up to `most` recorded uses after a given use, in order.
    pub(crate) fn take_used(&self, after: Option<KeyUse>, most: usize) -> Vec<KeyUse> {
        let mut used = self.used.lock();
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let taken: Vec<KeyUse> = used
            .range((from, Bound::Unbounded))
            .take(most)
            .copied()
            .collect();
        for one in &taken {
            used.remove(one);
        }
        taken
    }

    /// Puts back uses that could not be stored, for another attempt.
    pub(crate) fn put_used_back(&self, uses: Vec<KeyUse>) {
        self.used.lock().extend(uses);
    }

    /// Number of known keys.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no key is known.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Applies an application from the store: adds and removes keys, changes the terms, and keeps the balances. Returns
    /// `false` if its tier is not configured; its keys are then unknown.
    pub fn apply(&self, stored: &StoredApplication, terms: &TermsByTier, day: Day) -> bool {
        let Some(terms) = terms.of(&stored.tier, stored.own) else {
            for key in &stored.keys {
                if let Some((_, removed)) = self.entries.remove(&key.digest) {
                    self.without_keys.lock().insert(stored.id, removed.account);
                }
            }
            return false;
        };
        let known = stored
            .keys
            .iter()
            .find_map(|key| self.find(&key.digest))
            .map(|found| found.account);
        let known = known.or_else(|| self.without_keys.lock().remove(&stored.id));
        let account = match known {
            Some(account) => {
                if let Some(units) = account.set_terms(&terms) {
                    self.list_changed(Arc::clone(&account), units);
                }
                account.set_name(&stored.name);
                account
            }
            None => Arc::new(Account::new(stored, terms, day)),
        };
        for key in &stored.keys {
            self.enter(key, Arc::clone(&account));
        }
        true
    }

    /// Reopens the day of an application if this process has used none of its units.
    pub(crate) fn reopen_unused(&self, stored: &StoredApplication, day: Day) {
        let known = stored.keys.iter().find_map(|key| self.find(&key.digest));
        if let Some(found) = known {
            found.account.reopen_unused(day, stored.granted);
        }
    }

    /// Lists an account whose leases were made under other terms, with the units that it has to return.
    pub(crate) fn list_changed(&self, account: Arc<Account>, units: u32) {
        self.with_changed_terms.lock().push((account, units));
    }

    /// Takes the accounts whose leases were made under other terms.
    pub(crate) fn take_changed(&self) -> Vec<(Arc<Account>, u32)> {
        std::mem::take(&mut *self.with_changed_terms.lock())
    }

    /// Revokes all keys that are no longer stored.
    pub fn revoke_all_except(&self, stored: &HashSet<Digest>) {
        for mut entry in self
            .entries
            .iter_mut()
            .filter(|entry| !stored.contains(entry.key()))
        {
            entry.expires_at = KeyExpiry(REVOKED);
            self.by_expiry.lock().insert((REVOKED, *entry.key()));
        }
    }

    fn enter(&self, key: &StoredKey, account: Arc<Account>) {
        let expires_at = key.revoked_at.map(|_| REVOKED).or(key.expires_at);
        let used = key.last_used_at.map_or(UseHour(0), UseHour::of);
        let entry = DirectoryEntry {
            account,
            expires_at: expires_at.map_or(NEVER, KeyExpiry),
            used: AtomicU32::new(used.0),
        };
        self.ended.remove(&key.digest);
        let before = self.entries.insert(key.digest, entry);
        // The store receives times of use late, so the later of the stored and the previous time is kept.
        if let Some(before) = before
            && let Some(entry) = self.entries.get(&key.digest)
        {
            entry
                .used
                .fetch_max(before.used.into_inner(), Ordering::Relaxed);
        }
        if let Some(expires_at) = expires_at {
            self.by_expiry.lock().insert((expires_at, key.digest));
        }
    }

    /// Removes expired keys if no state is lost. A key stays until the balance of its application equals the balance of
    /// a new application.
    pub fn sweep(&self, now: Now) {
        let is_expired = |entry: &DirectoryEntry| {
            entry
                .expires_at
                .instant()
                .is_some_and(|expires_at| expires_at <= now.wall)
        };
        let is_removable = |_: &Digest, entry: &DirectoryEntry| {
            is_expired(entry) && entry.account.can_be_dropped(now)
        };
        let first_unexpired = (
            now.wall.plus(Duration::from_nanos(1)),
            Digest::from_bytes([0; 32]),
        );
        // The list is unlocked before keys are visited, because `revoke_all_except` locks the list while it holds a
        // shard of the map.
        let due = {
            let mut by_expiry = self.by_expiry.lock();
            let later = by_expiry.split_off(&first_unexpired);
            std::mem::replace(&mut *by_expiry, later)
        };
        self.without_keys
            .lock()
            .retain(|_, account| !account.can_be_dropped(now));
        // The accounts of these keys are still in use, so a later sweep visits the keys again.
        let mut waiting: BTreeSet<_> = due
            .into_iter()
            .filter(|(_, digest)| {
                if let Some((_, removed)) = self.entries.remove_if(digest, is_removable) {
                    self.ended.insert(*digest, removed.expires_at.0);
                    return false;
                }
                self.entries
                    .get(digest)
                    .is_some_and(|entry| is_expired(entry.value()))
            })
            .collect();
        self.by_expiry.lock().append(&mut waiting);
    }

    /// Number of keys that a later sweep will visit.
    #[cfg(test)]
    pub(crate) fn expiring(&self) -> usize {
        self.by_expiry.lock().len()
    }

    /// Applications that have a key and were used on this day.
    pub(crate) fn used_on(&self, day: Day) -> Vec<Arc<Account>> {
        let mut used: Vec<_> = self
            .entries
            .iter()
            .filter(|entry| entry.account.is_used_on(day))
            .map(|entry| Arc::clone(&entry.account))
            .collect();
        used.sort_unstable_by_key(|account| account.id);
        used.dedup_by_key(|account| account.id);
        used
    }

    /// Takes all leased and unspent units out of the accounts. Returns the reports that return these units to the
    /// ledger, and the number of units.
    pub fn drain(&self) -> (Vec<LedgerReport>, u32) {
        // The units of these accounts can no longer be used, but may not have been returned to the ledger yet.
        let changed = self.take_changed();
        let mut units = changed.iter().map(|(_, units)| units).sum();
        let mut changed: HashSet<ApplicationId> =
            changed.iter().map(|(account, _)| account.id).collect();
        // An account without keys may still have units of the day.
        let without_keys: Vec<_> = self.without_keys.lock().values().cloned().collect();
        let with_keys = self.entries.iter().map(|entry| Arc::clone(&entry.account));
        let mut reports = Vec::new();
        for account in with_keys.chain(without_keys) {
            let is_changed = changed.remove(&account.id);
            units += drain_account(&account, is_changed, &mut reports);
        }
        (reports, units)
    }
}

/// Takes the leased and unspent units out of an account. Returns the number of units of today. If `is_changed`, the ledger may
/// not have today's totals.
fn drain_account(account: &Account, is_changed: bool, reports: &mut Vec<LedgerReport>) -> u32 {
    let mut state = account.state();
    let mut report = |day, totals| reports.push(LedgerReport::of_units(account.id, day, totals));
    let ahead = state.take_ahead().and_then(BalanceAhead::last_report);
    for (day, totals) in ahead.into_iter().chain(state.last_report()) {
        report(day, totals);
    }
    let before = state.day();
    let (day, released) = before.release();
    state.set_day(day);
    if released.is_some() || is_changed || state.is_uncertain() {
        report(day.day(), day.final_report());
    }
    before.leased() - day.leased()
}

impl KeyExpiry {
    fn instant(self) -> Option<Wall> {
        (self != NEVER).then_some(self.0)
    }
}

impl UseHour {
    fn of(at: Wall) -> Self {
        Self(u32::try_from(at.seconds() / 3_600).unwrap_or(u32::MAX))
    }

    fn start(self) -> Wall {
        Wall::from_seconds(u64::from(self.0) * 3_600)
    }
}
