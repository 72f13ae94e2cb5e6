//! Converts values of settings to the types that components use.

use std::{net::SocketAddr, num::NonZeroU32, path::PathBuf, time::Duration};

use toml::Value;

use scoregate_base::clock::Wall;

use super::{
    settings::ValueKind,
    words::{duration, size},
};

/// A type that a setting can have.
pub trait SettingValue: Sized {
    /// The value as this type. `None` if it is not a value of this kind.
    fn read(value: &Value, kind: ValueKind) -> Option<Self>;
}

impl SettingValue for bool {
    fn read(value: &Value, _: ValueKind) -> Option<Self> {
        value.as_bool()
    }
}

impl SettingValue for String {
    /// A non-empty string on one line. A secret is any string.
    fn read(value: &Value, kind: ValueKind) -> Option<Self> {
        value
            .as_str()
            .filter(|text| match kind {
                ValueKind::Words(words) => words.contains(text),
                ValueKind::Text | ValueKind::Path => {
                    !text.trim().is_empty() && !text.contains(char::is_control)
                }
                ValueKind::Secret
                | ValueKind::Address
                | ValueKind::Flag
                | ValueKind::Number(..)
                | ValueKind::Duration
                | ValueKind::Size
                | ValueKind::Networks
                | ValueKind::Texts
                | ValueKind::Instant => true,
            })
            .map(Self::from)
    }
}

impl SettingValue for PathBuf {
    fn read(value: &Value, _: ValueKind) -> Option<Self> {
        let file = value.as_str().filter(|file| !file.is_empty());
        file.map(Self::from)
    }
}

impl SettingValue for SocketAddr {
    fn read(value: &Value, _: ValueKind) -> Option<Self> {
        value.as_str()?.parse().ok()
    }
}

impl SettingValue for Duration {
    fn read(value: &Value, _: ValueKind) -> Option<Self> {
        duration(value.as_str()?)
    }
}

impl SettingValue for Wall {
    /// A string or a TOML datetime.
    fn read(value: &Value, _: ValueKind) -> Option<Self> {
        match value.as_datetime() {
            Some(at) => Self::parse_rfc3339(&at.to_string()),
            None => Self::parse_rfc3339(value.as_str()?),
        }
    }
}

impl SettingValue for Vec<String> {
    fn read(value: &Value, _: ValueKind) -> Option<Self> {
        value
            .as_array()?
            .iter()
            .map(|one| one.as_str().map(str::to_owned))
            .collect()
    }
}

impl SettingValue for Vec<Value> {
    fn read(value: &Value, _: ValueKind) -> Option<Self> {
        value.as_array().cloned()
    }
}

impl SettingValue for u64 {
    /// A number within its bounds, or a size in bytes.
    fn read(value: &Value, kind: ValueKind) -> Option<Self> {
        if kind == ValueKind::Size {
            return size(value.as_str()?);
        }
        let number: Self = value.as_integer()?.try_into().ok()?;
        let is_outside =
            matches!(kind, ValueKind::Number(least, most) if number < least || number > most);
        (!is_outside).then_some(number)
    }
}

/// Implements the trait for other number types, with the same bounds.
macro_rules! numbers {
    ($($number:ty),+) => {
        $(impl SettingValue for $number {
            fn read(value: &Value, kind: ValueKind) -> Option<Self> {
                u64::read(value, kind)?.try_into().ok()
            }
        })+
    };
}

numbers!(u8, u32, usize);

impl SettingValue for NonZeroU32 {
    fn read(value: &Value, kind: ValueKind) -> Option<Self> {
        Self::new(u32::read(value, kind)?)
    }
}
