//! Reads `[[endpoints.NAME.fields]]`: the fields of the items of an endpoint.

use std::collections::BTreeSet;

use toml::Value;

use crate::cache::PAID_FIELD;
use scoregate_base::routes::shapes::{FieldShape, ItemField, Presence};

use crate::config::table_reader::{TableReader, list};

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

/// A field as it is written in the file.
pub struct FieldDefinition {
    name: String,
    kind: String,
    words: Vec<String>,
    fields: Vec<Self>,
    presence: Presence,
    paid_only: bool,
    meaning: String,
    example: Option<String>,
}

/// Reads a list of fields. `level` is its nesting level.
pub fn read(table: &mut TableReader<'_, '_>, setting: &str, level: usize) -> Vec<FieldDefinition> {
    let items =
        |value| Value::as_array(value).filter(|all| !all.is_empty() && level <= MOST_LEVELS);
    let remedy = format!("write a list of fields, at most {MOST_LEVELS} levels deep");
    let items = table.needed(setting, remedy, items);
    let mut fields: Vec<FieldDefinition> = Vec::new();
    for (number, item) in items.into_iter().flatten().enumerate() {
        let remedy = "write it as a table with name, type and meaning";
        let Some(mut item) = table.item(setting, number, item, &SETTINGS, remedy) else {
            continue;
        };
        let field = field(&mut item, level);
        if !field.name.is_empty() && fields.iter().any(|other| other.name == field.name) {
            let remedy = format!("remove this field: `{}` is described twice", field.name);
            item.problem("", remedy);
        }
        fields.push(field);
    }
    fields
}

fn field(table: &mut TableReader<'_, '_>, level: usize) -> FieldDefinition {
    let name = table.line("name", 64);
    if name == PAID_FIELD {
        let remedy = format!("choose another name: `{PAID_FIELD}` is a field of `model` only");
        table.problem("name", remedy);
    }
    let mut meaning = table.line("meaning", 300).to_owned();
    if table.value("unit").is_some() {
        meaning = format!("{meaning} Unit: {}.", table.line("unit", 64));
    }
    let optional = table.flag("optional", "whether an item may lack the field");
    let paid_only = table.flag("paid", "whether only paid callers see the field");
    if paid_only {
        meaning.push_str(" Paid plans only, unless the table of tiers states otherwise.");
    }
    let kind = kind(table);
    let words = if kind == "words" {
        words(table)
    } else {
        Vec::new()
    };
    let fields = if kind.starts_with("object") {
        read(table, "fields", level + 1)
    } else {
        Vec::new()
    };
    FieldDefinition {
        example: example(table, kind, &words),
        name: name.to_owned(),
        kind: kind.to_owned(),
        words,
        fields,
        presence: if optional || paid_only {
            Presence::IfKnown
        } else {
            Presence::Always
        },
        paid_only,
        meaning,
    }
}

/// The type, or an empty string if it is invalid. Only some types have `words` or `fields`.
fn kind<'w>(table: &mut TableReader<'_, 'w>) -> &'w str {
    let kind = table
        .value("type")
        .and_then(Value::as_str)
        .unwrap_or_default();
    for (part, is_part) in [
        ("words", kind == "words"),
        ("fields", kind.starts_with("object")),
    ] {
        if table.value(part).is_some() && !is_part {
            table.problem(part, format!("remove it: the type `{kind}` has none"));
        }
    }
    let simple = SIMPLE.map(|(word, _)| word);
    let remedy = format!(
        "write one of \"{}\", \"words\", \"object\" or \"objects\"",
        simple.join("\", \"")
    );
    table
        .needed("type", remedy, |value| {
            value.as_str().filter(|word| {
                simple.contains(word) || ["words", "object", "objects"].contains(word)
            })
        })
        .unwrap_or_default()
}

fn words(table: &mut TableReader<'_, '_>) -> Vec<String> {
    let remedy = "write a list of distinct, non-empty words";
    table
        .needed("words", remedy, |value| {
            let words: Vec<String> =
                list(value, |word| (!word.is_empty()).then(|| word.to_owned()))?;
            let distinct = words.iter().collect::<BTreeSet<_>>().len();
            (!words.is_empty() && words.len() == distinct).then_some(words)
        })
        .unwrap_or_default()
}

/// The example as JSON text, if there is one.
fn example(table: &mut TableReader<'_, '_>, kind: &str, words: &[String]) -> Option<String> {
    let remedy = "write a value of the field's type; a time is a string";
    table.optional("example", remedy, |value| {
        let json = serde_json::to_string(value).ok()?;
        allows(kind, words, value).then_some(json)
    })
}

/// Whether a field of this type can have this value. An invalid type, which is reported separately, allows all values.
fn allows(kind: &str, words: &[String], value: &Value) -> bool {
    let is = |types: &[&str]| types.contains(&value.type_str());
    let are = |item: &str| {
        value
            .as_array()
            .is_some_and(|all| all.iter().all(|one| one.type_str() == item))
    };
    match kind {
        "" => true,
        "strings" => are("string"),
        "number" => is(&["integer", "float"]),
        // A backend may send a word instead of a score.
        "score" => is(&["integer", "float", "string"]),
        "integer" | "boolean" => is(&[kind]),
        "words" => words.is_empty() || words.iter().any(|word| value.as_str() == Some(word)),
        "object" => value.is_table(),
        "objects" => are("table"),
        _ => value.is_str(),
    }
}

/// Keeps the fields for the lifetime of the process.
pub fn kept(fields: Vec<FieldDefinition>) -> &'static [ItemField] {
    let kept = fields.into_iter().map(|field| ItemField {
        name: field.name.leak(),
        shape: shape(&field.kind, field.words, field.fields),
        presence: field.presence,
        paid_only: field.paid_only,
        meaning: field.meaning.leak(),
        example: field.example.map(|example| &*example.leak()),
    });
    kept.collect::<Vec<_>>().leak()
}

fn shape(kind: &str, words: Vec<String>, fields: Vec<FieldDefinition>) -> FieldShape {
    match kind {
        "words" => {
            let words = words.into_iter().map(|word| &*word.leak());
            FieldShape::Words(words.collect::<Vec<_>>().leak())
        }
        "object" => FieldShape::Object(kept(fields)),
        "objects" => FieldShape::Objects(kept(fields)),
        simple => SIMPLE
            .into_iter()
            .find(|(word, _)| *word == simple)
            .map_or(FieldShape::Text, |(_, shape)| shape),
    }
}
