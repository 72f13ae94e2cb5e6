//! What is kept of a key: its SHA-256, nothing else.
//!
//! Keys are at least 160 bits of randomness, so a plain hash is enough; a slow one would only help an attacker to
//! keep us busy.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// The SHA-256 of a key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of a key as sent.
    pub fn of(key: &str) -> Self {
        Self(Sha256::digest(key.as_bytes()).into())
    }

    /// A digest as stored.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Reads 64 hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            if !pair.iter().all(u8::is_ascii_hexdigit) {
                return None; // `from_str_radix` would take a sign
            }
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(Self(bytes))
    }

    /// Its first eight bytes as a number: uniform, so it serves as a hash and to spread clients in time.
    pub fn spread(&self) -> u64 {
        self.0.first_chunk().map_or(0, |first| u64::from_le_bytes(*first))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().take(4).try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str("…")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_is_read_back_and_nothing_else_is_taken() {
        let digest = Digest::of("sg_live_x");
        assert_eq!(Digest::from_hex(&digest.to_string()), Some(digest));
        for bad in ["", "00", &"g".repeat(64), &"+1".repeat(32), &"é".repeat(32)] {
            assert_eq!(Digest::from_hex(bad), None, "{bad}");
        }
    }
}
