//! Translates the response to a request into the result of a call.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, ETAG, LAST_MODIFIED, VARY};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body_util::{BodyExt as _, Collected, Full};
use serde::Deserialize;

use crate::cache::DerivedTexts;
use crate::instruments::McpOutcome;
use scoregate_base::routes::{Endpoint, append_string};

use super::brief_text::brief_text;
use super::rpc_reply;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const NO_STORE: HeaderValue = HeaderValue::from_static("private, no-store");

/// The members of an error that its text has.
#[derive(Deserialize)]
struct RefusalBody {
    message: String,
    sign_up: Option<String>,
    upgrade: Option<String>,
}

/// The response to a call with this id, from the response to the request that it stands for.
pub(super) async fn translated(
    id: &str,
    endpoint: &Endpoint,
    texts: &DerivedTexts,
    response: Response<Full<Bytes>>,
) -> (Response<Full<Bytes>>, McpOutcome) {
    // Clients ask their user for a key.
    if response.status() == StatusCode::UNAUTHORIZED {
        return (response, McpOutcome::Unauthenticated);
    }
    let (mut head, body) = response.into_parts();
    let body = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
    let tag = head.headers.remove(ETAG);
    head.headers.remove(LAST_MODIFIED);
    let (text, end) = if head.status == StatusCode::OK {
        let write = || text_of(endpoint, &body);
        let text = match tag {
            Some(tag) => texts.get(endpoint.route.index(), tag, write),
            None => write(),
        };
        (text, McpOutcome::Answered)
    } else {
        (Bytes::from(refusal_text(&body)), McpOutcome::ToolError)
    };
    let is_error = if end == McpOutcome::Answered { "false" } else { "true" };
    // Both are JSON, which is UTF-8.
    let [text, content] = [&text, &body].map(|json| std::str::from_utf8(json).unwrap_or("null"));
    let parts = [
        "{\"resultType\":\"complete\",\"content\":[{\"type\":\"text\",\"text\":",
        text,
        "}],\"structuredContent\":",
        content,
        ",\"isError\":",
        is_error,
        "}",
    ];
    head.status = StatusCode::OK;
    let body = rpc_reply::result(id, &parts);
    describe(&mut head.headers, &body);
    (Response::from_parts(head, Full::new(body)), end)
}

/// The text of a response as JSON. Of another body than the API's it is that body.
fn text_of(endpoint: &Endpoint, body: &[u8]) -> Bytes {
    let text = brief_text(endpoint, body).unwrap_or_else(|| String::from_utf8_lossy(body).into_owned());
    let mut json = Vec::with_capacity(text.len() + 2);
    append_string(&mut json, &text);
    json.into()
}

/// Sets the headers that every response with JSON has.
pub(super) fn describe(headers: &mut HeaderMap, body: &Bytes) {
    headers.insert(CONTENT_TYPE, JSON);
    headers.insert(CONTENT_LENGTH, body.len().into());
    headers.insert(CACHE_CONTROL, NO_STORE);
    headers.remove(VARY);
}

/// The message of an error and an address, as a JSON text.
fn refusal_text(body: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    match serde_json::from_slice::<RefusalBody>(body) {
        Ok(RefusalBody { message, sign_up, upgrade }) => {
            let address = sign_up.or(upgrade).map(|address| format!(" See {address}")).unwrap_or_default();
            append_string(&mut text, &format!("{message}{address}"));
        }
        Err(_) => append_string(&mut text, "The request failed."),
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_states_where_to_go() {
        let text = |body: &str| String::from_utf8(refusal_text(body.as_bytes())).unwrap();
        assert_eq!(text(r#"{"message":"Wait 3 s."}"#), r#""Wait 3 s.""#);
        let upgrade = r#"{"message":"Wait.","upgrade":"https://example.org/plans","code":"x"}"#;
        assert_eq!(text(upgrade), r#""Wait. See https://example.org/plans""#);
        assert_eq!(text("no JSON"), r#""The request failed.""#);
    }
}
