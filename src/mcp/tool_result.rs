//! Turns an API response into the result of a tool call.

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE},
};
use http_body_util::{BodyExt as _, Full};
use serde::Deserialize;

use crate::instruments::McpOutcome;
use scoregate_base::routes::{Endpoint, append, append_string};

use super::{brief_text::brief_text, rpc_message::RpcError, rpc_reply};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const NO_STORE: HeaderValue = HeaderValue::from_static("private, no-store");
/// The members of a result before the text. No body of the API begins like this.
const BEGIN: &str = "{\"resultType\":\"complete\",\"content\":[{\"type\":\"text\",\"text\":";

/// The error members that the text contains.
#[derive(Deserialize)]
struct RefusalBody {
    message: String,
    sign_up: Option<String>,
    upgrade: Option<String>,
}

/// Turns an API response into the response to the MCP call with this id. The body of the API response is either a ready-made
/// result that is stored with the document, or any other body of the API.
pub async fn translated(
    id: &str,
    endpoint: &Endpoint,
    response: Response<Full<Bytes>>,
) -> (Response<Full<Bytes>>, McpOutcome) {
    let (mut head, mut body) = response.into_parts();
    let body = body
        .frame()
        .await
        .and_then(|frame| frame.ok()?.into_data().ok())
        .unwrap_or_default();
    if body.starts_with(BEGIN.as_bytes()) {
        let body = Full::new(rpc_reply::result(id, &body));
        return (Response::from_parts(head, body), McpOutcome::Answered);
    }
    let (body, outcome) = match head.status {
        StatusCode::UNAUTHORIZED => (
            rpc_reply::error(Some(id), &unauthenticated(&body)),
            McpOutcome::Unauthenticated,
        ),
        StatusCode::OK => (
            rpc_reply::result(id, &tool_result(endpoint, &body)),
            McpOutcome::Answered,
        ),
        _ => (
            rpc_reply::result(id, &result(&refusal_text(&body), &body, true)),
            McpOutcome::ToolError,
        ),
    };
    if outcome == McpOutcome::ToolError {
        head.status = StatusCode::OK;
    }
    describe(&mut head.headers, &body);
    (Response::from_parts(head, Full::new(body)), outcome)
}

/// The result of a call for this body of the API. It contains the brief text of the body, or the body itself if there
/// is no brief text.
pub fn tool_result(endpoint: &Endpoint, body: &[u8]) -> Bytes {
    let text =
        brief_text(endpoint, body).unwrap_or_else(|| String::from_utf8_lossy(body).into_owned());
    result(&text, body, false)
}

/// A result with a text and a body, which is JSON.
fn result(text: &str, body: &[u8], is_error: bool) -> Bytes {
    let mut json = Vec::with_capacity(BEGIN.len() + text.len() + body.len() + 64);
    append(&mut json, &[BEGIN]);
    append_string(&mut json, text);
    append(&mut json, &["}],\"structuredContent\":"]);
    json.extend_from_slice(body);
    append(
        &mut json,
        &[
            ",\"isError\":",
            if is_error { "true" } else { "false" },
            "}",
        ],
    );
    // The copy has the exact size, because the result is stored with its document.
    Bytes::copy_from_slice(&json)
}

/// Sets the headers of a JSON response.
pub fn describe(headers: &mut HeaderMap, body: &Bytes) {
    headers.insert(CONTENT_TYPE, JSON);
    headers.insert(CONTENT_LENGTH, body.len().into());
    headers.insert(CACHE_CONTROL, NO_STORE);
}

/// The error of a call without a valid key. Clients show only the message of a JSON-RPC error.
fn unauthenticated(body: &[u8]) -> RpcError {
    let data = std::str::from_utf8(body).ok().map(str::to_owned);
    RpcError {
        data,
        ..RpcError::new(RpcError::UNAUTHENTICATED, refusal_text(body))
    }
}

/// The message of an error, with a URL if there is one.
fn refusal_text(body: &[u8]) -> String {
    let Ok(RefusalBody {
        message,
        sign_up,
        upgrade,
    }) = serde_json::from_slice(body)
    else {
        return "The request failed.".to_owned();
    };
    let address = sign_up
        .or(upgrade)
        .map(|address| format!(" See {address}"))
        .unwrap_or_default();
    message + &address
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
