//! Reads `[[endpoints.NAME.fields]]`: the fields of the items of an endpoint.

use std::collections::BTreeSet;

use toml::{Table, Value};

use crate::cache::PAID_FIELD;
use scoregate_base::routes::shapes::{FieldShape, ItemField, Presence};

/// Maximum nesting of fields.
const MOST_LEVELS: usize = 4;
const SETTINGS: [&str; 9] = [
    "name", "type", "meaning", "unit", "optional", "paid", "example", "words", "fields",
];
/// Types without parts.
const SIMPLE: [(&str, FieldShape); 7] = [
    ("string", FieldShape::Text),
    ("time", FieldShape::Instant),
    ("number", FieldShape::Number),
    ("score", FieldShape::Score),
    ("integer", FieldShape::Integer),
    ("boolean", FieldShape::Flag),
    ("strings", FieldShape::Texts),
];

/// A field as it is written.
pub(super) struct FieldDefinition {
    name: String,
    shape: ShapeDefinition,
    presence: Presence,
    paid_only: bool,
    meaning: String,
    example: Option<String>,
}

enum ShapeDefinition {
    /// The position in the table of types without parts.
    Simple(usize),
    Words(Vec<String>),
    Object(Vec<FieldDefinition>),
    Objects(Vec<FieldDefinition>),
}

/// The fields of a list, and the problems: where, and the remedy.
#[derive(Default)]
pub(super) struct FieldList {
    pub(super) fields: Vec<FieldDefinition>,
    pub(super) problems: Vec<(String, String)>,
}

/// Reads a list of fields.
pub(super) fn read(value: &Value) -> FieldList {
    let mut read = FieldList::default();
    read.fields = read.list("", value, 1);
    read
}

impl FieldList {
    fn list(&mut self, place: &str, value: &Value, level: usize) -> Vec<FieldDefinition> {
        let Some(all) = value
            .as_array()
            .filter(|all| !all.is_empty() && level <= MOST_LEVELS)
        else {
            self.problem(
                place,
                "",
                format!("write a list of fields, at most {MOST_LEVELS} levels deep"),
            );
            return Vec::new();
        };
        let mut fields: Vec<FieldDefinition> = Vec::new();
        for (number, one) in all.iter().enumerate() {
            let place = format!("{place}[{number}]");
            let Some(field) = self.field(&place, one, level) else {
                continue;
            };
            if fields.iter().any(|other| other.name == field.name) {
                self.problem(
                    &place,
                    "",
                    format!("remove this field: `{}` is described twice", field.name),
                );
            }
            fields.push(field);
        }
        fields
    }

    fn field(&mut self, place: &str, value: &Value, level: usize) -> Option<FieldDefinition> {
        let Some(table) = value.as_table() else {
            self.problem(place, "", "write it as a table with name, type and meaning");
            return None;
        };
        for unknown in table.keys().filter(|key| !SETTINGS.contains(&key.as_str())) {
            self.problem(
                place,
                unknown,
                format!("unknown; write one of {}", SETTINGS.join(", ")),
            );
        }
        let name = self.line(place, table, "name", 64);
        if name.as_deref() == Some(PAID_FIELD) {
            let remedy = format!("choose another name: `{PAID_FIELD}` is a field of `model` only");
            self.problem(place, "name", remedy);
        }
        let meaning = self.line(place, table, "meaning", 300);
        let unit = table
            .contains_key("unit")
            .then(|| self.line(place, table, "unit", 64));
        let optional = self.flag(
            place,
            table,
            "optional",
            "whether an item may lack the field",
        );
        let paid = self.flag(
            place,
            table,
            "paid",
            "whether only paid callers see the field",
        );
        let shape = self.shape(place, table, level);
        let example = self.example(place, table, shape.as_ref());
        let mut meaning = meaning?;
        if let Some(unit) = unit {
            meaning = format!("{meaning} Unit: {}.", unit?);
        }
        let optional = optional?;
        let paid_only = paid?;
        if paid_only {
            meaning.push_str(" Paid plans only, except as the table of tiers says.");
        }
        let presence = if optional || paid_only {
            Presence::IfKnown
        } else {
            Presence::Always
        };
        Some(FieldDefinition {
            name: name?,
            shape: shape?,
            presence,
            paid_only,
            meaning,
            example,
        })
    }

    fn flag(&mut self, place: &str, table: &Table, setting: &str, question: &str) -> Option<bool> {
        let flag = table.get(setting).map_or(Some(false), Value::as_bool);
        if flag.is_none() {
            self.problem(place, setting, format!("write true or false: {question}"));
        }
        flag
    }

    fn shape(&mut self, place: &str, table: &Table, level: usize) -> Option<ShapeDefinition> {
        let word = table
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let part = match word {
            "words" => Some("words"),
            "object" | "objects" => Some("fields"),
            _ => None,
        };
        for other in ["words", "fields"]
            .into_iter()
            .filter(|other| part != Some(other))
        {
            if table.contains_key(other) {
                self.problem(
                    place,
                    other,
                    format!("remove it: the type `{word}` has none"),
                );
            }
        }
        if let Some(simple) = SIMPLE.iter().position(|(known, _)| *known == word) {
            return Some(ShapeDefinition::Simple(simple));
        }
        let Some(part) = part else {
            let known: Vec<&str> = SIMPLE.iter().map(|(known, _)| *known).collect();
            let remedy = format!(
                "write one of \"{}\", \"words\", \"object\" or \"objects\"",
                known.join("\", \"")
            );
            self.problem(place, "type", remedy);
            return None;
        };
        let place = format!("{place}.{part}");
        if word == "words" {
            let words = table.get(part).and_then(Value::as_array);
            let words: Option<Vec<String>> = words.and_then(|all| {
                all.iter()
                    .map(|word| word.as_str().map(str::to_owned))
                    .collect()
            });
            let distinct = words
                .iter()
                .flatten()
                .filter(|word| !word.is_empty())
                .collect::<BTreeSet<_>>()
                .len();
            let words = words.filter(|words| !words.is_empty() && words.len() == distinct);
            if words.is_none() {
                self.problem(
                    &place,
                    "",
                    "write the list of the words, none empty or twice",
                );
            }
            return words.map(ShapeDefinition::Words);
        }
        let fields = self.list(
            &place,
            table.get(part).unwrap_or(&Value::Boolean(false)),
            level + 1,
        );
        Some(if word == "object" {
            ShapeDefinition::Object(fields)
        } else {
            ShapeDefinition::Objects(fields)
        })
    }

    /// The example as JSON text, if there is one.
    fn example(
        &mut self,
        place: &str,
        table: &Table,
        shape: Option<&ShapeDefinition>,
    ) -> Option<String> {
        let value = table.get("example")?;
        let is_allowed = |_: &String| shape.is_none_or(|shape| shape.allows(value));
        let json = serde_json::to_string(value).ok().filter(is_allowed);
        if json.is_none() {
            self.problem(
                place,
                "example",
                "write a value of the field's type; a time is a string",
            );
        }
        json
    }

    fn line(&mut self, place: &str, table: &Table, setting: &str, most: usize) -> Option<String> {
        let text = table.get(setting).and_then(Value::as_str);
        let is_line = |text: &&str| {
            !text.trim().is_empty() && text.len() <= most && !text.contains(char::is_control)
        };
        let text = text.filter(is_line).map(str::to_owned);
        if text.is_none() {
            self.problem(
                place,
                setting,
                format!("write one line of at most {most} bytes"),
            );
        }
        text
    }

    fn problem(&mut self, place: &str, setting: &str, remedy: impl Into<String>) {
        let separator = if setting.is_empty() { "" } else { "." };
        self.problems
            .push((format!("{place}{separator}{setting}"), remedy.into()));
    }
}

/// The fields for the life of the process.
pub(super) fn kept(fields: Vec<FieldDefinition>) -> &'static [ItemField] {
    let kept = fields.into_iter().map(|field| ItemField {
        name: field.name.leak(),
        shape: field.shape.kept(),
        presence: field.presence,
        paid_only: field.paid_only,
        meaning: field.meaning.leak(),
        example: field.example.map(|example| &*example.leak()),
    });
    kept.collect::<Vec<_>>().leak()
}

impl ShapeDefinition {
    /// Whether a field of this type can have this value.
    fn allows(&self, value: &Value) -> bool {
        let of = |types: &[&str]| types.contains(&value.type_str());
        let all = |of: &str| {
            value
                .as_array()
                .is_some_and(|all| all.iter().all(|one| one.type_str() == of))
        };
        match self {
            Self::Simple(simple) => SIMPLE.get(*simple).is_some_and(|(name, _)| match *name {
                "strings" => all("string"),
                "number" => of(&["integer", "float"]),
                // A backend may send a word in place of a score.
                "score" => of(&["integer", "float", "string"]),
                "integer" | "boolean" => of(&[name]),
                _ => value.is_str(),
            }),
            Self::Words(words) => value
                .as_str()
                .is_some_and(|text| words.iter().any(|word| word == text)),
            Self::Object(_) => value.is_table(),
            Self::Objects(_) => all("table"),
        }
    }

    fn kept(self) -> FieldShape {
        match self {
            Self::Simple(simple) => SIMPLE
                .into_iter()
                .nth(simple)
                .map_or(FieldShape::Text, |(_, shape)| shape),
            Self::Words(words) => FieldShape::Words(
                words
                    .into_iter()
                    .map(|word| &*word.leak())
                    .collect::<Vec<_>>()
                    .leak(),
            ),
            Self::Object(fields) => FieldShape::Object(kept(fields)),
            Self::Objects(fields) => FieldShape::Objects(kept(fields)),
        }
    }
}
