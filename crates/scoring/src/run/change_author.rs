//! The user who deletes a run or an incident, and the reason.

use serde::{Deserialize, Serialize};

use super::BadRun;

/// Maximum length of a reason, in characters.
const LONGEST_REASON: usize = 500;

/// The reason for a deletion: one line of text.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
pub struct ChangeReason(String);

/// The user who deletes a run or an incident, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct ChangeAuthor {
    /// The user.
    #[serde(rename = "retractedBy")]
    pub actor: String,
    /// The reason.
    pub reason: ChangeReason,
}

impl ChangeReason {
    /// Validates a reason.
    pub fn new(text: &str) -> Result<Self, BadRun> {
        let problem = if text.trim().is_empty() {
            "is empty; write why it is deleted".into()
        } else if text.chars().any(char::is_control) {
            "has a control character; write one line of text".into()
        } else if text.chars().count() > LONGEST_REASON {
            format!("is longer than {LONGEST_REASON} characters")
        } else {
            return Ok(Self(text.to_owned()));
        };
        Err(BadRun::new("reason", problem))
    }

    /// The reason as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_one_short_line() {
        assert!(ChangeReason::new("wrong key").is_ok());
        for bad in ["", " ", "two\nlines", &"x".repeat(501)] {
            assert!(ChangeReason::new(bad).is_err(), "{bad}");
        }
    }
}
