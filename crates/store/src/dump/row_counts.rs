//! The number of exported or imported rows.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

/// The number of rows of each table that is not empty.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(transparent)]
pub struct RowCounts(BTreeMap<String, u64>);

impl RowCounts {
    /// Number of rows of a table.
    pub fn of_table(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or_default()
    }

    pub(crate) fn count(&mut self, table: &str) {
        match self.0.get_mut(table) {
            Some(rows) => *rows += 1,
            None => drop(self.0.insert(table.into(), 1)),
        }
    }
}

impl fmt::Display for RowCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tables: Vec<String> = self
            .0
            .iter()
            .map(|(table, rows)| format!("{table} {rows}"))
            .collect();
        f.write_str(&tables.join(", "))
    }
}
