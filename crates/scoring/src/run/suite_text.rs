//! The suite table as TOML and as a line of an export, and the method version that includes it.

use data_encoding::HEXLOWER;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use scoregate_base::routes::SortBy;

use super::{
    BadRun,
    suite_table::{SuiteEntry, SuiteTable},
};
use crate::{method, suite::Axis};

/// Number of bytes of the table's digest in the version.
const DIGEST_BYTES: usize = 4;

/// A table before it is validated. An export calls the list `suites`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListedSuites {
    #[serde(alias = "suites")]
    suite: Vec<SuiteEntry>,
}

impl SuiteTable {
    /// Parses a table.
    pub fn parse(text: &str) -> Result<Self, BadRun> {
        let listed: ListedSuites =
            toml::from_str(text).map_err(|error| not_a_table(text, &error))?;
        Self::new(listed.suite)
    }

    /// Parses a line of an export.
    pub(crate) fn parse_line(line: &str) -> Result<Self, BadRun> {
        let listed: ListedSuites = BadRun::parse(line)?;
        Self::new(listed.suite)
    }

    /// Writes the table as a line of an export.
    pub fn write_line(&self) -> String {
        serde_json::to_string(self).expect("it is text and finite numbers")
    }

    /// Writes the table in the format that [`Self::parse`] reads. Equal tables have the same text.
    pub fn write(&self) -> String {
        let suites: Vec<String> = self.suites().iter().map(text).collect();
        suites.join("\n")
    }

    /// The version of the method with this table: `METHOD_VERSION` for the default table, otherwise with the
    /// digest of the table appended.
    pub fn method_version(&self) -> String {
        if *self == Self::default() {
            return method::METHOD_VERSION.to_owned();
        }
        let digest = Sha256::digest(self.write());
        let digest = HEXLOWER.encode(digest.get(..DIGEST_BYTES).unwrap_or_default());
        format!("{}+{digest}", method::METHOD_VERSION)
    }
}

fn text(suite: &SuiteEntry) -> String {
    let name = suite.name();
    let weight = suite.weight();
    let axes: Vec<&str> = suite.axes().iter().map(Axis::word).collect();
    let feeds: Vec<&str> = suite.feeds().iter().copied().map(SortBy::word).collect();
    format!("[[suite]]\nname = \"{name}\"\nweight = {weight}\naxes = {axes:?}\nfeeds = {feeds:?}\n")
}

fn not_a_table(text: &str, error: &toml::de::Error) -> BadRun {
    let before = error
        .span()
        .and_then(|span| text.get(..span.start))
        .unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let problem = error.message().replace('\n', ", ");
    let remedy = "write a [[suite]] for each, with `name`, `weight`, `axes` and `feeds`";
    BadRun::new(format!("line {line}"), format!("{problem}; {remedy}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OTHER: &str = "[[suite]]\nname = \"mmlu\"\nweight = 3\naxes = [\"spec\"]\nfeeds = [\"combined\", \"7axis\"]\n";

    #[test]
    fn tables_round_trip_through_their_text() {
        let thirds = ["a", "b", "c"]
            .map(|name| OTHER.replace("mmlu", name))
            .concat();
        for table in [
            SuiteTable::default(),
            SuiteTable::parse(OTHER).unwrap(),
            SuiteTable::parse(&thirds).unwrap(),
        ] {
            assert_eq!(SuiteTable::parse(&table.write()).unwrap(), table);
            assert_eq!(SuiteTable::parse_line(&table.write_line()).unwrap(), table);
        }
        assert!(
            SuiteTable::parse(OTHER)
                .unwrap()
                .write()
                .contains("\nweight = 1\n")
        );
    }

    #[test]
    fn only_another_table_has_a_digest_in_its_version() {
        assert_eq!(
            SuiteTable::default().method_version(),
            method::METHOD_VERSION
        );
        let version = |text: &str| SuiteTable::parse(text).unwrap().method_version();
        let digest = version(OTHER);
        let one = version(&OTHER.replace("spec", "refusal"));
        assert!(
            digest.starts_with(&format!("{}+", method::METHOD_VERSION)),
            "{digest}"
        );
        assert_eq!(digest.len(), method::METHOD_VERSION.len() + 9);
        assert_ne!(digest, one);
        assert_eq!(
            version(&OTHER.replace("= 3", "= 7.5")),
            digest,
            "a single weight is always 1"
        );
    }

    #[test]
    fn every_error_names_its_field_and_the_remedy() {
        for (from, to, field, problem) in [
            ("mmlu", "MMLU", "line 2", "write 1 to 40 of a-z"),
            ("= 3", "= -3", "suite[0].weight", "above 0"),
            ("= 3", "= \"3\"", "line 3", "expected f64"),
            (
                "\"spec\"",
                "\"style\"",
                "line 4",
                "expected one of `correctness`, `spec`",
            ),
            ("\"spec\"", "\"spec\", \"spec\"", "line 4", "given twice"),
            ("\"spec\"", "", "suite[0].axes", "at least one axis"),
            (
                "\"combined\"",
                "\"quality\"",
                "line 5",
                "expected one of `combined`, `reasoning`",
            ),
            ("weight = 3\n", "", "line 1", "missing field `weight`"),
            ("name", "nick = 1\nname", "line 2", "unknown field `nick`"),
            (
                "[[suite]]",
                "[[suite]",
                "line 1",
                "write a [[suite]] for each",
            ),
        ] {
            let bad = SuiteTable::parse(&OTHER.replacen(from, to, 1)).unwrap_err();
            assert!(
                bad.field == field && bad.problem.contains(problem),
                "{to}: {bad}"
            );
        }
        assert_eq!(SuiteTable::parse("").unwrap_err().field, "line 1");
    }
}
