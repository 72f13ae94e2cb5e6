//! Parameters that the settings define for configured endpoints. Each parameter has a list of words, one of which is the default.

use std::hash::{Hash, Hasher};

/// Maximum number of own parameters per endpoint.
pub const MOST_OWN_PARAMS: usize = 4;

/// A parameter of a configured endpoint.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct OwnParam {
    /// The name in a query.
    pub name: &'static str,
    /// The description, including the default.
    pub meaning: &'static str,
    /// The allowed values, at most 255.
    pub words: &'static [&'static str],
    /// The value if the parameter is omitted.
    pub default: &'static str,
    /// The position among the parameters of the endpoint.
    pub position: usize,
}

/// The words that a request gives for these parameters of an endpoint, by position: 0 for none, `n` for the n-th word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnWords([u8; MOST_OWN_PARAMS]);

impl OwnWords {
    /// These words, with `word` set for `param`. `None` if `word` is not a value of the parameter.
    #[must_use]
    pub fn with(mut self, param: &OwnParam, word: &str) -> Option<Self> {
        let number = param.words.iter().position(|known| *known == word)?;
        *self.0.get_mut(param.position)? = u8::try_from(number + 1).ok()?;
        Some(self)
    }

    /// These words. If they contain no word for `param`, its default is added.
    #[must_use]
    pub fn or_default(self, param: &OwnParam) -> Self {
        if self.word(param).is_some() {
            self
        } else {
            self.with(param, param.default).unwrap_or(self)
        }
    }

    /// The word of a parameter.
    pub fn word(self, param: &OwnParam) -> Option<&'static str> {
        let number = usize::from(*self.0.get(param.position)?);
        param.words.get(number.checked_sub(1)?).copied()
    }

    /// Whether every word that is given in `self` is the same in `other`.
    pub fn fits(self, other: Self) -> bool {
        self.0
            .iter()
            .zip(other.0)
            .all(|(given, there)| *given == 0 || *given == there)
    }
}

impl Hash for OwnWords {
    /// Most documents have no such words, so nothing is hashed.
    fn hash<H: Hasher>(&self, state: &mut H) {
        if *self != Self::default() {
            state.write_u32(u32::from_ne_bytes(self.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CURRENCY: OwnParam = OwnParam {
        name: "currency",
        meaning: "Currency. Default: `usd`.",
        words: &["eur", "usd"],
        default: "usd",
        position: 1,
    };

    #[test]
    fn a_parameter_has_the_given_word_or_its_default() {
        let none = OwnWords::default();
        assert_eq!(
            (none.word(&CURRENCY), none.with(&CURRENCY, "gbp")),
            (None, None)
        );
        assert_eq!(none.or_default(&CURRENCY).word(&CURRENCY), Some("usd"));
        let euros = none.with(&CURRENCY, "eur").unwrap();
        assert_eq!(euros.or_default(&CURRENCY).word(&CURRENCY), Some("eur"));
        assert!(none.fits(euros) && euros.fits(euros) && !euros.fits(none.or_default(&CURRENCY)));
    }
}
