//! Reads one table: `[tiers.NAME]` and the others under names that the file chooses, or an item of a list.

use toml::{Table, Value};

use super::config_reader::ConfigReader;

/// A table and its place. Problems are reported with the place, the value and a remedy.
pub(super) struct TableReader<'r, 'w> {
    reading: &'r mut ConfigReader<'w>,
    place: String,
    /// `None` for a table whose settings have separate paths.
    table: Option<&'w Table>,
}

impl<'r, 'w> TableReader<'r, 'w> {
    /// The table at a path of the file.
    pub(super) fn at(reading: &'r mut ConfigReader<'w>, place: impl Into<String>) -> Self {
        Self {
            reading,
            place: place.into(),
            table: None,
        }
    }

    /// An item of a list, if it is a table with these settings only.
    pub(super) fn item(
        &mut self,
        list: &str,
        number: usize,
        value: &'w Value,
        settings: &[&str],
        remedy: &str,
    ) -> Option<TableReader<'_, 'w>> {
        let place = format!("{list}[{number}]");
        let Some(table) = value.as_table() else {
            let path = self.path(&place);
            self.reading.problem(&path, Some(value), remedy);
            return None;
        };
        let mut item = self.within(&place, table);
        for unknown in table.keys().filter(|key| !settings.contains(&key.as_str())) {
            let remedy = format!("unknown setting; write one of {}", settings.join(", "));
            item.problem(unknown, remedy);
        }
        Some(item)
    }

    /// A table that is the value of a setting.
    pub(super) fn within(&mut self, setting: &str, table: &'w Table) -> TableReader<'_, 'w> {
        TableReader {
            place: self.path(setting),
            reading: &mut *self.reading,
            table: Some(table),
        }
    }

    /// The given value of a setting.
    pub(super) fn value(&self, setting: &str) -> Option<&'w Value> {
        match self.table {
            Some(table) => table.get(setting),
            None => self.reading.maybe(&self.path(setting)),
        }
    }

    /// A setting that may be missing. An invalid one is reported.
    pub(super) fn optional<T>(
        &mut self,
        setting: &str,
        remedy: impl Into<String>,
        read: impl FnOnce(&'w Value) -> Option<T>,
    ) -> Option<T> {
        let read = read(self.value(setting)?);
        if read.is_none() {
            self.problem(setting, remedy);
        }
        read
    }

    /// A setting that must not be missing.
    pub(super) fn needed<T>(
        &mut self,
        setting: &str,
        remedy: impl Into<String>,
        read: impl FnOnce(&'w Value) -> Option<T>,
    ) -> Option<T> {
        let read = self.value(setting).and_then(read);
        if read.is_none() {
            self.problem(setting, remedy);
        }
        read
    }

    /// A setting that is false if it is missing.
    pub(super) fn flag(&mut self, setting: &str, question: &str) -> bool {
        let remedy = format!("write true or false: {question}");
        self.optional(setting, remedy, Value::as_bool)
            .unwrap_or_default()
    }

    /// A needed string on one line, or an empty one if it is invalid.
    pub(super) fn line(&mut self, setting: &str, most: usize) -> &'w str {
        let is_line = |text: &&str| {
            !text.trim().is_empty() && text.len() <= most && !text.contains(char::is_control)
        };
        let remedy = format!("write one line of at most {most} bytes");
        self.needed(setting, remedy, |value| value.as_str().filter(is_line))
            .unwrap_or_default()
    }

    /// Reports a problem with a setting; with the table itself, if the name is empty.
    pub(super) fn problem(&mut self, setting: &str, remedy: impl Into<String>) {
        let found = self.value(setting);
        let path = self.path(setting);
        self.reading.problem(&path, found, remedy);
    }

    /// The number of problems so far, with all tables.
    pub(super) fn problem_count(&self) -> usize {
        self.reading.problem_count()
    }

    fn path(&self, setting: &str) -> String {
        let separator = if setting.is_empty() { "" } else { "." };
        format!("{}{separator}{setting}", self.place)
    }
}

/// A list of words that `read` accepts.
pub(super) fn list<T, C: FromIterator<T>>(
    value: &Value,
    read: impl Fn(&str) -> Option<T>,
) -> Option<C> {
    let items = value.as_array()?.iter();
    items.map(|one| read(one.as_str()?)).collect()
}
