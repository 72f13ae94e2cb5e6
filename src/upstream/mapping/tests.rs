//! Tests how backend bodies are read for each endpoint and mapping.

use bytes::Bytes;

use crate::{
    cache::{DocumentContent, Validators},
    upstream::UpstreamResponse,
};
use scoregate_base::{
    clock::Wall,
    routes::{DocumentKey, ENDPOINTS, Period, Query, Route},
};

use super::*;

const NOW: Wall = Wall::from_seconds(1_000_000_000);

fn canonical(route: Route) -> EndpointMapping {
    EndpointMapping::canonical(route.endpoint())
}

fn read_body(
    route: Route,
    mapping: &EndpointMapping,
    body: &str,
) -> Result<UpstreamResponse, String> {
    let key = DocumentKey::new(route, None, Query::default(), Period::Day);
    let head = ResponseInfo {
        source: Validators::default(),
        dated: None,
        next_refresh: None,
        now: NOW,
    };
    mapping.read(&key, &Bytes::copy_from_slice(body.as_bytes()), head)
}

/// The result as a word, and the data.
fn said(
    route: Route,
    mapping: &EndpointMapping,
    body: &str,
) -> Result<(&'static str, String), String> {
    let text = |content: DocumentContent| String::from_utf8(content.data.to_vec()).unwrap();
    Ok(match read_body(route, mapping, body)? {
        UpstreamResponse::Content { content, .. } => ("content", text(content)),
        UpstreamResponse::Nothing { content, .. } => ("nothing", text(content)),
        UpstreamResponse::NoSuchModel => ("no such model", String::new()),
        UpstreamResponse::IdRejected => ("id rejected", String::new()),
        UpstreamResponse::Unchanged { .. } => ("unchanged", String::new()),
    })
}

fn read(body: &str) -> Result<DocumentContent, String> {
    match read_body(Route::Models, &canonical(Route::Models), body)? {
        UpstreamResponse::Content { content, .. } => Ok(content),
        other @ (UpstreamResponse::Nothing { .. }
        | UpstreamResponse::NoSuchModel
        | UpstreamResponse::IdRejected
        | UpstreamResponse::Unchanged { .. }) => {
            panic!("{other:?}")
        }
    }
}

fn at(pointer: &str) -> JsonPointer {
    JsonPointer::parse(pointer).unwrap()
}

#[test]
fn every_endpoint_that_a_backend_answers_has_a_row() {
    let mapping = Mapping::default();
    for row in &ENDPOINTS {
        assert_eq!(
            mapping.endpoints.contains_key(&row.route),
            row.route != Route::Me
        );
    }
    assert!(!mapping.lists_all_models);
}

#[test]
fn arrays_data_objects_and_envelopes_are_accepted() {
    for body in [
        r#"[{"id":"a"}]"#,
        r#" {"data":[{"id":"a"}]}"#,
        r#"{"data":{"id":"a"}}"#,
        r#"{"success":true,"version":"9","count":1,"data":[{"id":"a"}],"extra":[1]}"#,
        r#"{"error":"of last week","data":[{"id":"a"}]}"#,
    ] {
        let content = read(body).unwrap();
        assert_eq!(
            (&content.data[..], content.count),
            (&br#"[{"id":"a"}]"#[..], 1),
            "{body}"
        );
    }
    assert_eq!(read("[]").unwrap().count, 0);
}

#[test]
fn other_values_are_rejected_with_the_reason() {
    for (body, reason) in [
        ("", "neither"),
        ("<html>", "neither"),
        ("null", "neither"),
        (r#"{"success":false,"data":[]}"#, "success: false"),
        (r#"{"success":"no","data":[]}"#, "neither true nor false"),
        (r#"{"error":"x"}"#, "no data at `/data`"),
        (r#"{"data":null}"#, "no data at `/data`"),
        (r#"{"data":7}"#, "at `/data` is neither an array"),
        (r#"{"data":[1]}"#, "not an object"),
        (r#"{"data":[],"data":[]}"#, "`/data` occurs twice"),
        (
            r#"{"data":[],"generated_at":1,"generated_at":2}"#,
            "`/generated_at` occurs twice",
        ),
        (r#"[{"id":"a"}"#, "not well-formed"),
        (r#"[{"id":"a"}] [] "#, "not well-formed"),
        (r#"{"data":[{]}"#, "not well-formed"),
    ] {
        let refused = read(body).unwrap_err();
        assert!(refused.contains(reason), "{body}: {refused}");
    }
}

#[test]
fn single_item_endpoints_require_exactly_one_item() {
    let read = |body| read_body(Route::Index, &canonical(Route::Index), body);
    assert!(read("[{}]").is_ok() && read("[]").is_err() && read("[{},{}]").is_err());
}

#[test]
fn data_timestamp_falls_back_if_the_backend_states_none() {
    let stated = read(
        r#"{"generated_at":"2026-11-21T10:00:00Z","data":[{"lastUpdated":"2026-11-21T09:00:00Z"}]}"#,
    );
    assert_eq!(
        stated.unwrap().generated_at.rfc3339(),
        "2026-11-21T10:00:00Z"
    );
    let newest = read(
        r#"[{"lastUpdated":"2026-11-21T09:00:00Z"},{"lastUpdated":7},{},{"lastUpdated":"2026-11-21T09:30:00Z"}]"#,
    );
    assert_eq!(
        newest.unwrap().generated_at.rfc3339(),
        "2026-11-21T09:30:00Z"
    );
    assert_eq!(
        read(r#"{"generated_at":1763726400,"data":[]}"#)
            .unwrap()
            .generated_at,
        NOW
    );
    assert_eq!(read("[{}]").unwrap().generated_at, NOW);
}

#[test]
fn data_and_timestamp_are_read_from_configured_pointers() {
    let mapping = EndpointMapping {
        data: Some(at("/result/rows")),
        shape: DataShape::Map {
            key_as: "id".into(),
        },
        timestamp: at("/meta/at"),
        ..canonical(Route::Models)
    };
    let read = |body| read_body(Route::Models, &mapping, body);
    let body = r#"{"success":true,"meta":{"at":"2026-11-21T10:00:00Z"},"data":[],"result":{"rows":{"17":{"n":1.10}}}}"#;
    let Ok(UpstreamResponse::Content { content, .. }) = read(body) else {
        panic!("{:?}", read(body))
    };
    assert_eq!(&content.data[..], br#"[{"id":"17","n":1.10}]"#);
    assert_eq!(content.generated_at.rfc3339(), "2026-11-21T10:00:00Z");
    let newest = r#"{"result":{"rows":{"a":{"lastUpdated":"2026-11-21T09:30:00Z"}}}}"#;
    let Ok(UpstreamResponse::Content { content, .. }) = read(newest) else {
        panic!("{:?}", read(newest))
    };
    assert_eq!(content.generated_at.rfc3339(), "2026-11-21T09:30:00Z");
    for (body, reason) in [
        (r#"{"data":[]}"#, "no data at `/result/rows`"),
        (
            r#"{"result":{"rows":[]}}"#,
            "the value at `/result/rows` is not an object",
        ),
        (
            r#"{"result":{},"result":{"rows":{}}}"#,
            "`/result/rows` occurs twice",
        ),
        (
            r#"{"success":false,"result":{"rows":{}}}"#,
            "success: false",
        ),
    ] {
        assert!(read(body).unwrap_err().contains(reason), "{body}");
    }
}

#[test]
fn bare_object_is_the_item_unless_it_reports_an_error() {
    let mut mapping = EndpointMapping {
        data: Some(at("")),
        shape: DataShape::Object,
        ..canonical(Route::Model)
    };
    let item = r#"{"id":"17","data":[],"success":0.5,"error":null}"#;
    assert_eq!(
        said(Route::Model, &mapping, item),
        Ok(("content", format!("[{item}]")))
    );
    let gone = r#"{"error":"Model 17 not found"}"#;
    assert!(
        said(Route::Model, &mapping, gone)
            .unwrap_err()
            .contains("Model 17 not found")
    );
    assert!(
        said(Route::Model, &mapping, "[{}]")
            .unwrap_err()
            .contains("the value at the top is not an object")
    );
    mapping.not_found = vec![NotFound::Error];
    assert_eq!(
        said(Route::Model, &mapping, gone),
        Ok(("no such model", String::new()))
    );
}

#[test]
fn a_text_that_contains_not_found_counts_only_if_configured() {
    let gone = r#"{"success":false,"error":"Model 17 not found"}"#;
    let mut mapping = canonical(Route::Drift);
    assert!(
        said(Route::Drift, &mapping, gone)
            .unwrap_err()
            .contains("Model 17 not found")
    );
    assert!(!mapping.reports_missing_model(&Bytes::from_static(gone.as_bytes())));
    mapping.not_found = vec![NotFound::Error];
    assert_eq!(
        said(Route::Drift, &mapping, gone),
        Ok(("no such model", String::new()))
    );
    assert!(mapping.reports_missing_model(&Bytes::from_static(gone.as_bytes())));
    for other in [
        r#"{"success":false,"error":"busy"}"#,
        r#"{"error":"not found"}"#,
        "",
        "<html>not found",
    ] {
        assert!(said(Route::Drift, &mapping, other).is_err(), "{other}");
        assert!(
            !mapping.reports_missing_model(&Bytes::from_static(other.as_bytes())),
            "{other}"
        );
    }
}

#[test]
fn an_empty_list_means_a_missing_model_only_if_configured() {
    let empty = r#"{"success":true,"data":[]}"#;
    let mut history = canonical(Route::History);
    assert_eq!(
        said(Route::History, &history, empty),
        Ok(("content", "[]".into()))
    );
    history.not_found = vec![NotFound::Empty];
    assert_eq!(
        said(Route::History, &history, empty),
        Ok(("nothing", "[]".into()))
    );
    let full = r#"{"data":[{}]}"#;
    assert_eq!(
        said(Route::History, &history, full),
        Ok(("content", "[{}]".into()))
    );
    // The response about a single model is never empty, so an empty list means that the model does not exist.
    let mut drift = canonical(Route::Drift);
    assert!(said(Route::Drift, &drift, empty).is_err());
    drift.not_found = vec![NotFound::Empty];
    assert_eq!(
        said(Route::Drift, &drift, empty),
        Ok(("no such model", String::new()))
    );
}
