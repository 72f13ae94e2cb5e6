//! Compares the API description with the tables, and validates the examples in it.

use std::collections::BTreeSet;

use jsonschema::Validator;
use serde_json::{Value, json};

use crate::pages::{
    PagesConfig,
    sample::{self, SampleAnswer, SampleItem},
};
use scoregate_base::routes::{
    ENDPOINTS, Param, Route,
    codes::{CODES, CodeRow, ErrorCode},
    headers::HEADERS,
    shapes::Presence,
};

use super::{document::path, *};

pub fn described() -> Value {
    serde_json::from_str(&document(&PagesConfig::default())).unwrap()
}

/// A validator for a schema of the description, with all components to which it refers.
pub fn validator(document: &Value, schema: &Value) -> Validator {
    let mut whole = schema.clone();
    whole["components"] = document["components"].clone();
    jsonschema::options()
        .with_draft(jsonschema::Draft::Draft202012)
        .build(&whole)
        .unwrap()
}

fn resolve<'d>(document: &'d Value, mut node: &'d Value) -> &'d Value {
    while let Some(target) = node.get("$ref").and_then(Value::as_str) {
        node = document
            .pointer(target.strip_prefix('#').unwrap())
            .expect(target);
    }
    node
}

fn walk(node: &Value, visit: &mut impl FnMut(&Value)) {
    visit(node);
    match node {
        Value::Array(items) => items.iter().for_each(|item| walk(item, visit)),
        Value::Object(map) => map.values().for_each(|item| walk(item, visit)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn content(document: &Value, endpoint: Route, status: &str, media: &str) -> Value {
    let row = endpoint.endpoint();
    let response = &document["paths"][path(row)]["get"]["responses"][status];
    resolve(document, response)["content"][media]["schema"].clone()
}

fn an_error(status: u16, code: &str) -> Value {
    json!({"success": false, "version": "1.0.0", "status": status, "code": code, "message": "m", "request_id": "r",
        "docs": format!("/docs#{code}")})
}

#[test]
fn references_resolve_and_schemas_compile() {
    let document = described();
    let mut references = 0;
    walk(&document, &mut |node| {
        if node.get("$ref").is_some_and(Value::is_string) {
            resolve(&document, node);
            references += 1;
        }
        if let Some(schema) = node.get("schema") {
            validator(&document, schema);
        }
    });
    assert!(references > 100);
    for schema in document["components"]["schemas"]
        .as_object()
        .unwrap()
        .values()
    {
        validator(&document, schema);
    }
}

#[test]
fn every_endpoint_has_a_get_with_the_responses_its_row_allows() {
    let document = described();
    assert_eq!(
        document["paths"].as_object().unwrap().len(),
        ENDPOINTS.len()
    );
    for row in &ENDPOINTS {
        let item = &document["paths"][path(row)];
        assert_eq!(item["get"]["operationId"], row.name);
        // HEAD is described once for all endpoints.
        assert_eq!(
            item.as_object().unwrap().keys().collect::<Vec<_>>(),
            ["get"]
        );
        let responses = item["get"]["responses"].as_object().unwrap();
        let mut statuses: Vec<_> = row.codes().map(|code| code.status.as_str()).collect();
        statuses.push("200");
        statuses.extend(row.stored.then_some("304"));
        statuses.sort_unstable();
        statuses.dedup();
        assert_eq!(
            responses.keys().collect::<Vec<_>>(),
            statuses,
            "{}",
            row.name
        );
        for (status, response) in responses {
            let response = resolve(&document, response);
            assert_eq!(response.get("content").is_some(), status != "304");
            assert!(response["headers"]["X-RateLimit-Remaining"].is_object());
        }
        let named: Vec<_> = item["get"]["parameters"]
            .as_array()
            .into_iter()
            .flatten()
            .collect();
        let expected =
            row.takes.len() + usize::from(row.route.names_a_model()) + usize::from(row.stored);
        assert_eq!(named.len(), expected, "{}", row.name);
    }
}

#[test]
fn every_response_names_the_headers_of_the_table_and_no_other() {
    let document = described();
    for (name, response) in document["components"]["responses"].as_object().unwrap() {
        let status: u16 = name.get(..3).unwrap().parse().unwrap();
        let stored = !name.starts_with("200-me");
        for header in HEADERS
            .iter()
            .filter(|header| header.name != "Content-Type")
        {
            let named = response["headers"].get(header.name).is_some();
            assert_eq!(
                named,
                header.on.covers(status, stored),
                "{} on {name}",
                header.name
            );
        }
    }
    let headers = &document["components"]["headers"];
    for (header, described) in headers.as_object().unwrap() {
        assert!(
            validator(&document, &described["schema"]).is_valid(&described["example"]),
            "{header}"
        );
    }
}

#[test]
fn schemas_accept_valid_items_and_reject_wrong_fields() {
    let document = described();
    for row in &ENDPOINTS {
        let schema = validator(
            &document,
            &content(&document, row.route, "200", "application/json"),
        );
        let mut answer = sample::value(&SampleAnswer::of(row, "1.0.0", "…"));
        schema.validate(&answer).unwrap();
        for field in row
            .item
            .iter()
            .filter(|field| field.presence == Presence::IfRequested)
        {
            assert!(
                answer["data"][0].get(field.name).is_none(),
                "{} {}",
                row.name,
                field.name
            );
            answer["data"][0][field.name] = json!(0.031);
        }
        schema.validate(&answer).unwrap();
        for field in row.item {
            let mut wrong = answer.clone();
            wrong["data"][0][field.name] = json!(["wrong", {}]);
            assert!(!schema.is_valid(&wrong), "{} {}", row.name, field.name);
            let mut without = answer.clone();
            without["data"][0]
                .as_object_mut()
                .unwrap()
                .remove(field.name);
            assert!(schema.is_valid(&without), "{} {}", row.name, field.name);
            let mut null = answer.clone();
            null["data"][0][field.name] = Value::Null;
            assert_eq!(
                schema.is_valid(&null),
                field.presence.allows_null(),
                "{} {}",
                row.name,
                field.name
            );
        }
        for field in answer.as_object().unwrap().keys() {
            let mut without = answer.clone();
            without.as_object_mut().unwrap().remove(field);
            assert!(!schema.is_valid(&without), "{} {field}", row.name);
        }
    }
}

#[test]
fn paid_only_fields_are_marked_and_a_backend_may_send_more() {
    let document = described();
    let field = &document["components"]["schemas"]["ModelItem"]["properties"]["latestScore"];
    assert_eq!(field["x-paid-only"], true);
    assert!(
        field["description"]
            .as_str()
            .unwrap()
            .contains("Paid plans only")
    );
    let mut item = sample::value(&SampleItem::of(Route::Model.endpoint()));
    item["somethingNew"] = json!({"a": 1});
    item["currentScore"] = json!("unavailable");
    assert!(validator(&document, &schemas::reference("schemas", "ModelItem")).is_valid(&item));
    for score in [json!(-1), json!(100.5), json!("good")] {
        item["currentScore"] = score;
        assert!(!validator(&document, &schemas::reference("schemas", "ModelItem")).is_valid(&item));
    }
}

#[test]
fn period_and_sort_key_are_null_if_unsupported() {
    let document = described();
    for row in &ENDPOINTS {
        let schema = validator(
            &document,
            &content(&document, row.route, "200", "application/json"),
        );
        for (field, param, word) in [
            ("period", Param::Period, "7d"),
            ("sort_by", Param::SortBy, "price"),
        ] {
            let mut answer = sample::value(&SampleAnswer::of(row, "1.0.0", "…"));
            answer[field] = json!(word);
            assert_eq!(
                schema.is_valid(&answer),
                row.takes.contains(&param),
                "{} {field}",
                row.name
            );
            answer[field] = Value::Null;
            assert_eq!(
                schema.is_valid(&answer),
                !row.takes.contains(&param),
                "{} {field}",
                row.name
            );
        }
    }
}

#[test]
fn error_schema_requires_limit_on_429_and_the_codes_of_the_status() {
    let document = described();
    let media = "application/json";
    let limited = validator(&document, &content(&document, Route::Models, "429", media));
    let mut error = an_error(429, "quota_exceeded");
    assert!(!limited.is_valid(&error));
    error["limit"] = json!({"name": "day", "quota": 10, "remaining": 0, "window_seconds": 86400,
        "reset_at": "2026-11-22T00:00:00Z", "retry_after": 38211});
    limited.validate(&error).unwrap();
    let keyless = validator(&document, &content(&document, Route::Models, "401", media));
    keyless
        .validate(&an_error(401, "api_key_required"))
        .unwrap();
    assert!(!keyless.is_valid(&an_error(403, "api_key_required")));
    assert!(!keyless.is_valid(&an_error(401, "invalid_period")));

    let bad = validator(&document, &content(&document, Route::Models, "400", media));
    let mut error = an_error(400, "invalid_period");
    error["param"] = json!("period");
    error["allowed"] = json!(["24h"]);
    bad.validate(&error).unwrap();
    error["minimum"] = json!("1");
    assert!(!bad.is_valid(&error), "a minimum is a number");
}

#[test]
fn every_field_of_an_error_has_one_type_and_every_error_the_same_schema() {
    let document = described();
    for name in ["Error", "Problem", "Limit"] {
        for (field, schema) in document["components"]["schemas"][name]["properties"]
            .as_object()
            .unwrap()
        {
            assert!(
                schema["type"].is_string() || schema["$ref"].is_string(),
                "{name}.{field}: {schema}"
            );
        }
    }
    for (name, response) in document["components"]["responses"].as_object().unwrap() {
        let content = response["content"]
            .as_object()
            .filter(|_| !name.starts_with("200"));
        for (media, content) in content.into_iter().flatten() {
            let whole = if media == "application/json" {
                "Error"
            } else {
                "Problem"
            };
            let target = format!("#/components/schemas/{whole}");
            assert_eq!(content["schema"]["$ref"], target, "{name}");
            assert_eq!(content["schema"].get("allOf"), None, "{name}");
        }
    }
}

#[test]
fn problem_schema_extends_the_error_schema() {
    let document = described();
    let schema = content(&document, Route::Model, "404", "application/problem+json");
    let schema = validator(&document, &schema);
    let mut problem = an_error(404, "model_not_found");
    assert!(!schema.is_valid(&problem));
    for (field, text) in [
        ("type", "/docs#x"),
        ("title", "t"),
        ("detail", "d"),
        ("instance", "urn:x"),
    ] {
        problem[field] = json!(text);
    }
    schema.validate(&problem).unwrap();
}

#[test]
fn every_code_has_an_example_unless_no_endpoint_has_it() {
    let document = described();
    let mut words = BTreeSet::new();
    for response in document["components"]["responses"]
        .as_object()
        .unwrap()
        .values()
    {
        let content = &response["content"]["application/json"];
        for (word, example) in content["examples"].as_object().into_iter().flatten() {
            validator(&document, &content["schema"])
                .validate(&example["value"])
                .unwrap();
            assert_eq!(example["value"]["code"], *word);
            words.insert(word.clone());
        }
    }
    let about = document["info"]["description"].as_str().unwrap();
    let named =
        |row: &CodeRow| words.contains(row.word) || about.contains(&format!("`{}`", row.word));
    // Only configured endpoints have their own parameters.
    let mut others = CODES
        .iter()
        .filter(|row| row.code != ErrorCode::InvalidParameter);
    assert!(
        others.all(named) && words.len() == CODES.len() - 2,
        "{words:?}"
    );
}

#[test]
fn parameter_schemas_match_the_gateway() {
    let document = described();
    let takes = |name: &str, value: Value| {
        validator(
            &document,
            &document["components"]["parameters"][name]["schema"],
        )
        .is_valid(&value)
    };
    for param in Param::ALL {
        let described = &document["components"]["parameters"][param.name()];
        assert_eq!(described["description"], param.meaning());
        assert!(
            takes(param.name(), described["example"].clone()),
            "{described}"
        );
    }
    assert!(takes("period", json!("7d")) && !takes("period", json!("7D")));
    assert!(takes("sortBy", json!("7axis")) && !takes("sortBy", json!("name")));
    assert!(takes("limit", json!(1)) && takes("limit", json!(100)));
    assert!(
        !takes("limit", json!(0)) && !takes("limit", json!(101)) && !takes("limit", json!(1.5))
    );
    assert!(takes("id", json!("atlas-4.1:thinking")) && !takes("id", json!("a/b")));
    assert!(!takes("id", json!("")) && !takes("id", json!("x".repeat(129))));
}

#[test]
fn nested_fields_have_schemas_as_well() {
    let document = described();
    let axis = document
        .pointer("/components/schemas/ModelItem/properties/axes/items/properties/axis/enum");
    assert!(axis.is_some_and(Value::is_array));
}
