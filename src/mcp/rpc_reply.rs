//! JSON-RPC responses, written as text around existing JSON.

use bytes::Bytes;

use scoregate_base::routes::{append, append_string};

use super::rpc_message::RpcError;

/// A response with a result, which is JSON.
pub fn result(id: &str, result: &[u8]) -> Bytes {
    const BEFORE_ID: &str = "{\"jsonrpc\":\"2.0\",\"id\":";
    const AFTER_ID: &str = ",\"result\":";
    // The buffer has the exact size, so that it becomes the body without being copied.
    let mut body =
        Vec::with_capacity(BEFORE_ID.len() + id.len() + AFTER_ID.len() + result.len() + 1);
    append(&mut body, &[BEFORE_ID, id, AFTER_ID]);
    body.extend_from_slice(result);
    body.push(b'}');
    body.into()
}

/// A response with an error. The id is `None` if it could not be read.
pub fn error(id: Option<&str>, error: &RpcError) -> Bytes {
    let mut body = Vec::new();
    append(&mut body, &["{\"jsonrpc\":\"2.0\""]);
    if let Some(id) = id {
        append(&mut body, &[",\"id\":", id]);
    }
    append(
        &mut body,
        &[
            ",\"error\":{\"code\":",
            itoa::Buffer::new().format(error.code),
            ",\"message\":",
        ],
    );
    append_string(&mut body, &error.message);
    if let Some(data) = &error.data {
        append(&mut body, &[",\"data\":", data]);
    }
    append(&mut body, &["}}"]);
    body.into()
}
