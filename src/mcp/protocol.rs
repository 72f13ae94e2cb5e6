//! Revisions of the protocol. In the newest revision, each request states the version. In the other revisions, the
//! version is negotiated in a handshake.

use super::{
    mcp_headers::{self, McpHeaders, SentField},
    rpc_message::{BadMessage, RpcError, RpcMessage},
};

/// The supported revisions, newest first. Only the first revision has no handshake.
pub const PROTOCOLS: [&str; 3] = ["2026-07-28", "2025-11-25", "2025-06-18"];
const STATELESS: &str = PROTOCOLS[0];

/// The kind of revision that a request follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolEra {
    /// Each request states its version.
    Stateless,
    /// The version is negotiated in a handshake. The server does not store it.
    Handshake,
}

impl ProtocolEra {
    /// The kind of revision that a request follows. Returns an error if the headers do not match the body.
    pub fn of<'m>(
        message: &RpcMessage<'m>,
        headers: &McpHeaders<'_>,
    ) -> Result<Self, BadMessage<'m>> {
        Self::agreed(message, headers).map_err(|error| BadMessage {
            id: message.id,
            error,
        })
    }

    fn agreed(message: &RpcMessage<'_>, headers: &McpHeaders<'_>) -> Result<Self, RpcError> {
        let header = sole(headers.version, mcp_headers::VERSION)?;
        let meta = message.params.meta.as_ref();
        let Some(version) = meta.and_then(|meta| meta.version.as_deref()) else {
            return match header {
                Some(STATELESS) => Err(RpcError::new(
                    RpcError::INVALID_PARAMS,
                    "Send `io.modelcontextprotocol/protocolVersion` in `_meta`.",
                )),
                Some(other) if !PROTOCOLS.contains(&other) => Err(unsupported(other)),
                _ => Ok(Self::Handshake),
            };
        };
        if header != Some(version) {
            return Err(mismatch("MCP-Protocol-Version"));
        }
        if version != STATELESS {
            return Err(unsupported(version));
        }
        if sole(headers.method, mcp_headers::METHOD)? != Some(&*message.method) {
            return Err(mismatch("Mcp-Method"));
        }
        // Tool names are plain ASCII, so an encoded name is never a tool name.
        if message.method == "tools/call"
            && sole(headers.name, mcp_headers::NAME)? != message.params.name.as_deref()
        {
            return Err(mismatch("Mcp-Name"));
        }
        if meta.is_none_or(|meta| meta.client_info.is_none() || meta.client_capabilities.is_none())
        {
            return Err(RpcError::new(
                RpcError::INVALID_PARAMS,
                "Send `io.modelcontextprotocol/clientInfo` and `…/clientCapabilities` in `_meta`.",
            ));
        }
        Ok(Self::Stateless)
    }
}

/// The revision that is negotiated in a handshake. The stateless revision has no handshake, so it is never offered
/// here.
pub fn agreed(requested: Option<&str>) -> &'static str {
    let [_, newest, oldest] = PROTOCOLS;
    if requested == Some(oldest) {
        oldest
    } else {
        newest
    }
}

/// The value of a header field, which must not be repeated.
fn sole<'h>(field: SentField<'h>, name: &'static str) -> Result<Option<&'h str>, RpcError> {
    let value = field.first.map(|value| value.to_str()).transpose();
    value
        .ok()
        .filter(|_| !field.is_repeated)
        .ok_or_else(|| mismatch(name))
}

fn mismatch(field: &'static str) -> RpcError {
    let message = format!("Send {field} once, with the same value as in the body.");
    RpcError::new(RpcError::HEADER_MISMATCH, message)
}

fn unsupported(version: &str) -> RpcError {
    let data = serde_json::json!({ "supported": PROTOCOLS, "requested": version });
    let message = format!("Use one of the protocol versions {}.", PROTOCOLS.join(", "));
    RpcError {
        data: Some(data.to_string()),
        ..RpcError::new(RpcError::UNSUPPORTED_VERSION, message)
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName, HeaderValue};

    use crate::mcp::mcp_headers::{METHOD, NAME, VERSION};

    use super::*;

    fn era(body: &str, fields: &[(&'static str, &'static str)]) -> Result<ProtocolEra, i32> {
        let message = RpcMessage::read(body.as_bytes()).unwrap();
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            );
        }
        ProtocolEra::of(&message, &McpHeaders::of(&headers)).map_err(|bad| bad.error.code)
    }

    const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_models","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{},"io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    const FIELDS: [(&str, &str); 3] = [
        (VERSION, "2026-07-28"),
        (METHOD, "tools/call"),
        (NAME, "get_models"),
    ];

    #[test]
    fn a_stateless_request_agrees_with_its_headers() {
        assert_eq!(era(CALL, &FIELDS), Ok(ProtocolEra::Stateless));
        for (name, value) in FIELDS {
            let mut fields: Vec<_> = FIELDS
                .into_iter()
                .filter(|(other, _)| *other != name)
                .collect();
            assert_eq!(era(CALL, &fields), Err(RpcError::HEADER_MISMATCH), "{name}");
            fields.push((name, "ping"));
            assert_eq!(era(CALL, &fields), Err(RpcError::HEADER_MISMATCH), "{name}");
            let twice = [FIELDS.as_slice(), &[(name, value)]].concat();
            assert_eq!(era(CALL, &twice), Err(RpcError::HEADER_MISMATCH), "{name}");
        }
    }

    #[test]
    fn an_unknown_version_is_refused_and_a_missing_one_is_a_handshake() {
        let other = CALL.replace("2026-07-28", "2027-01-01");
        let fields = [(VERSION, "2027-01-01"), FIELDS[1], FIELDS[2]];
        assert_eq!(era(&other, &fields), Err(RpcError::UNSUPPORTED_VERSION));
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        assert_eq!(era(ping, &[]), Ok(ProtocolEra::Handshake));
        assert_eq!(
            era(ping, &[(VERSION, "2025-06-18")]),
            Ok(ProtocolEra::Handshake)
        );
        assert_eq!(
            era(ping, &[(VERSION, "2024-01-01")]),
            Err(RpcError::UNSUPPORTED_VERSION)
        );
        assert_eq!(
            era(ping, &[(VERSION, "2026-07-28")]),
            Err(RpcError::INVALID_PARAMS)
        );
        assert_eq!(
            era(&CALL.replace("clientInfo", "client"), &FIELDS),
            Err(RpcError::INVALID_PARAMS)
        );
    }

    #[test]
    fn a_handshake_never_agrees_on_the_stateless_revision() {
        for (requested, expected) in [
            (Some("2025-06-18"), "2025-06-18"),
            (Some("2025-11-25"), "2025-11-25"),
            (Some("2026-07-28"), "2025-11-25"),
            (Some("2024-11-05"), "2025-11-25"),
            (None, "2025-11-25"),
        ] {
            assert_eq!(agreed(requested), expected);
        }
    }
}
