//! Responses and their headers. Operations share them: a response is added when an operation first refers to it.

use serde_json::{Map, Value, json};

use scoregate_base::routes::Endpoint;
use scoregate_base::routes::codes::{CodeRow, ErrorCode};
use scoregate_base::routes::headers::{self, HEADERS};

use super::schemas::{answer_name, insert, reference};

/// Not among the headers of a response: OpenAPI expresses it by the keys of `content`.
const SAID_BY_CONTENT: &str = "Content-Type";

/// The responses added so far.
#[derive(Default)]
pub(super) struct NamedResponses(Map<String, Value>);

impl NamedResponses {
    /// The responses of an endpoint, by status. Those to HEAD have no content.
    pub(super) fn of(&mut self, endpoint: &Endpoint, head: bool) -> Value {
        let mut responses = Map::new();
        responses
            .insert("200".into(), self.name(&format!("200-{}", endpoint.name), head, || success(endpoint)));
        if endpoint.stored {
            responses.insert("304".into(), self.name("304", false, not_modified));
        }
        // The table is sorted by status, so equal ones are adjacent.
        let rows: Vec<&CodeRow> = endpoint.codes().collect();
        for same in rows.chunk_by(|a, b| a.status == b.status) {
            let status = same.first().map(|row| row.status.as_str().to_owned());
            responses.extend(status.map(|status| (status, self.error(same, head))));
        }
        Value::Object(responses)
    }

    /// All responses, with two that belong to no operation: unknown path and unsupported method.
    pub(super) fn finish(mut self) -> Map<String, Value> {
        for code in [ErrorCode::NotFound, ErrorCode::MethodNotAllowed] {
            self.error(&[code.row()], false);
        }
        self.0
    }

    fn error(&mut self, rows: &[&CodeRow], head: bool) -> Value {
        let words: Vec<_> = rows.iter().map(|row| row.word).collect();
        let status = rows.first().map_or(0, |row| row.status.as_u16());
        self.name(&format!("{status}-{}", words.join("-")), head, || failure(status, rows))
    }

    fn name(&mut self, name: &str, head: bool, make: impl FnOnce() -> Value) -> Value {
        let name = if head { format!("{name}-head") } else { name.to_owned() };
        self.0.entry(name.clone()).or_insert_with(|| {
            let mut response = make();
            if let Some(response) = response.as_object_mut().filter(|_| head) {
                response.remove("content");
            }
            response
        });
        reference("responses", &name)
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
        "description": "The document named by `If-None-Match` is still current. Costs nothing of the daily quota.",
        "headers": headers_of(304, true),
    })
}

fn failure(status: u16, rows: &[&CodeRow]) -> Value {
    let description: Vec<_> = rows.iter().map(|row| format!("`{}`: {}", row.word, row.condition)).collect();
    let words: Vec<_> = rows.iter().map(|row| row.word).collect();
    // Beside the reference, not in an `allOf`: generators of clients then have one type for all errors.
    let content = |schema| {
        let mut here = reference("schemas", schema);
        insert(&mut here, "properties", json!({ "status": { "const": status }, "code": { "enum": words } }));
        json!({ "schema": here })
    };
    json!({
        "description": description.join("\n\n"),
        "headers": headers_of(status, true),
        "content": { "application/json": content("Error"), "application/problem+json": content("Problem") },
    })
}

fn headers_of(status: u16, stored: bool) -> Value {
    let covered = HEADERS.iter().filter(|header| header.on.covers(status, stored));
    let named = covered.filter(|header| header.name != SAID_BY_CONTENT);
    named.map(|header| (header.name.to_owned(), reference("headers", header.name))).collect()
}

/// The descriptions of all headers, by name.
pub(super) fn headers() -> Map<String, Value> {
    let named = HEADERS.iter().filter(|header| header.name != SAID_BY_CONTENT);
    named.map(|header| (header.name.to_owned(), header_object(header))).collect()
}

fn header_object(header: &headers::Header) -> Value {
    let (schema, example) = match header.value {
        headers::HeaderValueKind::Integer => {
            (json!({ "type": "integer", "minimum": 0 }), json!(header.example.parse::<u64>().unwrap_or(0)))
        }
        headers::HeaderValueKind::Words(words) => {
            (json!({ "type": "string", "enum": words }), json!(header.example))
        }
        headers::HeaderValueKind::Pattern(pattern) => {
            (json!({ "type": "string", "pattern": pattern }), json!(header.example))
        }
    };
    json!({ "description": header.meaning, "required": header.always, "schema": schema, "example": example })
}
