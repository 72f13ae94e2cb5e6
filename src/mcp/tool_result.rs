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
use super::rpc_message::RpcError;
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

/// The response to a call with this id, from the response to its request.
pub(super) async fn translated(
    id: &str,
    endpoint: &Endpoint,
    texts: &DerivedTexts,
    response: Response<Full<Bytes>>,
) -> (Response<Full<Bytes>>, McpOutcome) {
    let (mut head, body) = response.into_parts();
    let body = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
    let tag = head.headers.remove(ETAG);
    head.headers.remove(LAST_MODIFIED);
    if head.status == StatusCode::UNAUTHORIZED {
        let body = rpc_reply::error(Some(id), &unauthenticated(&body));
        describe(&mut head.headers, &body);
        return (Response::from_parts(head, Full::new(body)), McpOutcome::Unauthenticated);
    }
    let (text, end) = if head.status == StatusCode::OK {
        let write = || text_of(endpoint, &body);
        let text = match tag {
            Some(tag) => texts.get(endpoint.route.index(), tag, write),
            None => write(),
        };
        (text, McpOutcome::Answered)
    } else {
        (json_string(&refusal_text(&body)), McpOutcome::ToolError)
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
    json_string(&text)
}

/// Sets the headers that every response with JSON has.
pub(super) fn describe(headers: &mut HeaderMap, body: &Bytes) {
    headers.insert(CONTENT_TYPE, JSON);
    headers.insert(CONTENT_LENGTH, body.len().into());
    headers.insert(CACHE_CONTROL, NO_STORE);
    headers.remove(VARY);
}

/// The error of a call without a valid key. Clients show the message of an error of JSON-RPC only.
fn unauthenticated(body: &[u8]) -> RpcError {
    let data = std::str::from_utf8(body).ok().map(str::to_owned);
    RpcError { data, ..RpcError::new(RpcError::UNAUTHENTICATED, refusal_text(body)) }
}

/// The message of an error and an address.
fn refusal_text(body: &[u8]) -> String {
    let Ok(RefusalBody { message, sign_up, upgrade }) = serde_json::from_slice(body) else {
        return "The request failed.".to_owned();
    };
    let address = sign_up.or(upgrade).map(|address| format!(" See {address}")).unwrap_or_default();
    message + &address
}

fn json_string(text: &str) -> Bytes {
    let mut json = Vec::with_capacity(text.len() + 2);
    append_string(&mut json, text);
    json.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_states_where_to_go() {
        let text = |body: &str| refusal_text(body.as_bytes());
        assert_eq!(text(r#"{"message":"Wait 3 s."}"#), "Wait 3 s.");
        let upgrade = r#"{"message":"Wait.","upgrade":"https://example.org/plans","code":"x"}"#;
        assert_eq!(text(upgrade), "Wait. See https://example.org/plans");
        assert_eq!(text("no JSON"), "The request failed.");
    }
}
