//! Reads a table whose name is chosen in the file, such as `[tiers.NAME]`, or an item of a list.

use toml::{Table, Value};

use super::config_reader::ConfigReader;

/// A table and its place in the file. Problems are reported with the place, the value and a remedy.
pub struct TableReader<'r, 'w> {
    reading: &'r mut ConfigReader<'w>,
    place: String,
    /// `None` if each setting is looked up by its full path in the file.
    table: Option<&'w Table>,
}

impl<'r, 'w> TableReader<'r, 'w> {
    /// The table at a path of the file.
    pub fn at(reading: &'r mut ConfigReader<'w>, place: impl Into<String>) -> Self {
        Self {
            reading,
            place: place.into(),
            table: None,
        }
    }

    /// An item of a list, if it is a table that contains only these settings.
    pub fn item(
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
    pub fn within(&mut self, setting: &str, table: &'w Table) -> TableReader<'_, 'w> {
        TableReader {
            place: self.path(setting),
            reading: &mut *self.reading,
            table: Some(table),
        }
    }

    /// The given value of a setting.
    pub fn value(&self, setting: &str) -> Option<&'w Value> {
        match self.table {
            Some(table) => table.get(setting),
            None => self.reading.maybe(&self.path(setting)),
        }
    }

    /// Reads an optional setting. An invalid value is reported.
    pub fn optional<T>(
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

    /// Reads a required setting.
    pub fn needed<T>(
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

    /// Reads a setting that is true or false. Default: false.
    pub fn flag(&mut self, setting: &str, question: &str) -> bool {
        let remedy = format!("write true or false: {question}");
        self.optional(setting, remedy, Value::as_bool)
            .unwrap_or_default()
    }

    /// Reads a required string on one line. Returns an empty string if it is invalid.
    pub fn line(&mut self, setting: &str, most: usize) -> &'w str {
        let remedy = format!("write one line of at most {most} bytes");
        self.needed(setting, remedy, |value| {
            value.as_str().filter(|text| {
                !text.trim().is_empty() && text.len() <= most && !text.contains(char::is_control)
            })
        })
        .unwrap_or_default()
    }

    /// Reports a problem with a setting or, if the name is empty, with the table itself.
    pub fn problem(&mut self, setting: &str, remedy: impl Into<String>) {
        let found = self.value(setting);
        let path = self.path(setting);
        self.reading.problem(&path, found, remedy);
    }

    /// The number of problems with all tables so far.
    pub fn problem_count(&self) -> usize {
        self.reading.problem_count()
    }

    fn path(&self, setting: &str) -> String {
        let separator = if setting.is_empty() { "" } else { "." };
        format!("{}{separator}{setting}", self.place)
    }
}

/// A list of words that `read` accepts.
pub fn list<T, C: FromIterator<T>>(value: &Value, read: impl Fn(&str) -> Option<T>) -> Option<C> {
    let items = value.as_array()?.iter();
    items.map(|one| read(one.as_str()?)).collect()
}
