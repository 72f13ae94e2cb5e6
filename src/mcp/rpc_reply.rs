//! Responses of JSON-RPC, written as text around JSON that exists already.

use bytes::Bytes;

use scoregate_base::routes::{append, append_string};

use super::rpc_message::RpcError;

/// The response with a result, which is JSON in parts.
pub(super) fn result(id: &str, parts: &[&str]) -> Bytes {
    let size: usize = parts.iter().map(|part| part.len()).sum();
    let mut body = Vec::with_capacity(size + id.len() + 40);
    append(&mut body, &["{\"jsonrpc\":\"2.0\",\"id\":", id, ",\"result\":"]);
    append(&mut body, parts);
    body.push(b'}');
    body.into()
}

/// The response with an error. Without an id it belongs to no request.
pub(super) fn error(id: Option<&str>, error: &RpcError) -> Bytes {
    let mut body = Vec::new();
    append(&mut body, &["{\"jsonrpc\":\"2.0\""]);
    if let Some(id) = id {
        append(&mut body, &[",\"id\":", id]);
    }
    append(&mut body, &[",\"error\":{\"code\":", itoa::Buffer::new().format(error.code), ",\"message\":"]);
    append_string(&mut body, &error.message);
    if let Some(data) = &error.data {
        append(&mut body, &[",\"data\":", data]);
    }
    append(&mut body, &["}}"]);
    body.into()
}
