//! The lines of a local copy: checksum, number, and JSON.
//!
//! The number makes lost, repeated and reordered lines visible. Keys are their digests.

use std::io;

use serde::{Deserialize, Serialize};

use crate::durable_file::checksum;
use crate::{Description, FeedPosition, OwnLimits, StoredApplication, StoredKey};
use scoregate_base::clock::Wall;
use scoregate_base::keys::Digest;

use super::CopiedReading;

pub(super) const FORMAT: &str = "scoregate-keys";
pub(super) const VERSION: u32 = 1;
/// Maximum number of bytes before the JSON of a line.
const PREFIX: usize = 8 + 1 + 20 + 1;
/// The JSON of a line that ends a write.
const READING: &[u8] = b"{\"read\":";

/// The content of a line.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum CopyLine {
    /// The first line.
    Begin {
        format: String,
        version: u32,
    },
    Application(CopiedApplication),
    /// The copy is complete up to here.
    Read {
        source: String,
        number: u64,
        at: u64,
    },
}

/// An application with all of its keys. A later line of the same application replaces it.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CopiedApplication {
    id: String,
    name: String,
    tier: String,
    minute: Option<u32>,
    day: Option<u32>,
    /// Digests with the milliseconds since 1970 at which they expire; 0 if they are revoked.
    keys: Vec<(String, Option<u64>)>,
}

impl CopyLine {
    pub(super) fn application(stored: &StoredApplication) -> Self {
        let end = |key: &StoredKey| {
            key.revoked_at
                .map(|_| 0)
                .or(key.expires_at.map(Wall::millis))
        };
        let keys = stored
            .keys
            .iter()
            .map(|key| (key.digest.to_string(), end(key)));
        Self::Application(CopiedApplication {
            id: stored.id.to_string(),
            name: stored.name.clone(),
            tier: stored.tier.clone(),
            minute: stored.own.minute,
            day: stored.own.day,
            keys: keys.collect(),
        })
    }

    pub(super) fn reading(reading: &CopiedReading) -> Self {
        let FeedPosition { source, number } = reading.position.clone();
        Self::Read {
            source,
            number,
            at: reading.at.millis(),
        }
    }

    /// Appends the line to `text`.
    pub(super) fn write(&self, number: u64, text: &mut Vec<u8>) -> io::Result<()> {
        let content = format!("{number} {}", serde_json::to_string(self)?);
        text.extend_from_slice(format!("{} {content}\n", checksum(content.as_bytes())).as_bytes());
        Ok(())
    }
}

impl CopiedApplication {
    /// As stored. Only the fields of a copy are known.
    pub(super) fn into_stored(self) -> Option<StoredApplication> {
        let key = |(digest, end): (String, Option<u64>)| {
            Some(StoredKey {
                digest: Digest::from_hex(&digest)?,
                shown: String::new(),
                created_at: Wall::default(),
                expires_at: end.map(Wall::from_millis),
                revoked_at: end.filter(|end| *end == 0).map(Wall::from_millis),
                name: None,
                last_used_at: None,
            })
        };
        Some(StoredApplication {
            id: self.id.parse().ok()?,
            name: self.name,
            tier: self.tier,
            own: OwnLimits {
                minute: self.minute,
                day: self.day,
            },
            limits_until: None,
            description: Description::default(),
            created_at: Wall::default(),
            keys: self.keys.into_iter().map(key).collect::<Option<_>>()?,
            granted: 0,
        })
    }
}

/// The number and the JSON of a line with its line break; `None` if the checksum is wrong.
pub(super) fn checked(text: &[u8]) -> Option<(u64, &[u8])> {
    let (sum, content) = text.strip_suffix(b"\n")?.split_at_checked(8)?;
    let content = content.strip_prefix(b" ")?;
    if checksum(content).as_bytes() != sum {
        return None;
    }
    let space = content.iter().position(|byte| *byte == b' ')?;
    let (number, json) = content.split_at_checked(space)?;
    Some((
        std::str::from_utf8(number).ok()?.parse().ok()?,
        json.strip_prefix(b" ")?,
    ))
}

/// Whether a line ends a write.
pub(super) fn ends_write(json: &[u8]) -> bool {
    json.starts_with(READING)
}

/// Whether a wrong line contains a whole line that ends a write: a line break before it may be lost.
pub(super) fn contains_end(text: &[u8]) -> bool {
    let json = text
        .windows(READING.len())
        .rposition(|window| window == READING);
    json.is_some_and(|json| {
        let is_whole = |start| {
            text.get(start..)
                .and_then(checked)
                .is_some_and(|(_, json)| ends_write(json))
        };
        (json.saturating_sub(PREFIX)..json).any(is_whole)
    })
}
