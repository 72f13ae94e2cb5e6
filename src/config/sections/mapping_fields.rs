//! Reads `fields` of a mapping: the published fields of an endpoint's items, by name.

use std::collections::BTreeMap;

use toml::{Table, Value};

use crate::upstream::{ItemMapping, MappedField, is_value_of};
use scoregate_base::routes::{Endpoint, PublishedField, PublishedKind, shapes::ItemField};

const KEYS: [&str; 5] = ["from", "type", "words", "constant", "drop"];
const FORM: &str =
    "write the name of the backend's field, or a table with from, type, words, constant or drop";

/// A problem with one field.
pub(in crate::config) struct FieldProblem {
    pub(in crate::config) name: String,
    pub(in crate::config) remedy: String,
}

/// Reads the table. Invalid fields are reported and omitted.
pub(in crate::config) fn read(
    endpoint: &'static Endpoint,
    table: &Table,
) -> (ItemMapping, Vec<FieldProblem>) {
    let mut fields = Vec::new();
    let mut dropped = Vec::new();
    let mut problems = Vec::new();
    for (name, value) in table {
        match field(endpoint, name, value) {
            Ok(Some(field)) => fields.push(field),
            Ok(None) => dropped.push(name.clone()),
            Err(remedy) => problems.push(FieldProblem {
                name: name.clone(),
                remedy,
            }),
        }
    }
    let has_paid_field = endpoint.has_paid_field() && !endpoint.route.is_configured();
    let mapping = ItemMapping::new(fields, dropped, has_paid_field).unwrap_or_else(|bad| {
        let bad = bad.into_iter();
        problems.extend(bad.map(|(name, bad)| FieldProblem {
            name,
            remedy: bad.to_string(),
        }));
        ItemMapping::default()
    });
    problems.extend(revealing(endpoint, &mapping));
    (mapping, problems)
}

/// Fields of a configured endpoint that would show Free callers a value, or part of a value, that another field
/// reserves for paid callers.
fn revealing(endpoint: &'static Endpoint, mapping: &ItemMapping) -> Vec<FieldProblem> {
    let fields = endpoint
        .item
        .iter()
        .filter(|_| endpoint.route.is_configured());
    let reserved = fields.clone().filter(|field| field.has_paid_part());
    fields
        .clone()
        .filter(|field| {
            let source = mapping.source_of(field.name);
            !field.paid_only
                && reserved.clone().any(|other| {
                    other.name != field.name
                        && source.is_some_and(|of| {
                            of == other.name || mapping.source_of(other.name) == Some(of)
                        })
                })
        })
        .map(|field| FieldProblem {
            name: field.name.to_owned(),
            remedy: "map another field: only paid callers may see the value of this one".to_owned(),
        })
        .collect()
}

/// Names of the fields in the backend's items, including nested fields, that only paid callers of a configured endpoint see.
pub(super) fn paid_names<'m>(
    endpoint: &'static Endpoint,
    mapping: &'m ItemMapping,
) -> Vec<&'m str> {
    fn collect(fields: &'static [ItemField], names: &mut Vec<&'static str>) {
        for field in fields {
            names.extend(field.paid_only.then_some(field.name));
            collect(field.shape.fields(), names);
        }
    }
    let mut declared = Vec::new();
    if endpoint.route.is_configured() {
        collect(endpoint.item, &mut declared);
    }
    let mut names: Vec<&str> = declared
        .iter()
        .filter_map(|name| mapping.source_of(name))
        .collect();
    names.extend(declared);
    names.dedup();
    names
}

/// Reads one field. `None` if the field is dropped.
fn field(
    endpoint: &'static Endpoint,
    name: &str,
    value: &Value,
) -> Result<Option<MappedField>, String> {
    if name.is_empty() || name.contains(char::is_control) {
        return Err("write a name on one line".into());
    }
    match value {
        Value::String(from) => mapped(endpoint, name, from, None, BTreeMap::new()).map(Some),
        Value::Table(given) if given.keys().all(|key| KEYS.contains(&key.as_str())) => {
            from_table(endpoint, name, given)
        }
        Value::Table(_)
        | Value::Integer(_)
        | Value::Float(_)
        | Value::Boolean(_)
        | Value::Datetime(_)
        | Value::Array(_) => Err(FORM.into()),
    }
}

fn from_table(
    endpoint: &'static Endpoint,
    name: &str,
    given: &Table,
) -> Result<Option<MappedField>, String> {
    let alone = ["drop", "constant"]
        .into_iter()
        .find(|key| given.contains_key(*key));
    if let Some(key) = alone.filter(|_| given.len() > 1) {
        return Err(format!("remove everything but `{key}`"));
    }
    if let Some(drop) = given.get("drop") {
        return match drop.as_bool() {
            Some(true) => Ok(None),
            Some(false) | None => Err("write drop = true, or remove it".into()),
        };
    }
    if let Some(value) = given.get("constant") {
        return constant(endpoint, name, value).map(Some);
    }
    let from = text(given, "from")?.unwrap_or(name);
    let kind = text(given, "type")?;
    mapped(endpoint, name, from, kind, words(given.get("words"))?).map(Some)
}

fn text<'t>(given: &'t Table, key: &str) -> Result<Option<&'t str>, String> {
    let text = given.get(key).map(|value| {
        value
            .as_str()
            .ok_or_else(|| format!("write {key} as a string"))
    });
    text.transpose()
}

fn words(given: Option<&Value>) -> Result<BTreeMap<String, String>, String> {
    let Some(given) = given else {
        return Ok(BTreeMap::new());
    };
    let pairs = given.as_table().and_then(|words| {
        words
            .iter()
            .map(|(from, to)| Some((from.clone(), to.as_str()?.to_owned())))
            .collect()
    });
    pairs.ok_or_else(|| "write words as a table of strings, such as { STABLE = \"stable\" }".into())
}

fn mapped(
    endpoint: &'static Endpoint,
    name: &str,
    from: &str,
    written: Option<&str>,
    words: BTreeMap<String, String>,
) -> Result<MappedField, String> {
    let kind = kind(endpoint, name, written)?;
    if let PublishedKind::Standard(field) = &kind {
        let wrong = words
            .values()
            .find(|word| !is_value_of(field, &serde_json::Value::from(word.as_str()).to_string()));
        if let Some(wrong) = wrong {
            return Err(format!(
                "replace the word {wrong:?} with a value that this field of the API may have"
            ));
        }
    }
    Ok(MappedField {
        published: PublishedField {
            name: name.into(),
            kind,
        },
        from: from.into(),
        words,
    })
}

/// The type of a field. A field of this API has a fixed type. `type` applies to all other fields.
fn kind(
    endpoint: &'static Endpoint,
    name: &str,
    written: Option<&str>,
) -> Result<PublishedKind, String> {
    let standard = endpoint.item.iter().find(|field| field.name == name);
    match (standard, written) {
        (_, Some(other)) if other != "number" && other != "string" => {
            Err("write type = \"number\" or type = \"string\", or remove it".into())
        }
        (Some(field), Some("number")) if !field.shape.is_number() => Err(NOT_ITS_TYPE.into()),
        (Some(field), Some("string")) if !field.shape.is_text() => Err(NOT_ITS_TYPE.into()),
        (Some(field), _) => Ok(PublishedKind::Standard(field)),
        (None, Some("number")) => Ok(PublishedKind::Number),
        (None, Some(_)) => Ok(PublishedKind::Text),
        (None, None) => Ok(PublishedKind::Any),
    }
}

const NOT_ITS_TYPE: &str = "remove `type`: this field of the API has another type";

fn constant(endpoint: &'static Endpoint, name: &str, value: &Value) -> Result<MappedField, String> {
    let json = match value {
        Value::String(text) => serde_json::Value::from(text.as_str()),
        Value::Integer(number) => (*number).into(),
        Value::Float(number) if number.is_finite() => (*number).into(),
        Value::Boolean(flag) => (*flag).into(),
        Value::Float(_) | Value::Datetime(_) | Value::Array(_) | Value::Table(_) => {
            return Err("write the constant as a string, a number or a boolean".into());
        }
    };
    let json = json.to_string();
    let standard = endpoint.item.iter().find(|field| field.name == name);
    if standard.is_some_and(|field| !is_value_of(field, &json)) {
        return Err("write a constant that this field of the API may have".into());
    }
    let published = PublishedField {
        name: name.into(),
        kind: PublishedKind::Constant(json),
    };
    Ok(MappedField {
        published,
        from: name.into(),
        words: BTreeMap::new(),
    })
}

#[cfg(test)]
mod tests {
    use crate::config::tests::backend;
    use scoregate_base::routes::Route;

    #[test]
    fn fields_are_read_in_all_their_forms() {
        let read = backend(
            "url = \"http://127.0.0.1:4000\"\n[mapping.drift.fields]\nregime = { from = \"driftSignature\", words = { STABLE = \"stable\" } }\n\
             modelId = \"id\"\n\"ph.score\" = { from = \"phScore\", type = \"number\" }\nraw = { type = \"string\" }\n\
             unit = { constant = 1 }\nsame = {}\ndebug = { drop = true }\n\
             [mapping.model]\nfields = { latestScore = \"newest\" }\n[mapping.index]\nshape = \"object\"",
        )
        .mapping;
        let fields = read.description().fields;
        let of = |route| format!("{:?}", fields.get(&route).unwrap());
        for part in [
            r#""modelId", kind: standard"#,
            r#""ph.score", kind: number"#,
            r#""raw", kind: string"#,
            r#""regime", kind: standard"#,
            r#""same", kind: any"#,
            r#""unit", kind: 1"#,
        ] {
            assert!(
                of(Route::Drift).contains(part),
                "{part} in {}",
                of(Route::Drift)
            );
        }
        assert_eq!((of(Route::Index).as_str(), fields.len()), ("[]", 3));
        let model = read
            .endpoints
            .get(&Route::Model)
            .unwrap()
            .fields
            .as_ref()
            .unwrap();
        assert_eq!(model.paid_source(), Some("newest"));
        let whole = format!("{read:?}");
        assert!(
            whole.contains("driftSignature")
                && whole.contains("debug")
                && !whole.contains("Page-Hinkley")
        );
    }
}
