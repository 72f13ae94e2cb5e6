//! The suite table of an archive, with a permanent number for every name.
//!
//! A suite that left the table keeps its number, so its runs stay readable. Every transaction reads the table, so that
//! import, server and export agree.

use std::sync::Arc;

use rusqlite::{Connection, params};

use crate::run::{AxisSet, SuiteEntry, SuiteTable};
use crate::suite::{Axis, Suite};
use scoregate_base::routes::SortBy;

use super::{Trouble, query};

/// `place` is the position in the table; it is missing for suites that are not in it.
const LAYOUT: &str = "
    CREATE TABLE suite (
        number INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        place INTEGER,
        weight REAL,
        axes TEXT,
        feeds TEXT
    ) STRICT;
";

/// The suite table, and the numbers of all names.
pub(super) struct StoredSuites {
    pub(super) table: Arc<SuiteTable>,
    names: Vec<(i64, Suite)>,
}

impl StoredSuites {
    pub(super) fn load(file: &Connection) -> Result<Self, Trouble> {
        let mut names = Vec::new();
        let mut entries = Vec::new();
        let sql =
            "SELECT number, name, weight, axes, feeds, place FROM suite ORDER BY place, number";
        query::each(file, sql, [], |row| {
            let name: String = row.get(1)?;
            let name = Suite::new(&name).ok_or_else(|| damage("a suite has an invalid name"))?;
            names.push((row.get(0)?, name));
            if row.get::<_, Option<i64>>(5)?.is_some() {
                let axes: String = row.get(3)?;
                let feeds: String = row.get(4)?;
                let axes = words(&axes, Axis::parse)?.into_iter().collect::<AxisSet>();
                entries.push(SuiteEntry::new(
                    name,
                    row.get(2)?,
                    axes,
                    &words(&feeds, SortBy::parse)?,
                ));
            }
            Ok(true)
        })?;
        let table =
            SuiteTable::new(entries).map_err(|_| damage("the suite table cannot be decoded"))?;
        Ok(Self {
            table: Arc::new(table),
            names,
        })
    }

    /// The permanent number of a suite. A new name gets one, outside the table.
    pub(super) fn number(&mut self, file: &Connection, suite: Suite) -> rusqlite::Result<i64> {
        if let Some((number, _)) = self.names.iter().find(|(_, name)| *name == suite) {
            return Ok(*number);
        }
        file.execute(
            "INSERT INTO suite (number, name) SELECT max(number) + 1, ?1 FROM suite",
            [suite.name()],
        )?;
        let number = file.last_insert_rowid();
        self.names.push((number, suite));
        Ok(number)
    }

    /// The suite with a number.
    pub(super) fn suite(&self, number: i64) -> Result<Suite, Trouble> {
        let known = self.names.iter().find(|(known, _)| *known == number);
        known
            .map(|(_, name)| *name)
            .ok_or_else(|| damage(&format!("the suite {number} has no name")))
    }

    /// The position in the table of the suite with a number; `None` if it is not in the table.
    pub(super) fn index(&self, number: i64) -> Result<Option<usize>, Trouble> {
        Ok(self.table.index(self.suite(number)?))
    }

    /// Stores another table. Names that are not in it keep their numbers.
    pub(super) fn replace(
        &mut self,
        file: &Connection,
        table: &SuiteTable,
    ) -> rusqlite::Result<()> {
        file.execute(
            "UPDATE suite SET place = NULL, weight = NULL, axes = NULL, feeds = NULL",
            [],
        )?;
        for (place, entry) in (0_i64..).zip(table.suites()) {
            let number = self.number(file, entry.name())?;
            let axes: Vec<&str> = entry.axes().iter().map(Axis::word).collect();
            let feeds: Vec<&str> = entry.feeds().iter().map(|value| value.word()).collect();
            file.execute(
                "UPDATE suite SET place = ?2, weight = ?3, axes = ?4, feeds = ?5 WHERE number = ?1",
                params![
                    number,
                    place,
                    entry.weight(),
                    axes.join(" "),
                    feeds.join(" ")
                ],
            )?;
        }
        self.table = Arc::new(table.clone());
        Ok(())
    }
}

/// Adds the default table to a new archive.
pub(super) fn add(file: &Connection) -> rusqlite::Result<()> {
    file.execute_batch(LAYOUT)?;
    for (number, name) in (0_i64..).zip(Suite::DEFAULT) {
        file.execute(
            "INSERT INTO suite (number, name) VALUES (?1, ?2)",
            params![number, name.name()],
        )?;
    }
    let names = (0..).zip(Suite::DEFAULT).collect();
    StoredSuites {
        table: Arc::default(),
        names,
    }
    .replace(file, &SuiteTable::default())
}

fn words<T>(text: &str, parse: fn(&str) -> Option<T>) -> Result<Vec<T>, Trouble> {
    let all: Option<Vec<T>> = text.split_whitespace().map(parse).collect();
    all.ok_or_else(|| damage("the suite table has an unknown word"))
}

fn damage(what: &str) -> Trouble {
    Trouble::Damage(what.to_owned())
}
