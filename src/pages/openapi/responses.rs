//! Responses and their headers. Operations share responses. A response is added when an operation first refers to it.

use http::StatusCode;
use serde_json::{Map, Value, json};

use scoregate_base::routes::{
    Endpoint,
    codes::CodeRow,
    headers::{self, HEADERS},
};

use super::{
    error_examples,
    schemas::{answer_name, insert, reference},
};

/// The member that every 429 response of an endpoint has.
const LIMIT: &str = "limit";
/// This header is not listed, because OpenAPI expresses it with the keys of `content`.
const SAID_BY_CONTENT: &str = "Content-Type";

/// The responses added so far.
#[derive(Default)]
pub struct NamedResponses(Map<String, Value>);

impl NamedResponses {
    /// The responses of an endpoint, by status.
    pub fn of(&mut self, endpoint: &Endpoint) -> Value {
        let mut responses = Map::new();
        let name = format!("200-{}", endpoint.name);
        responses.insert("200".into(), self.name(&name, || success(endpoint)));
        if endpoint.stored {
            responses.insert("304".into(), self.name("304", not_modified));
        }
        // The table is sorted by status, so equal rows are adjacent.
        let rows: Vec<&'static CodeRow> = endpoint.codes().collect();
        for same in rows.chunk_by(|a, b| a.status == b.status) {
            let Some(status) = same.first().map(|row| row.status) else {
                continue;
            };
            let words: Vec<_> = same.iter().map(|row| row.word).collect();
            let name = format!("{}-{}", status.as_u16(), words.join("-"));
            let response = self.name(&name, || failure(status, same));
            responses.insert(status.as_str().to_owned(), response);
        }
        Value::Object(responses)
    }

    /// All responses, and the headers to which they refer.
    pub fn finish(self) -> [Value; 2] {
        let headers = HEADERS.iter().filter(|header| {
            let mut responses = self.0.values();
            responses.any(|response| response["headers"].get(header.name).is_some())
        });
        let headers: Map<_, _> = headers
            .map(|header| (header.name.to_owned(), header_object(header)))
            .collect();
        [self.0.into(), headers.into()]
    }

    fn name(&mut self, name: &str, make: impl FnOnce() -> Value) -> Value {
        self.0.entry(name.to_owned()).or_insert_with(make);
        reference("responses", name)
    }
}

fn success(endpoint: &Endpoint) -> Value {
    json!({
        "description": endpoint.summary,
        "headers": headers_of(200, endpoint.stored),
        "content": { "application/json": { "schema": reference("schemas", &answer_name(endpoint)) } },
    })
}

fn not_modified() -> Value {
    json!({
        "description": "The document named by `If-None-Match` is still current. Does not count against the daily quota.",
        "headers": headers_of(304, true),
    })
}

fn failure(status: StatusCode, rows: &[&'static CodeRow]) -> Value {
    let description: Vec<_> = rows
        .iter()
        .map(|row| format!("`{}`: {}", row.word, row.condition))
        .collect();
    let words: Vec<_> = rows.iter().map(|row| row.word).collect();
    // The properties are next to the reference, not in an `allOf`, so that client generators create one type for all
    // errors.
    let content = |schema| {
        let mut here = reference("schemas", schema);
        let mut properties =
            json!({ "status": { "const": status.as_u16() }, "code": { "enum": words } });
        if status == StatusCode::TOO_MANY_REQUESTS {
            insert(&mut properties, LIMIT, reference("schemas", "Limit"));
            insert(&mut here, "required", json!([LIMIT]));
        }
        insert(&mut here, "properties", properties);
        here
    };
    let examples: Map<_, _> = rows
        .iter()
        .map(|row| {
            let example = json!({ "summary": row.title, "value": error_examples::body(row) });
            (row.word.to_owned(), example)
        })
        .collect();
    json!({
        "description": description.join("\n\n"),
        "headers": headers_of(status.as_u16(), true),
        "content": {
            "application/json": { "schema": content("Error"), "examples": examples },
            "application/problem+json": { "schema": content("Problem") },
        },
    })
}

fn headers_of(status: u16, stored: bool) -> Value {
    let covered = HEADERS
        .iter()
        .filter(|header| header.on.covers(status, stored));
    let named = covered.filter(|header| header.name != SAID_BY_CONTENT);
    named
        .map(|header| (header.name.to_owned(), reference("headers", header.name)))
        .collect()
}

fn header_object(header: &headers::Header) -> Value {
    let (schema, example) = match header.value {
        headers::HeaderValueKind::Integer => (
            json!({ "type": "integer", "minimum": 0 }),
            json!(header.example.parse::<u64>().unwrap_or(0)),
        ),
        headers::HeaderValueKind::Words(words) => (
            json!({ "type": "string", "enum": words }),
            json!(header.example),
        ),
        headers::HeaderValueKind::Pattern(pattern) => (
            json!({ "type": "string", "pattern": pattern }),
            json!(header.example),
        ),
    };
    json!({ "description": header.meaning, "required": header.always, "schema": schema, "example": example })
}
