//! Iterates over a table, and from its other end if it breaks off.

use rusqlite::Connection;

use super::rows;
use crate::dump::{DumpLine, ExportedTable};
use crate::embedded::fault::{FileResult, StoreFault};

/// Terms of the columns of an export.
const TERMS: [&str; 3] = ["digest", "granted", "json_group_array"];

/// Passes every record of a table to `take`, and returns what was left out. A table that breaks off is read from its
/// other end too, so lost records are between two that are named.
pub(super) fn walk(
    store: &Connection,
    table: &'static ExportedTable,
    damaged: bool,
    take: &mut dyn FnMut(DumpLine) -> FileResult<()>,
) -> FileResult<Vec<String>> {
    let mut walk = TableWalk {
        store,
        table,
        damaged,
        take,
        skipped: Vec::new(),
    };
    let ExportedTable {
        kind: name, order, ..
    } = table;
    let (before, broke) = walk.walk_in_order(order, None)?;
    if broke.is_some() {
        let backwards = format!("{} DESC", order.replace(", ", " DESC, "));
        let (after, broke) = walk.walk_in_order(&backwards, before.as_deref())?;
        if let Some(reason) = broke {
            let before = before.unwrap_or("the first".into());
            let after = after.unwrap_or("the last".into());
            walk.skipped.push(format!(
                "{name}: all between {before} and {after}: {reason}"
            ));
        }
    }
    Ok(walk.skipped)
}

struct TableWalk<'w> {
    store: &'w Connection,
    table: &'static ExportedTable,
    damaged: bool,
    take: &'w mut dyn FnMut(DumpLine) -> FileResult<()>,
    skipped: Vec<String>,
}

impl TableWalk<'_> {
    /// Iterates in one direction until the end, or until a record of this name. Returns the last record, and the
    /// error that ended it.
    fn walk_in_order(
        &mut self,
        order: &str,
        until: Option<&str>,
    ) -> FileResult<(Option<String>, Option<String>)> {
        let mut last = None;
        match self.visit(order, until, &mut last) {
            Err(StoreFault::Sql(error)) if self.damaged => Ok((last, Some(error.to_string()))),
            outcome => outcome.map(|()| (last, None)),
        }
    }

    fn visit(
        &mut self,
        order: &str,
        until: Option<&str>,
        last: &mut Option<String>,
    ) -> FileResult<()> {
        let columns = self.table.columns(TERMS).replace("{schema}.", "");
        let line_kind = self.table.kind;
        let mut select = self
            .store
            .prepare(&format!("SELECT {columns} ORDER BY {order}"))?;
        let mut found = select.query([])?;
        while let Some(row) = found.next()? {
            let line = match rows::read(line_kind, row) {
                Err(StoreFault::Record(reason)) if self.damaged => {
                    self.skipped.push(format!("{line_kind}: {reason}"));
                    continue;
                }
                line => line?,
            };
            let label = line.label();
            if until == Some(label.as_str()) {
                return Ok(());
            }
            match (self.take)(line) {
                Err(StoreFault::Record(reason)) if self.damaged => {
                    self.skipped.push(format!("{label}: {reason}"));
                }
                taken => taken?,
            }
            *last = Some(label);
        }
        Ok(())
    }
}
