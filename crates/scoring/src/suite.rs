//! Names of suites, the kinds of tasks, and the axes of scores. `suite_table` has the weights.

use std::fmt;

use serde::{Deserialize, Serialize};

use scoregate_base::words;

/// Maximum length of a name.
const LONGEST: usize = 40;

words! {
    /// An axis of a trial's scores. The order is the same as in the specification and in the scores.
    #[derive(PartialOrd, Ord, Hash)]
    #[expect(missing_docs, reason = "named by `word`")]
    pub enum Axis: word {
        Correctness = "correctness",
        Spec = "spec",
        CodeQuality = "codeQuality",
        Efficiency = "efficiency",
        Stability = "stability",
        Refusal = "refusal",
        Recovery = "recovery",
    }
}

/// The name of a suite: 1 to 40 characters from `a-z`, `0-9` and `-`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Suite {
    /// Padded with zeros, so that names sort like their text.
    text: [u8; LONGEST],
    length: u8,
}

impl Suite {
    /// A suite of the default table.
    pub const CODING: Self = Self::literal(b"coding");
    /// A suite of the default table.
    pub const REASONING: Self = Self::literal(b"reasoning");
    /// A suite of the default table.
    pub const TOOLING: Self = Self::literal(b"tooling");

    /// The suites of the default table, in the order of the table.
    pub const DEFAULT: [Self; 3] = [Self::CODING, Self::REASONING, Self::TOOLING];

    /// Validates a name.
    pub fn new(name: &str) -> Option<Self> {
        let is_plain = name
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
        let is_valid = (1..=LONGEST).contains(&name.len()) && is_plain;
        is_valid.then(|| Self::literal(name.as_bytes()))
    }

    /// The name as text.
    pub fn name(&self) -> &str {
        let text = self
            .text
            .get(..usize::from(self.length))
            .unwrap_or_default();
        std::str::from_utf8(text).unwrap_or_default()
    }

    #[expect(
        clippy::indexing_slicing,
        clippy::cast_possible_truncation,
        reason = "a constant cannot iterate; every name is at most as long as the array"
    )]
    const fn literal(name: &[u8]) -> Self {
        let mut text = [0; LONGEST];
        let mut index = 0;
        while index < name.len() {
            text[index] = name[index];
            index += 1;
        }
        Self {
            text,
            length: index as u8,
        }
    }
}

impl TryFrom<String> for Suite {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        Self::new(&name)
            .ok_or_else(|| format!("{name:?} is not a name; write 1 to 40 of a-z, 0-9 and -"))
    }
}

impl From<Suite> for String {
    fn from(suite: Suite) -> Self {
        suite.name().to_owned()
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_lower_case_words() {
        assert_eq!(Suite::new("coding"), Some(Suite::CODING));
        assert_eq!(Suite::new(&"x".repeat(40)).unwrap().name(), "x".repeat(40));
        for bad in ["", "Coding", "code_quality", "c\u{f6}ding", &"x".repeat(41)] {
            assert_eq!(Suite::new(bad), None, "{bad}");
        }
        assert!(
            Suite::DEFAULT.is_sorted()
                && Suite::new("mmlu").unwrap() < Suite::new("mmlu-pro").unwrap()
        );
    }
}
