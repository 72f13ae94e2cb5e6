//! The parameters, with exactly the values that the gateway accepts.

use serde_json::{Map, Value, json};

use crate::pages::sample;
use scoregate_base::routes::headers::HEADERS;
use scoregate_base::routes::{AllowedValues, Endpoint, Limit, Param, SortBy};

use super::schemas::{insert, reference};

const IF_NONE_MATCH: &str = "If-None-Match";

/// All parameters, by name.
pub(super) fn all() -> Map<String, Value> {
    let mut parameters: Map<_, _> =
        Param::ALL.map(|param| (param.name().to_owned(), parameter(param))).into_iter().collect();
    parameters.insert(IF_NONE_MATCH.into(), if_none_match());
    parameters
}

/// References to the parameters of an endpoint.
pub(super) fn of(endpoint: &Endpoint) -> Vec<Value> {
    let id = endpoint.route.names_a_model().then_some(Param::Id);
    let own = id.iter().chain(endpoint.takes).map(|param| param.name());
    let conditional = endpoint.stored.then_some(IF_NONE_MATCH);
    own.chain(conditional).map(|name| reference("parameters", name)).collect()
}

fn parameter(param: Param) -> Value {
    let allowed = param.allowed();
    let is_number = matches!(allowed, AllowedValues::Range { .. });
    let mut schema = json!({ "type": if is_number { "integer" } else { "string" } });
    match allowed {
        AllowedValues::Words(words) => insert(&mut schema, "enum", json!(words)),
        AllowedValues::Range { .. } | AllowedValues::Pattern { .. } => {
            // An error states the same constraints.
            allowed
                .members()
                .into_iter()
                .for_each(|(name, constraint)| insert(&mut schema, name, constraint));
        }
    }
    match param {
        // The default period depends on the tier, as the description states.
        Param::Id | Param::Period => {}
        Param::SortBy => insert(&mut schema, "default", SortBy::Combined.word().into()),
        Param::Limit => insert(&mut schema, "default", Limit::DEFAULT.get().into()),
    }
    let example = sample::of_param(param);
    json!({
        "name": param.name(),
        "in": if param == Param::Id { "path" } else { "query" },
        "required": param == Param::Id,
        "description": param.meaning(),
        "schema": schema,
        "example": if is_number { example.parse::<u8>().map_or(Value::Null, Value::from) } else { example.into() },
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
