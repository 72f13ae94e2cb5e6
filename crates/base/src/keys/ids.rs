//! Ids of applications and of their owners: a prefix and eleven base62 characters, stored as a number.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use super::form::BASE62;

const DIGITS: usize = 11;

/// The id of an application: `app_` and the digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ApplicationId(u64);

/// The text is not the id of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "an application's id is `app_` and eleven letters or digits, as `scoregate keys list` shows it"
)]
pub struct BadId;

/// The id of a person or organisation that owns applications: `own_` and the digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OwnerId(u64);

/// The text is not the id of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "an account's id is `own_` and eleven letters or digits, as `scoregate accounts list` shows it"
)]
pub struct BadOwnerId;

impl ApplicationId {
    /// Creates an id with the operating system's random generator.
    pub fn mint() -> Result<Self, getrandom::Error> {
        getrandom::u64().map(Self)
    }

    /// The id as a number.
    pub const fn number(self) -> u64 {
        self.0
    }
}

impl OwnerId {
    /// Creates an id with the operating system's random generator.
    pub fn mint() -> Result<Self, getrandom::Error> {
        getrandom::u64().map(Self)
    }
}

impl fmt::Display for ApplicationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_id(f, "app_", self.0)
    }
}

impl fmt::Display for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_id(f, "own_", self.0)
    }
}

impl Serialize for ApplicationId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl Serialize for OwnerId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl FromStr for ApplicationId {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        read_id("app_", text).map(Self).ok_or(BadId)
    }
}

impl FromStr for OwnerId {
    type Err = BadOwnerId;

    fn from_str(text: &str) -> Result<Self, BadOwnerId> {
        read_id("own_", text).map(Self).ok_or(BadOwnerId)
    }
}

impl<'de> Deserialize<'de> for ApplicationId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for OwnerId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(D::Error::custom)
    }
}

fn write_id(f: &mut fmt::Formatter<'_>, prefix: &str, number: u64) -> fmt::Result {
    let mut left = number;
    let mut digits = [0u8; DIGITS];
    for digit in digits.iter_mut().rev() {
        let index = usize::try_from(left % 62).unwrap_or(0);
        *digit = BASE62.get(index).copied().unwrap_or(b'0');
        left /= 62;
    }
    f.write_str(prefix)?;
    digits
        .into_iter()
        .try_for_each(|digit| fmt::Write::write_char(f, char::from(digit)))
}

fn read_id(prefix: &str, text: &str) -> Option<u64> {
    let digits = text
        .strip_prefix(prefix)
        .filter(|rest| rest.len() == DIGITS)?;
    digits.bytes().try_fold(0u64, |sum, digit| {
        sum.checked_mul(62)?.checked_add(u64::from(value(digit)?))
    })
}

/// The value of a digit of [`BASE62`]. It is computed, not searched, because a million ids may be read at startup.
const fn value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'A'..=b'Z' => Some(digit - b'A' + 10),
        b'a'..=b'z' => Some(digit - b'a' + 36),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_id_is_read_back_as_it_was_written(number: u64) {
            let id = ApplicationId(number);
            prop_assert_eq!(id.to_string().parse(), Ok(id));
            let owner = OwnerId(number);
            prop_assert_eq!(owner.to_string().parse(), Ok(owner));
            prop_assert_eq!(id.to_string().parse::<OwnerId>(), Err(BadOwnerId));
        }

        #[test]
        fn arbitrary_text_does_not_panic(text in "\\PC*") {
            let _answer: Result<ApplicationId, BadId> = text.parse();
        }
    }
}
