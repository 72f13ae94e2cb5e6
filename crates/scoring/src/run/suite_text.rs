//! The suite table as TOML and as a line of an export, and the version of the method with it.

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use scoregate_base::routes::SortBy;

use super::suite_table::{SuiteEntry, SuiteTable};
use super::{Axis, BadRun, Suite};
use crate::method;

/// Bytes of the table's digest in the version.
const DIGEST_BYTES: usize = 4;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenTable {
    suite: Vec<WrittenSuite>,
}

/// The line of an export.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct SuiteTableLine {
    suites: Vec<WrittenSuite>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct WrittenSuite {
    name: String,
    weight: f64,
    axes: Vec<String>,
    feeds: Vec<String>,
}

impl SuiteTable {
    /// Parses a table.
    pub fn read(text: &str) -> Result<Self, BadRun> {
        let written: WrittenTable =
            toml::from_str(text).map_err(|error| not_a_table(text, &error))?;
        Self::of(written.suite)
    }

    fn of(written: Vec<WrittenSuite>) -> Result<Self, BadRun> {
        let suites = written
            .into_iter()
            .enumerate()
            .map(|(index, suite)| suite.read(index));
        Self::new(suites.collect::<Result<_, _>>()?)
    }

    /// Parses a line of an export.
    pub(crate) fn read_line(line: &str) -> Result<Self, BadRun> {
        Self::of(BadRun::parse::<SuiteTableLine>(line)?.suites)
    }

    /// Writes it as a line of an export.
    pub fn write_line(&self) -> String {
        let suites = self.suites().iter().map(WrittenSuite::of).collect();
        serde_json::to_string(&SuiteTableLine { suites }).expect("it is text and finite numbers")
    }

    /// Writes it in the format that [`Self::read`] parses. Equal tables have the same text.
    pub fn write(&self) -> String {
        let text = |suite: &SuiteEntry| {
            let WrittenSuite {
                name,
                weight,
                axes,
                feeds,
            } = WrittenSuite::of(suite);
            format!(
                "[[suite]]\nname = \"{name}\"\nweight = {weight}\naxes = {axes:?}\nfeeds = {feeds:?}\n"
            )
        };
        self.suites()
            .iter()
            .map(text)
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// The version of the method with this table: that of the method for the default table; otherwise with the digest
    /// of its text.
    pub fn method_version(&self) -> String {
        if *self == Self::default() {
            return method::METHOD_VERSION.to_owned();
        }
        let digest = Sha256::digest(self.write());
        let digest = HEXLOWER.encode(digest.get(..DIGEST_BYTES).unwrap_or_default());
        format!("{}+{digest}", method::METHOD_VERSION)
    }
}

impl WrittenSuite {
    fn of(suite: &SuiteEntry) -> Self {
        Self {
            name: suite.name_text().to_owned(),
            weight: suite.weight(),
            axes: suite
                .axes()
                .iter()
                .map(|axis| axis.word().to_owned())
                .collect(),
            feeds: suite
                .feeds()
                .iter()
                .map(|value| value.word().to_owned())
                .collect(),
        }
    }

    fn read(self, index: usize) -> Result<SuiteEntry, BadRun> {
        let field = |name: &str| format!("suite[{index}].{name}");
        let rule = format!(
            "{:?} is not a name; write 1 to 40 of a-z, 0-9 and -",
            self.name
        );
        let name = Suite::new(&self.name).ok_or_else(|| BadRun::new(field("name"), rule))?;
        let axes = words(
            &field("axes"),
            &self.axes,
            Axis::ALL.map(|axis| (axis.word(), axis)),
        )?;
        let feeds = words(
            &field("feeds"),
            &self.feeds,
            SortBy::ALL.map(|value| (value.word(), value)),
        )?;
        Ok(SuiteEntry::new(
            name,
            self.weight,
            axes.into_iter().collect(),
            &feeds,
        ))
    }
}

fn words<T: Copy + PartialEq, const N: usize>(
    field: &str,
    written: &[String],
    known: [(&'static str, T); N],
) -> Result<Vec<T>, BadRun> {
    let mut found = Vec::with_capacity(written.len());
    for word in written {
        let value = known
            .iter()
            .find(|(name, _)| name == word)
            .map(|(_, value)| *value);
        let value = value.ok_or_else(|| {
            let known = known.map(|(name, _)| name).join(", ");
            BadRun::new(field, format!("{word:?} is unknown; write some of {known}"))
        })?;
        if found.contains(&value) {
            return Err(BadRun::new(
                field,
                format!("{word:?} is given twice; keep one"),
            ));
        }
        found.push(value);
    }
    Ok(found)
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
            SuiteTable::read(OTHER).unwrap(),
            SuiteTable::read(&thirds).unwrap(),
        ] {
            assert_eq!(SuiteTable::read(&table.write()).unwrap(), table);
            assert_eq!(SuiteTable::read_line(&table.write_line()).unwrap(), table);
        }
        assert!(
            SuiteTable::read(OTHER)
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
        let version = |text: &str| SuiteTable::read(text).unwrap().method_version();
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
            ("mmlu", "MMLU", "suite[0].name", "write 1 to 40 of a-z"),
            ("= 3", "= -3", "suite[0].weight", "above 0"),
            ("= 3", "= \"3\"", "line 3", "expected f64"),
            (
                "\"spec\"",
                "\"style\"",
                "suite[0].axes",
                "write some of correctness, spec",
            ),
            (
                "\"spec\"",
                "\"spec\", \"spec\"",
                "suite[0].axes",
                "given twice",
            ),
            ("\"spec\"", "", "suite[0].axes", "at least one axis"),
            (
                "\"combined\"",
                "\"quality\"",
                "suite[0].feeds",
                "write some of combined, reasoning",
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
            let bad = SuiteTable::read(&OTHER.replacen(from, to, 1)).unwrap_err();
            assert!(
                bad.field == field && bad.problem.contains(problem),
                "{to}: {bad}"
            );
        }
        assert_eq!(SuiteTable::read("").unwrap_err().field, "line 1");
    }
}
