//! The SHA-256 of a key, the only form in which keys are stored.
//!
//! Keys have at least 160 bits of randomness, so a plain hash is sufficient. A slow hash would help attackers exhaust
//! the CPU.

use std::fmt;

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use sha2::{Digest as _, Sha256};

/// The SHA-256 of a key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of a key.
    pub fn of(key: &str) -> Self {
        Self(Sha256::digest(key.as_bytes()).into())
    }

    /// A stored digest.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes of the digest.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Parses 64 hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        HEXLOWER_PERMISSIVE
            .decode(text.as_bytes())
            .ok()?
            .try_into()
            .ok()
            .map(Self)
    }

    /// The first eight bytes as a number. It is uniformly distributed, so it can be used as a hash and to spread
    /// clients over time.
    pub fn spread(&self) -> u64 {
        self.0
            .first_chunk()
            .map_or(0, |first| u64::from_le_bytes(*first))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Self::from_hex(&text).ok_or_else(|| D::Error::custom("write 64 hexadecimal digits"))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        HEXLOWER.encode_display(&self.0).fmt(f)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}…", HEXLOWER.encode_display(&self.0[..4]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hexadecimal_text_is_parsed() {
        let digest = Digest::of("sg_live_x");
        assert_eq!(Digest::from_hex(&digest.to_string()), Some(digest));
        for bad in ["", "00", &"g".repeat(64), &"+1".repeat(32), &"é".repeat(32)] {
            assert_eq!(Digest::from_hex(bad), None, "{bad}");
        }
    }
}
