//! Messages to `/mcp`: what is accepted is one JSON object of JSON-RPC 2.0 with a method, whose id is a text or a number. The
//! oracle reads it as a tree.

use scoregate::mcp::RpcMessage;
use serde_json::Value;

/// Fails if the program accepts a message that the oracle refuses, or reads another method or id.
pub fn check(bytes: &[u8]) {
    let Ok(message) = RpcMessage::read(bytes) else {
        return;
    };
    let tree: Value = match serde_json::from_slice(bytes) {
        Ok(tree) => tree,
        // Parameters that the program does not read may be nested more deeply than a tree can be.
        Err(error) => {
            assert!(error.to_string().contains("recursion limit"), "{error}");
            return;
        }
    };
    let envelope = tree.as_object().expect("an accepted message is an object");
    assert_eq!(envelope.get("jsonrpc"), Some(&Value::from("2.0")));
    assert_eq!(envelope.get("method"), Some(&Value::from(&*message.method)));
    match (message.id, envelope.get("id")) {
        (None, None) => {}
        (Some(sent), Some(id)) => {
            assert!(id.is_string() || id.is_number(), "{id}");
            assert_eq!(
                serde_json::from_str::<Value>(sent).expect("an id is JSON"),
                *id
            );
        }
        (sent, id) => panic!("{sent:?} is not {id:?}"),
    }
}
