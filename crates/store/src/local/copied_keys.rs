//! The copy of applications and key digests of a shared store. It contains neither keys nor quotas.
//!
//! A new copy is written next to the previous one in several transactions, so that units can be reserved in between.
//! The row of the copy states which copy is complete, and up to which change.

use std::io;

use serde::{Deserialize, Serialize};

use super::local_file::{LocalChange, LocalFile, LocalRow};
use crate::{ApplicationPage, Description, FeedPosition, StoredApplication, StoredKey};
use scoregate_base::{
    clock::Wall,
    keys::{ApplicationId, Digest},
    limits::OwnLimits,
};

/// Number of applications per page.
const PAGE: usize = 10_000;
/// Maximum number of applications that one transaction removes from old copies.
const REMOVED_AT_ONCE: i64 = 10_000;

/// The point up to which a copy is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedReading {
    /// Every change up to this position is in the copy.
    pub position: FeedPosition,
    /// The time at which the store was read.
    pub at: Wall,
}

/// The row of the copy: the number of the copy, the source and number of its position, and the time at which the store was read,
/// in milliseconds.
type CopyRow = (u64, String, u64, u64);

/// An application with all of its keys.
#[derive(Deserialize, Serialize)]
struct CopiedApplication {
    id: ApplicationId,
    name: String,
    tier: String,
    own: OwnLimits,
    /// Digests, each with the expiry in milliseconds since 1970; 0 for a revoked key.
    keys: Vec<(Digest, Option<u64>)>,
}

impl LocalFile {
    /// The point up to which the copy is complete; `None` if there is no copy.
    pub fn copied(&self) -> io::Result<Option<CopiedReading>> {
        Ok(self
            .copy_row()?
            .map(|(_, source, number, at)| CopiedReading {
                position: FeedPosition { source, number },
                at: Wall::from_millis(at),
            }))
    }

    /// Checks the structure of the copies, which takes a while.
    pub fn check_copy(&self) -> io::Result<()> {
        self.check("applications")
    }

    /// Passes all applications of the copy to `apply`, in pages.
    pub fn read_copy(&self, mut apply: impl FnMut(&ApplicationPage)) -> io::Result<()> {
        let (copy, ..) = self.copy_row()?.unwrap_or_default();
        let mut page = ApplicationPage::default();
        self.visit("applications", &copy.to_string(), |row| {
            page.applications.push(stored(row.value));
            if page.applications.len() >= PAGE {
                apply(&page);
                page.applications.clear();
            }
        })?;
        apply(&page);
        Ok(())
    }

    /// Begins a new copy, and returns its number. The previous copy stays in use until the new one is finished.
    pub fn begin_copy(&self) -> io::Result<u64> {
        let (before, ..) = self.copy_row()?.unwrap_or_default();
        self.remove_other_copies(before)?;
        Ok(before + 1)
    }

    /// Writes applications of a copy.
    pub fn push_copy(&self, copy: u64, applications: &[StoredApplication]) -> io::Result<()> {
        self.change(|change| put_all(change, copy, applications))
    }

    /// Activates a copy, which contains every change up to `reading`.
    pub fn finish_copy(&self, copy: u64, reading: &CopiedReading) -> io::Result<()> {
        self.append_copy(copy, &[], reading)?;
        self.remove_other_copies(copy)
    }

    /// Writes changed applications to a copy. The copy is then complete up to `reading`.
    pub fn append_copy(
        &self,
        copy: u64,
        changed: &[StoredApplication],
        reading: &CopiedReading,
    ) -> io::Result<()> {
        let FeedPosition { source, number } = &reading.position;
        let row = (copy, source, number, reading.at.millis());
        self.change(|change| {
            put_all(change, copy, changed)?;
            change.put("promises", "copy", "", &row)
        })
    }

    fn copy_row(&self) -> io::Result<Option<CopyRow>> {
        let mut rows: Vec<LocalRow<CopyRow>> = self.read("promises", "copy")?;
        Ok(rows.pop().map(|row| row.value))
    }

    /// Removes all other copies in batches, so that units can be reserved in between.
    fn remove_other_copies(&self, copy: u64) -> io::Result<()> {
        let mut removed = 1;
        while removed > 0 {
            self.change(|change| {
                removed = change.remove_other_copies(&copy.to_string(), REMOVED_AT_ONCE)?;
                Ok(())
            })?;
        }
        Ok(())
    }
}

fn put_all(
    change: &LocalChange<'_>,
    copy: u64,
    applications: &[StoredApplication],
) -> rusqlite::Result<()> {
    let kind = copy.to_string();
    for stored in applications {
        let key = stored.id.to_string();
        change.put("applications", &kind, &key, &copied(stored))?;
    }
    Ok(())
}

fn copied(stored: &StoredApplication) -> CopiedApplication {
    let keys = stored.keys.iter().map(|key| {
        let revoked = key.revoked_at.map(|_| 0);
        (key.digest, revoked.or(key.expires_at.map(Wall::millis)))
    });
    CopiedApplication {
        id: stored.id,
        name: stored.name.clone(),
        tier: stored.tier.clone(),
        own: stored.own,
        keys: keys.collect(),
    }
}

/// The application as the store represents it. Only the fields in the copy are known.
fn stored(copied: CopiedApplication) -> StoredApplication {
    StoredApplication {
        id: copied.id,
        name: copied.name,
        tier: copied.tier,
        own: copied.own,
        limits_until: None,
        description: Description::default(),
        created_at: Wall::default(),
        keys: copied
            .keys
            .into_iter()
            .map(|(digest, end)| StoredKey {
                digest,
                shown: String::new(),
                created_at: Wall::default(),
                expires_at: end.map(Wall::from_millis),
                revoked_at: end.filter(|end| *end == 0).map(Wall::from_millis),
                name: None,
                last_used_at: None,
            })
            .collect(),
        granted: 0,
    }
}
