//! The parameters, with exactly the values that the gateway accepts.

use serde_json::{Map, Value, json};

use crate::pages::sample;
use scoregate_base::routes::{AllowedValues, Endpoint, Param, headers::HEADERS};

use super::schemas::{insert, reference};

const IF_NONE_MATCH: &str = "If-None-Match";

/// All parameters, by name.
pub fn all() -> Map<String, Value> {
    let mut parameters: Map<_, _> = Param::ALL
        .map(|param| (param.name().to_owned(), parameter(param)))
        .into_iter()
        .collect();
    parameters.insert(IF_NONE_MATCH.into(), if_none_match());
    parameters
}

/// References to the parameters of an endpoint.
pub fn of(endpoint: &Endpoint) -> Vec<Value> {
    let id = endpoint.route.names_a_model().then_some(Param::Id);
    let conditional = endpoint
        .stored
        .then(|| reference("parameters", IF_NONE_MATCH));
    id.iter()
        .chain(endpoint.takes)
        .map(|param| match param.own() {
            // Two endpoints may define parameters with the same name.
            Some(_) => parameter(*param),
            None => reference("parameters", param.name()),
        })
        .chain(conditional)
        .collect()
}

fn parameter(param: Param) -> Value {
    let allowed = param.allowed();
    let is_number = matches!(allowed, AllowedValues::Range { .. });
    let mut schema = json!({ "type": if is_number { "integer" } else { "string" } });
    match allowed {
        AllowedValues::Words(words) => insert(&mut schema, "enum", json!(words)),
        AllowedValues::Range { .. } | AllowedValues::Pattern { .. } => {
            // Error responses state the same constraints.
            allowed
                .members()
                .into_iter()
                .for_each(|(name, constraint)| insert(&mut schema, name, constraint));
        }
    }
    let value = |text: &str| {
        if is_number {
            text.parse::<u8>().ok().into()
        } else {
            Value::from(text)
        }
    };
    if let Some(default) = param.default_value() {
        insert(&mut schema, "default", value(&default));
    }
    json!({
        "name": param.name(),
        "in": if param == Param::Id { "path" } else { "query" },
        "required": param == Param::Id,
        "description": param.meaning(),
        "schema": schema,
        "example": value(sample::of_param(param)),
    })
}

fn if_none_match() -> Value {
    json!({
        "name": IF_NONE_MATCH,
        "in": "header",
        "required": false,
        "description": "The `ETag` of your stored copy. While it is current the response is a 304 without a body.",
        "schema": { "type": "string" },
        "example": HEADERS.iter().find(|header| header.name == "ETag").map(|header| header.example),
    })
}
