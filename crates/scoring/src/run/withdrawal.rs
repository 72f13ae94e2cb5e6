//! Withdrawn runs, and the reason of a change. A withdrawal is a line of its own in an export, beside the lines of runs.

use serde::{Deserialize, Serialize};

use scoregate_base::clock::Wall;

use super::written::instant;
use super::{BadRun, RunId};

/// Maximum length of a reason, in characters.
const LONGEST_REASON: usize = 500;
/// Maximum length of the name of a user, in bytes.
const LONGEST_ACTOR: usize = 128;

/// Why something was withdrawn, corrected or retracted: one line of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeReason(String);

/// The user who changes something, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeAuthor {
    /// The user.
    pub actor: String,
    /// The reason.
    pub reason: ChangeReason,
}

/// A withdrawn run. It counts nowhere, and its id is not used again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withdrawal {
    /// The run.
    pub id: RunId,
    /// When it was withdrawn.
    pub at: Wall,
    /// The user.
    pub actor: String,
    /// The reason.
    pub reason: ChangeReason,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct WithdrawalLine {
    withdrawn: WrittenWithdrawal,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct WrittenWithdrawal {
    id: String,
    at: String,
    by: String,
    reason: String,
}

impl ChangeReason {
    /// Validates a reason.
    pub fn new(text: &str) -> Result<Self, BadRun> {
        let problem = if text.trim().is_empty() {
            "is empty; write why it is changed".into()
        } else if text.chars().any(char::is_control) {
            "has a control character; write one line of text".into()
        } else if text.chars().count() > LONGEST_REASON {
            format!("is longer than {LONGEST_REASON} characters")
        } else {
            return Ok(Self(text.to_owned()));
        };
        Err(BadRun::new("reason", problem))
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Withdrawal {
    /// Parses a line of an export; `now` limits its time.
    pub(crate) fn read(line: &str, now: Wall) -> Result<Self, BadRun> {
        let WrittenWithdrawal { id, at, by, reason } =
            BadRun::parse::<WithdrawalLine>(line)?.withdrawn;
        let withdrawal = || {
            let id = RunId::new(&id).ok_or_else(|| BadRun::new("id", "write the id of a run"))?;
            let at = instant(&at, now).map_err(|bad| BadRun {
                field: "at".into(),
                ..bad
            })?;
            Ok(Self {
                id,
                at,
                actor: actor("by", &by)?,
                reason: ChangeReason::new(&reason)?,
            })
        };
        withdrawal().map_err(|bad: BadRun| bad.within("withdrawn"))
    }

    /// Writes it as a line of an export.
    pub fn write(&self) -> String {
        let withdrawn = WrittenWithdrawal {
            id: self.id.to_string(),
            at: self.at.rfc3339(),
            by: self.actor.clone(),
            reason: self.reason.as_str().into(),
        };
        serde_json::to_string(&WithdrawalLine { withdrawn }).expect("it is text")
    }
}

/// Validates the name of a user.
pub(crate) fn actor(field: &str, text: &str) -> Result<String, BadRun> {
    if !(1..=LONGEST_ACTOR).contains(&text.len())
        || !text.bytes().all(|byte| byte.is_ascii_graphic())
    {
        return Err(BadRun::new(
            field,
            format!("write 1 to {LONGEST_ACTOR} visible ASCII characters"),
        ));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"withdrawn":{"id":"r-1","at":"2026-11-21T11:02:03.456Z","by":"cli:anna","reason":"wrong \"key\""}}"#;

    fn now() -> Wall {
        Wall::parse_rfc3339("2026-11-21T12:00:00Z").unwrap()
    }

    #[test]
    fn withdrawals_round_trip_through_their_line_format() {
        for line in [LINE.to_owned(), LINE.replace("{\"", " {\t\"")] {
            assert_eq!(Withdrawal::read(&line, now()).unwrap().write(), LINE);
        }
    }

    #[test]
    fn every_error_of_a_withdrawal_names_its_field_and_the_remedy() {
        for (from, to, field, problem) in [
            (
                "\"r-1\"",
                "\"r 1\"",
                "withdrawn.id",
                "write the id of a run",
            ),
            (
                "2026-11-21T11",
                "2026-11-21T13",
                "withdrawn.at",
                "is in the future",
            ),
            (
                "2026-11-21T11:02:03.456Z",
                "noon",
                "withdrawn.at",
                "write one such as",
            ),
            ("cli:anna", "", "withdrawn.by", "visible ASCII"),
            ("wrong", "wrong\\n", "withdrawn.reason", "one line of text"),
            ("wrong \\\"key\\\"", " ", "withdrawn.reason", "write why"),
            ("\"reason\"", "\"note\"", "withdrawn.note", "unknown field"),
            (
                ",\"by\":\"cli:anna\"",
                "",
                "withdrawn",
                "the field `by` is missing",
            ),
            ("}}", "},\"id\":1}", "id", "unknown field"),
            ("}}", "}}}", "line", "unexpected text"),
        ] {
            let line = LINE.replacen(from, to, 1);
            assert_ne!(line, LINE, "{from}");
            let bad = Withdrawal::read(&line, now()).expect_err(&line);
            assert!(
                bad.field == field && bad.problem.contains(problem),
                "{to}: {bad}"
            );
        }
        assert!(ChangeReason::new(&"x".repeat(501)).is_err());
    }
}
