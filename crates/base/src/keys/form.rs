//! The format of keys: `<prefix>_<30 base62 characters of randomness><6 base62 characters of CRC32>`.
//!
//! With the checksum, mistyped and guessed keys are refused before any lookup. 30 characters of base62 are 178 bits.
//! This module does not decide whether a key is known.

#![expect(
    clippy::indexing_slicing,
    reason = "both indices are taken modulo the length of the alphabet"
)]

use super::digest::Digest;
use crate::secret::Secret;

/// The digits of keys and ids.
pub const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

const RANDOM: usize = 30;
const CHECK: usize = 6;
/// Number of characters of a key that are stored and shown, so that people can distinguish their keys.
pub const SHOWN_CHARACTERS: usize = 12;

/// The key format of this installation.
#[derive(Clone, Debug)]
pub struct KeyForm {
    lead: String,
    accept_imported: bool,
}

impl KeyForm {
    /// Keys that begin with `prefix_`. With `accept_imported`, any text of 16 to 256 visible ASCII characters is also
    /// looked up.
    pub fn new(prefix: &str, accept_imported: bool) -> Self {
        Self {
            lead: format!("{prefix}_"),
            accept_imported,
        }
    }

    /// Whether keys of other forms are looked up.
    pub const fn accepts_imported(&self) -> bool {
        self.accept_imported
    }

    /// Creates a key with the operating system's random generator. Fails only if the generator fails.
    pub fn mint(&self) -> Result<Secret, getrandom::Error> {
        let mut text = self.lead.clone();
        let end = text.len() + RANDOM;
        while text.len() < end {
            let mut noise = [0u8; 64];
            getrandom::fill(&mut noise)?;
            // Bytes from 248 on are dropped. 248 = 4 × 62, so the remaining bytes are uniformly distributed.
            for byte in noise
                .into_iter()
                .filter(|byte| *byte < 248)
                .take(end - text.len())
            {
                text.push(char::from(BASE62[usize::from(byte % 62)]));
            }
        }
        let check = checksum(&text);
        text.extend(check.map(char::from));
        Ok(Secret::new(text))
    }

    /// The key that is derived from a string, which must be as secret as the key.
    pub fn derive(&self, text: &str) -> Secret {
        let digits = (0_u64..)
            .flat_map(|number| *Digest::of(&format!("{number} {text}")).as_bytes())
            .filter(|byte| *byte < 248)
            .map(|byte| char::from(BASE62[usize::from(byte % 62)]));
        let mut key = self.lead.clone();
        key.extend(digits.take(RANDOM));
        let check = checksum(&key);
        key.extend(check.map(char::from));
        Secret::new(key)
    }

    /// Whether a string should be looked up as a key. The cost is bounded, so clients cannot exhaust the CPU.
    pub fn fits(&self, text: &str) -> bool {
        self.is_ours(text) || (self.accept_imported && is_importable(text))
    }

    /// Whether a string has the form of the keys that this installation creates.
    pub fn is_ours(&self, text: &str) -> bool {
        let Some(rest) = text.strip_prefix(&self.lead) else {
            return false;
        };
        if rest.len() != RANDOM + CHECK || !is_base62(rest) {
            return false;
        }
        text.split_at_checked(text.len() - CHECK)
            .is_some_and(|(body, check)| checksum(body) == *check.as_bytes())
    }

    /// Whether a string contains a key of this form.
    pub fn is_within(&self, text: &str) -> bool {
        self.find_in(text.as_bytes()).next().is_some()
    }

    /// The keys of this form in a text of any encoding, each with its position.
    pub fn find_in<'t>(&self, text: &'t [u8]) -> impl Iterator<Item = (usize, &'t str)> {
        let parts = text.windows(self.length()).enumerate();
        parts
            .filter(move |(_, part)| part.starts_with(self.lead.as_bytes()))
            .filter_map(move |(at, part)| {
                let key = str::from_utf8(part).ok()?;
                self.is_ours(key).then_some((at, key))
            })
    }

    /// The length of keys of this form in bytes.
    pub const fn length(&self) -> usize {
        self.lead.len() + RANDOM + CHECK
    }
}

fn is_base62(text: &str) -> bool {
    // There is no branch per byte, so that the compiler can vectorize the loop.
    text.bytes()
        .fold(true, |all, byte| all & byte.is_ascii_alphanumeric())
}

fn is_importable(text: &str) -> bool {
    (16..=256).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn checksum(body: &str) -> [u8; CHECK] {
    let mut left = crc32fast::hash(body.as_bytes());
    let mut digits = [b'0'; CHECK];
    for digit in digits.iter_mut().rev() {
        *digit = BASE62[(left % 62) as usize];
        left /= 62;
    }
    digits
}

/// The first characters of a key, which may be shown and logged.
pub fn shown_prefix(key: &str) -> &str {
    // At most half of a short key is shown.
    let shown = SHOWN_CHARACTERS.min(key.len() / 2);
    key.get(..shown).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minted_key_fits_and_no_key_with_one_changed_character_does() {
        let form = KeyForm::new("sg_live", false);
        let key = form.mint().unwrap();
        let text = key.expose();
        assert!(form.fits(text), "{text}");
        assert_eq!(text.len(), "sg_live_".len() + 36);
        for at in 0..text.len() {
            let mut typo = text.as_bytes().to_vec();
            typo[at] = if typo[at] == b'x' { b'y' } else { b'x' };
            assert!(
                !form.fits(std::str::from_utf8(&typo).unwrap()),
                "position {at}"
            );
        }
    }

    #[test]
    fn the_same_text_always_gives_the_same_key() {
        let form = KeyForm::new("sg_live", false);
        let [one, same, other] = ["one", "one", "other"].map(|text| form.derive(text));
        assert!(form.is_ours(one.expose()) && form.is_ours(other.expose()));
        assert_eq!(one.expose(), same.expose());
        assert_ne!(one.expose(), other.expose());
    }

    #[test]
    fn other_forms_are_looked_up_only_where_imported_keys_are_accepted() {
        let own = KeyForm::new("sg_live", false);
        let open = KeyForm::new("sg_live", true);
        let foreign = "tp_1234567890abcdef";
        assert!(!own.fits(foreign));
        assert!(open.fits(foreign));
        for bad in [
            "short",
            "with space in the middle",
            &"x".repeat(257),
            "ctrl\u{1}ctrlctrlctrl",
            "ümlautümlautümlaut",
        ] {
            assert!(!open.fits(bad), "{bad}");
        }
    }

    #[test]
    fn keys_are_found_anywhere_in_text_without_false_positives() {
        for prefix in ["sg_live", "a_a"] {
            let form = KeyForm::new(prefix, false);
            let key = form.mint().unwrap();
            let key = key.expose();
            for text in [
                key.to_owned(),
                format!("x-{key}"),
                format!("a_{key}"),
                format!("ü{key}ü"),
                key.repeat(2),
            ] {
                assert!(form.is_within(&text), "{text}");
            }
            for text in [
                "",
                prefix,
                key.strip_prefix('s').or(key.strip_prefix('a')).unwrap(),
                key.split_at(key.len() - 1).0,
                &key.replace(prefix, "other"),
                "ü".repeat(99).as_str(),
            ] {
                assert!(!form.is_within(text), "{text}");
            }
        }
    }

    #[test]
    fn at_most_half_of_a_key_is_shown() {
        assert_eq!(
            shown_prefix("sg_live_abcdefghijklmnopqrstuvwxyz0123456789"),
            "sg_live_abcd"
        );
        assert_eq!(shown_prefix("0123456789abcdef"), "01234567");
    }
}
