//! The parameters, with exactly the values that the gateway accepts.

use serde_json::{Map, Value, json};

use crate::pages::sample;
use scoregate_base::routes::{AllowedValues, Endpoint, Limit, Param, Period, SortBy};

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
    let (location, schema) = match param {
        Param::Id => ("path", schema_with(param, "examples", json!([sample::EXAMPLE_MODEL]))),
        // No `default`: it depends on the tier, as the description states.
        Param::Period => ("query", json!({ "type": "string", "enum": Period::ALL.map(Period::word) })),
        Param::SortBy => (
            "query",
            json!({ "type": "string", "enum": SortBy::ALL.map(SortBy::word), "default": SortBy::Combined.word() }),
        ),
        Param::Limit => ("query", schema_with(param, "default", Limit::DEFAULT.get().into())),
    };
    json!({
        "name": param.name(),
        "in": location,
        "required": param == Param::Id,
        "description": param.meaning(),
        "schema": schema,
    })
}

/// The schema of a number or a text, plus one keyword. An error states the same constraints.
fn schema_with(param: Param, keyword: &str, value: Value) -> Value {
    let allowed = param.allowed();
    let is_number = matches!(allowed, AllowedValues::Range { .. });
    let mut schema = json!({ "type": if is_number { "integer" } else { "string" } });
    for (name, constraint) in allowed.members() {
        insert(&mut schema, name, constraint);
    }
    insert(&mut schema, keyword, value);
    schema
}

fn if_none_match() -> Value {
    json!({
        "name": IF_NONE_MATCH,
        "in": "header",
        "required": false,
        "description": "The `ETag` of your stored copy. While it is current the response is a 304 without a body.",
        "schema": { "type": "string" },
    })
}
