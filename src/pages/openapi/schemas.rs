//! Schemas of items (generated from the field tables), of each endpoint's envelope, and of errors.
//!
//! Additional fields are allowed everywhere, and no field of an item is required, because a backend may send more or
//! fewer fields. The schemas of the envelope and of errors, which the gateway itself writes, are exact.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::pages::{PagesConfig, html::capitalized, sample};
use scoregate_base::routes::{
    Endpoint, Param, Period, PublishedField, PublishedKind, SortBy,
    bodies::{ENVELOPE, ERROR, ERROR_SOMETIMES, LIMIT, PARAM, PROBLEM},
    codes::{CODES, CodeRow, ErrorCode},
    shapes::{FieldShape, ItemField},
};

/// All schemas, by name.
pub fn all(config: &PagesConfig) -> Map<String, Value> {
    let mut schemas = Map::new();
    for endpoint in config.endpoints.iter() {
        schemas.insert(item_name(endpoint), item(endpoint, config.listed(endpoint)));
        schemas.insert(answer_name(endpoint), answer(endpoint, config));
    }
    schemas.insert("Limit".into(), object(LIMIT, &names(LIMIT)));
    schemas.insert("Error".into(), error(config));
    schemas.insert("Problem".into(), problem());
    schemas
}

/// The schema name of an endpoint's response.
pub fn answer_name(endpoint: &Endpoint) -> String {
    format!("{}Answer", type_name(endpoint))
}

fn item_name(endpoint: &Endpoint) -> String {
    format!("{}Item", type_name(endpoint))
}

/// The name of an endpoint as a type name, such as `ProviderReliability`.
fn type_name(endpoint: &Endpoint) -> String {
    endpoint.name.split('_').map(capitalized).collect()
}

/// A reference to a component.
pub fn reference(kind: &str, name: &str) -> Value {
    json!({ "$ref": format!("#/components/{kind}/{name}") })
}

fn item(endpoint: &Endpoint, listed: Option<&[PublishedField]>) -> Value {
    if let Some(listed) = listed {
        return item_of_the_source(listed);
    }
    let mut schema = object(endpoint.item, &[]);
    insert(
        &mut schema,
        "description",
        "Fields may be missing or added, depending on the data source. The built-in source omits a field without a value; \
         others may send null."
            .into(),
    );
    schema
}

/// An object with arbitrary fields. Only the data source fields that the mapping lists are described.
fn item_of_the_source(listed: &[PublishedField]) -> Value {
    let properties: Map<_, _> = listed
        .iter()
        .map(|field| (field.name.clone(), of_listed(&field.kind)))
        .collect();
    let mut schema = json!({ "type": "object", "properties": properties });
    insert(
        &mut schema,
        "description",
        "Items have the fields of the data source. Any listed field may be missing, and others may be added."
            .into(),
    );
    schema
}

fn of_listed(kind: &PublishedKind) -> Value {
    match kind {
        PublishedKind::Standard(field) => of_field(field),
        PublishedKind::Number => json!({ "type": ["number", "null"] }),
        PublishedKind::Text => json!({ "type": ["string", "null"] }),
        PublishedKind::Constant(value) => {
            json!({ "const": serde_json::from_str::<Value>(value).unwrap_or_default() })
        }
        PublishedKind::Any => json!({}),
    }
}

fn answer(endpoint: &Endpoint, config: &PagesConfig) -> Value {
    let mut schema = object(ENVELOPE, &names(ENVELOPE));
    let applied = |param, words: Vec<&str>| {
        if endpoint.takes.contains(&param) {
            json!({ "type": "string", "enum": words })
        } else {
            json!({ "type": "null" })
        }
    };
    let mut data = json!({ "items": reference("schemas", &item_name(endpoint)) });
    let mut count = json!({ "minimum": 0 });
    if endpoint.one {
        insert(&mut data, "minItems", 1.into());
        insert(&mut data, "maxItems", 1.into());
        insert(&mut count, "const", 1.into());
    }
    narrow(&mut schema, "success", json!({ "const": true }));
    narrow(
        &mut schema,
        "version",
        json!({ "pattern": "^[0-9]+\\.[0-9]+\\.[0-9]+$" }),
    );
    narrow(
        &mut schema,
        "period",
        applied(Param::Period, Period::ALL.map(Period::word).to_vec()),
    );
    narrow(
        &mut schema,
        "sort_by",
        applied(Param::SortBy, SortBy::ALL.map(SortBy::word).to_vec()),
    );
    narrow(&mut schema, "count", count);
    narrow(&mut schema, "data", data);
    let example = sample::value(&config.sample(endpoint));
    insert(&mut schema, "examples", json!([example]));
    schema
}

fn error(config: &PagesConfig) -> Value {
    let mut schema = object(ERROR, &names(ERROR));
    for field in ERROR_SOMETIMES {
        narrow(&mut schema, field.name, of_field(field));
    }
    let words: Vec<_> = CODES.iter().map(|row| row.word).collect();
    let own = config
        .endpoints
        .configured()
        .flat_map(|endpoint| endpoint.takes.iter().copied());
    let params: BTreeSet<_> = Param::ALL.into_iter().chain(own).map(Param::name).collect();
    narrow(&mut schema, PARAM, json!({ "enum": params }));
    narrow(&mut schema, "success", json!({ "const": false }));
    narrow(
        &mut schema,
        "version",
        json!({ "pattern": "^[0-9]+\\.[0-9]+\\.[0-9]+$" }),
    );
    narrow(&mut schema, "code", json!({ "enum": words }));
    narrow(&mut schema, "docs", json!({ "pattern": "/docs#[a-z_]+$" }));
    narrow(&mut schema, "limit", reference("schemas", "Limit"));
    schema
}

/// The parameter that errors with this code refer to.
pub fn subject(row: &CodeRow) -> Option<Param> {
    let of_the_plan = (row.code == ErrorCode::LatestRequiresPlan).then_some(Param::Period);
    of_the_plan.or_else(|| {
        Param::ALL
            .into_iter()
            .find(|param| param.code() == row.code)
    })
}

fn problem() -> Value {
    let mut schema = object(PROBLEM, &names(PROBLEM));
    narrow(&mut schema, "type", json!({ "format": "uri-reference" }));
    narrow(
        &mut schema,
        "instance",
        json!({ "format": "uri-reference" }),
    );
    insert(&mut schema, "allOf", json!([reference("schemas", "Error")]));
    insert(
        &mut schema,
        "description",
        "The same error, in the form of RFC 9457.".into(),
    );
    schema
}

fn names(fields: &[ItemField]) -> Vec<&'static str> {
    fields.iter().map(|field| field.name).collect()
}

fn object(fields: &[ItemField], required: &[&str]) -> Value {
    let properties: Map<_, _> = fields
        .iter()
        .map(|field| (field.name.to_owned(), of_field(field)))
        .collect();
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        insert(&mut schema, "required", json!(required));
    }
    schema
}

fn of_field(field: &ItemField) -> Value {
    let (mut types, mut schema) = of_shape(&field.shape);
    if field.presence.allows_null() {
        types.push("null");
        if let Some(words) = schema.get_mut("enum").and_then(Value::as_array_mut) {
            words.push(Value::Null);
        }
    }
    let types = if let [sole] = types.as_slice() {
        json!(sole)
    } else {
        json!(types)
    };
    insert(&mut schema, "type", types);
    insert(&mut schema, "description", field.meaning.into());
    if field.paid_only {
        insert(&mut schema, "x-paid-only", true.into());
    }
    schema
}

/// The JSON types of a shape, and the other constraints.
fn of_shape(shape: &FieldShape) -> (Vec<&'static str>, Value) {
    match shape {
        FieldShape::Text => (vec!["string"], json!({})),
        FieldShape::Instant => (vec!["string"], json!({ "format": "date-time" })),
        FieldShape::Number => (vec!["number"], json!({})),
        // Bounds apply only to numbers, and patterns only to strings, so they can be combined.
        FieldShape::Score => (
            vec!["number", "string"],
            json!({ "minimum": 0, "maximum": 100, "pattern": "^unavailable$" }),
        ),
        FieldShape::Integer => (vec!["integer"], json!({})),
        FieldShape::Flag => (vec!["boolean"], json!({})),
        FieldShape::Words(words) => (vec!["string"], json!({ "enum": words })),
        FieldShape::Object(fields) => (vec!["object"], object(fields, &[])),
        FieldShape::Objects(fields) => (vec!["array"], json!({ "items": object(fields, &[]) })),
        FieldShape::Texts => (vec!["array"], json!({ "items": { "type": "string" } })),
    }
}

/// Adds constraints to the schema of one property. Existing keywords are replaced.
fn narrow(schema: &mut Value, property: &str, with: Value) {
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else {
        return;
    };
    let known = properties.entry(property).or_insert_with(|| json!({}));
    if let Some(known) = known.as_object_mut()
        && let Value::Object(with) = with
    {
        // A reference replaces all keywords except the description.
        if with.contains_key("$ref") {
            known.retain(|key, _| key == "description");
        }
        known.extend(with);
    }
}

/// Adds a keyword to a schema.
pub fn insert(schema: &mut Value, key: &str, value: Value) {
    if let Some(schema) = schema.as_object_mut() {
        schema.insert(key.to_owned(), value);
    }
}
