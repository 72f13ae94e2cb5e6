//! A JSON-RPC 2.0 message from a client: a single request or notification. Batches and responses are invalid.

use std::{
    borrow::{Borrow, Cow},
    collections::BTreeMap,
    ops::Deref,
};

use serde::{Deserialize, Deserializer, de::IgnoredAny};
use serde_json::value::RawValue;

/// Maximum size of an id, which the response repeats.
const MAX_ID: usize = 256;

/// A request, or a notification if it has no id.
#[derive(Debug)]
pub struct RpcMessage<'m> {
    /// The id as it was sent.
    pub id: Option<&'m str>,
    /// The method.
    pub method: Cow<'m, str>,
    pub(super) params: RpcParams<'m>,
}

/// A string, borrowed from the message unless it has escapes.
#[derive(Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub struct RpcText<'m>(#[serde(borrow)] Cow<'m, str>);

/// The arguments of a call, each as JSON.
pub type CallArguments<'m> = BTreeMap<RpcText<'m>, &'m RawValue>;

/// The parameters of all methods of the protocol.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RpcParams<'m> {
    #[serde(borrow)]
    pub name: Option<RpcText<'m>>,
    #[serde(borrow)]
    pub arguments: Option<CallArguments<'m>>,
    #[serde(borrow)]
    pub protocol_version: Option<RpcText<'m>>,
    #[serde(rename = "_meta", borrow)]
    pub meta: Option<RequestMeta<'m>>,
}

/// The metadata of each request, in protocol revisions without a handshake.
#[derive(Debug, Deserialize)]
pub struct RequestMeta<'m> {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion", borrow)]
    pub version: Option<RpcText<'m>>,
    #[serde(rename = "io.modelcontextprotocol/clientInfo")]
    pub client_info: Option<IgnoredAny>,
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities")]
    pub client_capabilities: Option<IgnoredAny>,
}

/// An invalid message. The response is an error.
#[derive(Debug, PartialEq, Eq)]
pub struct BadMessage<'m> {
    /// The id, if it could be read.
    pub(super) id: Option<&'m str>,
    pub(super) error: RpcError,
}

/// An error of JSON-RPC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RpcError {
    pub code: i32,
    pub message: Cow<'static, str>,
    /// Additional data as JSON.
    pub data: Option<String>,
}

/// A message whose parameters are deserialized as `P`.
#[derive(Deserialize)]
struct RpcEnvelope<'m, P> {
    #[serde(borrow)]
    jsonrpc: Option<RpcText<'m>>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'m RawValue>,
    #[serde(borrow)]
    method: Option<RpcText<'m>>,
    params: Option<P>,
}

impl Deref for RpcText<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for RpcText<'_> {
    fn borrow(&self) -> &str {
        self
    }
}

impl RpcError {
    // JSON-RPC 2.0, section 5.1.
    pub const PARSE: i32 = -32_700;
    pub const INVALID_REQUEST: i32 = -32_600;
    pub const METHOD_NOT_FOUND: i32 = -32_601;
    pub const INVALID_PARAMS: i32 = -32_602;
    pub const HEADER_MISMATCH: i32 = -32_020;
    pub const UNSUPPORTED_VERSION: i32 = -32_022;
    /// A code outside the ranges that JSON-RPC and the protocol reserve.
    pub const UNAUTHENTICATED: i32 = 401;

    pub fn new(code: i32, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }
}

impl<'m> RpcMessage<'m> {
    /// Reads a message.
    pub fn read(bytes: &'m [u8]) -> Result<Self, BadMessage<'m>> {
        let text = std::str::from_utf8(bytes).map_err(|_| not_json())?;
        // A valid message is parsed in one pass. Further passes only determine the error of an invalid message.
        let Ok(envelope) = serde_json::from_str::<RpcEnvelope<'_, RpcParams<'_>>>(text) else {
            serde_json::from_str::<&RawValue>(text).map_err(|_| not_json())?;
            let envelope: RpcEnvelope<'_, IgnoredAny> =
                serde_json::from_str(text).map_err(|_| invalid(None))?;
            let (id, _, _) = envelope.valid()?;
            let message = "Send the parameters as an object with values of the right types.";
            return Err(BadMessage {
                id,
                error: RpcError::new(RpcError::INVALID_PARAMS, message),
            });
        };
        let (id, method, params) = envelope.valid()?;
        Ok(Self {
            id,
            method: method.0,
            params: params.unwrap_or_default(),
        })
    }
}

impl<'m, P> RpcEnvelope<'m, P> {
    /// The id, method and parameters of a valid request. The JSON-RPC version must be supported.
    fn valid(self) -> Result<(Option<&'m str>, RpcText<'m>, Option<P>), BadMessage<'m>> {
        let id = self.id.map(RawValue::get);
        if !id.is_none_or(is_id) {
            return Err(invalid(None));
        }
        match (self.jsonrpc.as_deref(), self.method) {
            (Some("2.0"), Some(method)) => Ok((id, method, self.params)),
            _ => Err(invalid(id)),
        }
    }
}

fn invalid(id: Option<&str>) -> BadMessage<'_> {
    let message = "Send one JSON-RPC 2.0 request, with a string or a number as id.";
    BadMessage {
        id,
        error: RpcError::new(RpcError::INVALID_REQUEST, message),
    }
}

fn not_json() -> BadMessage<'static> {
    let message = "Send one JSON-RPC message as JSON in UTF-8.";
    BadMessage {
        id: None,
        error: RpcError::new(RpcError::PARSE, message),
    }
}

/// Deserializes a member that is present, even if it is `null`.
fn present<'m, D: Deserializer<'m>>(deserializer: D) -> Result<Option<&'m RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Whether a JSON value is a string or a number. `null` is not an id in this protocol.
fn is_id(json: &str) -> bool {
    json.len() <= MAX_ID && json.starts_with(|first: char| matches!(first, '"' | '-' | '0'..='9'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn code(text: &str) -> (Option<&str>, i32) {
        let bad = RpcMessage::read(text.as_bytes()).unwrap_err();
        (bad.id, bad.error.code)
    }

    #[test]
    fn a_request_has_an_id_and_a_notification_has_none() {
        let text = r#"{"jsonrpc":"2.0","id":"a-1","method":"tools\/call","params":{"name":"get_models","arguments":{"period":"7d"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"other":[]}}"#;
        let message = RpcMessage::read(text.as_bytes()).unwrap();
        assert_eq!(
            (message.id, &*message.method),
            (Some("\"a-1\""), "tools/call")
        );
        assert_eq!(message.params.arguments.unwrap()["period"].get(), "\"7d\"");
        assert_eq!(
            message.params.meta.unwrap().version.as_deref(),
            Some("2026-07-28")
        );
        let text = r#" {"jsonrpc":"2.0","method":"notifications/initialized"} "#;
        assert_eq!(RpcMessage::read(text.as_bytes()).unwrap().id, None);
    }

    #[test]
    fn malformed_messages_have_the_codes_of_json_rpc() {
        for (text, expected) in [
            ("", (None, RpcError::PARSE)),
            ("{", (None, RpcError::PARSE)),
            ("{} {}", (None, RpcError::PARSE)),
            ("\u{feff}{}", (None, RpcError::PARSE)),
            ("[]", (None, RpcError::INVALID_REQUEST)),
            (
                r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
                (None, RpcError::INVALID_REQUEST),
            ),
            (
                r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
                (None, RpcError::INVALID_REQUEST),
            ),
            (
                r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#,
                (None, RpcError::INVALID_REQUEST),
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#,
                (None, RpcError::INVALID_REQUEST),
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"x"}"#,
                (None, RpcError::INVALID_REQUEST),
            ),
            (
                r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
                (Some("1"), RpcError::INVALID_REQUEST),
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
                (Some("1"), RpcError::INVALID_REQUEST),
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#,
                (Some("1"), RpcError::INVALID_PARAMS),
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"name":1}}"#,
                (Some("1"), RpcError::INVALID_PARAMS),
            ),
        ] {
            assert_eq!(code(text), expected, "{text}");
        }
        let long = format!(
            r#"{{"jsonrpc":"2.0","id":"{}","method":"ping"}}"#,
            "x".repeat(MAX_ID)
        );
        assert_eq!(code(&long), (None, RpcError::INVALID_REQUEST));
        assert_eq!(code(&"[".repeat(60_000)), (None, RpcError::PARSE));
        assert!(RpcMessage::read(b"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}").is_err());
    }

    #[test]
    fn nesting_takes_no_stack() {
        let deep = format!("{}{}", "[".repeat(30_000), "]".repeat(30_000));
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","other":{deep}}}"#);
        assert_eq!(RpcMessage::read(text.as_bytes()).unwrap().id, Some("1"));
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":{deep}}}"#);
        assert_eq!(code(&text), (None, RpcError::INVALID_REQUEST));
    }

    proptest! {
        #[test]
        fn no_bytes_panic_and_what_is_not_json_is_refused(text in r#"[\[\]{}",:\\a0 ]{0,80}"#) {
            let read = RpcMessage::read(text.as_bytes());
            prop_assert!(read.is_err() || serde_json::from_str::<IgnoredAny>(&text).is_ok());
        }
    }
}
