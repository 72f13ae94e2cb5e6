//! The backend's shapes: where a document lies at the backend, and how its data is cut out of what came back.
//!
//! A bare array, `{"data": …}` and a full envelope are understood; a single object stands for an array of one. Items
//! are kept as raw bytes. Not for: transport (`http.rs`), nor for changing a field of an item.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::cache::{Content, Source};
use crate::clock::Wall;
use crate::routes::DocumentKey;

/// The path and query of a document below the backend's base address: canonical, made of checked values alone.
pub(super) fn target(key: &DocumentKey) -> String {
    let mut target = String::new();
    for segment in key.route.endpoint().segments {
        target.push('/');
        match (*segment, &key.id) {
            // An identifier is ASCII letters, digits and `._:-`: nothing in it needs an escape in a path.
            (":id", Some(id)) => target.push_str(id.as_str()),
            (fixed, _) => target.push_str(fixed),
        }
    }
    let limit = key.limit.map(|limit| limit.get().to_string());
    let pairs = [
        ("period", key.period.map(crate::routes::Period::word)),
        ("sortBy", key.sort_by.map(crate::routes::SortBy::word)),
        ("limit", limit.as_deref()),
    ];
    let mut separator = '?';
    for (name, value) in pairs {
        if let Some(value) = value {
            target.push(separator);
            target.push_str(name);
            target.push('=');
            target.push_str(value);
            separator = '&';
        }
    }
    target
}

/// A backend's envelope, as far as it matters. A field given twice is an error: readers would disagree about it.
#[derive(Deserialize)]
struct Envelope<'b> {
    success: Option<bool>,
    #[serde(borrow)]
    generated_at: Option<&'b RawValue>,
    #[serde(borrow)]
    data: Option<&'b RawValue>,
}

/// An item, as far as it matters here.
#[derive(Deserialize)]
struct Dated {
    #[serde(rename = "lastUpdated", default)]
    last_updated: Option<serde_json::Value>,
}

/// Cuts the data out of a body. `dated` is what the transport says of the data's instant, `now` stands in if nobody
/// says anything. The reason is for the operator.
pub fn read_content(
    key: &DocumentKey,
    body: &Bytes,
    source: Source,
    dated: Option<Wall>,
    now: Wall,
) -> Result<Content, String> {
    let text = std::str::from_utf8(body).map_err(|_| "it is not UTF-8".to_owned())?;
    let (data, stated) = match text.trim_start().as_bytes().first() {
        Some(b'[') => (raw(text)?, None),
        Some(b'{') => from_envelope(text)?,
        _ => return Err("it is neither a JSON object nor a JSON array".into()),
    };
    let (array, count) = as_array(body, data)?;
    if key.route.endpoint().one && count != 1 {
        return Err(format!("it is about one thing, and its `data` has {count} items"));
    }
    let generated_at = stated.or(dated).or_else(|| newest_update(data)).unwrap_or(now);
    Ok(Content { data: array, count, generated_at, source })
}

fn raw(text: &str) -> Result<&RawValue, String> {
    serde_json::from_str(text).map_err(|error| format!("it is not well-formed JSON: {error}"))
}

fn from_envelope(text: &str) -> Result<(&RawValue, Option<Wall>), String> {
    let envelope: Envelope<'_> =
        serde_json::from_str(text).map_err(|error| format!("it is no envelope: {error}"))?;
    if envelope.success == Some(false) {
        return Err("it says success: false".into());
    }
    let data = envelope.data.ok_or("its object has no `data`")?;
    // An instant that cannot be read is none: the next best stands in for it.
    let stated = envelope.generated_at.and_then(|instant| serde_json::from_str::<String>(instant.get()).ok());
    Ok((data, stated.as_deref().and_then(Wall::parse_rfc3339)))
}

/// The data as an array, and how many items it has.
fn as_array(body: &Bytes, data: &RawValue) -> Result<(Bytes, usize), String> {
    let text = data.get();
    match text.as_bytes().first() {
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(text).map_err(|error| error.to_string())?;
            if let Some(odd) = items.iter().find(|item| !item.get().starts_with('{')) {
                let start: String = odd.get().chars().take(40).collect();
                return Err(format!("an item of `data` is no object: {start:?}"));
            }
            Ok((body.slice_ref(text.as_bytes()), items.len()))
        }
        Some(b'{') => Ok((Bytes::from(format!("[{text}]")), 1)),
        _ => Err("its `data` is neither an array nor an object".into()),
    }
}

/// The newest `lastUpdated` among the items; items that have none, or none that can be read, do not matter.
fn newest_update(data: &RawValue) -> Option<Wall> {
    let items: Vec<&RawValue> = serde_json::from_str(data.get()).unwrap_or_else(|_| vec![data]);
    items
        .into_iter()
        .filter_map(|item| serde_json::from_str::<Dated>(item.get()).ok()?.last_updated)
        .filter_map(|instant| Wall::parse_rfc3339(instant.as_str()?))
        .max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::{Limit, ModelId, Period, Query, Route};

    fn read(body: &str) -> Result<Content, String> {
        let now = Wall::from_seconds(1_000_000_000);
        let key = DocumentKey::new(Route::Models, None, Query::default(), Period::Day);
        read_content(&key, &Bytes::copy_from_slice(body.as_bytes()), Source::default(), None, now)
    }

    #[test]
    fn a_target_is_made_of_the_parsed_request_alone() {
        let limit = Query { limit: Limit::parse("7"), period: Some(Period::Week), ..Query::default() };
        for (route, id, query, expected) in [
            (Route::Models, None, Query::default(), "/models?period=24h&sortBy=combined"),
            (Route::History, Some("a:b.c"), Query::default(), "/models/a:b.c/history?period=24h"),
            (Route::Incidents, None, limit, "/incidents?period=7d&limit=7"),
            (Route::Index, Some("ignored"), limit, "/index"),
        ] {
            let key = DocumentKey::new(route, id.and_then(ModelId::new), query, Period::Day);
            assert_eq!(target(&key), expected);
        }
    }

    #[test]
    fn an_array_an_object_with_data_and_a_full_envelope_are_understood() {
        for body in [
            r#"[{"id":"a"}]"#,
            r#" {"data":[{"id":"a"}]}"#,
            r#"{"data":{"id":"a"}}"#,
            r#"{"success":true,"version":"9","count":1,"data":[{"id":"a"}],"extra":[1]}"#,
        ] {
            let content = read(body).unwrap();
            assert_eq!((&content.data[..], content.count), (&br#"[{"id":"a"}]"#[..], 1), "{body}");
        }
        assert_eq!(read("[]").unwrap().count, 0);
    }

    #[test]
    fn anything_else_is_refused_with_the_reason() {
        for (body, reason) in [
            ("", "neither"),
            ("<html>", "neither"),
            ("null", "neither"),
            (r#"{"success":false,"data":[]}"#, "success: false"),
            (r#"{"success":"no","data":[]}"#, "no envelope"),
            (r#"{"error":"x"}"#, "no `data`"),
            (r#"{"data":null}"#, "no `data`"),
            (r#"{"data":7}"#, "neither an array"),
            (r#"{"data":[1]}"#, "no object"),
            (r#"{"data":[],"data":[]}"#, "no envelope"),
            (r#"[{"id":"a"}"#, "not well-formed"),
            (r#"[{"id":"a"}] [] "#, "not well-formed"),
            (r#"{"data":[{]}"#, "no envelope"),
        ] {
            let refused = read(body).unwrap_err();
            assert!(refused.contains(reason), "{body}: {refused}");
        }
    }

    #[test]
    fn what_is_about_one_thing_has_exactly_one_item() {
        let key = DocumentKey::new(Route::Index, None, Query::default(), Period::Day);
        let read =
            |body| read_content(&key, &Bytes::from_static(body), Source::default(), None, Wall::default());
        assert!(read(b"[{}]").is_ok() && read(b"[]").is_err() && read(b"[{},{}]").is_err());
    }

    #[test]
    fn the_data_s_instant_is_what_the_backend_states_and_the_next_best_where_it_does_not() {
        let stated = read(
            r#"{"generated_at":"2026-11-21T10:00:00Z","data":[{"lastUpdated":"2026-11-21T09:00:00Z"}]}"#,
        )
        .unwrap();
        assert_eq!(stated.generated_at.rfc3339(), "2026-11-21T10:00:00Z");
        let newest = read(r#"[{"lastUpdated":"2026-11-21T09:00:00Z"},{"lastUpdated":7},{},{"lastUpdated":"2026-11-21T09:30:00Z"}]"#).unwrap();
        assert_eq!(newest.generated_at.rfc3339(), "2026-11-21T09:30:00Z");
        assert!(read(r#"{"generated_at":1763726400,"data":[]}"#).is_ok());
        assert_eq!(read("[{}]").unwrap().generated_at, Wall::from_seconds(1_000_000_000));
    }
}
