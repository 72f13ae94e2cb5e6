//! Messages to `/mcp`: what is accepted is one JSON object of JSON-RPC 2.0 with a method, whose id is a text or a number, and
//! which is not deeply nested. The oracle reads it as a tree.

use scoregate::mcp::RpcMessage;
use serde_json::Value;

/// Fails if the program accepts a message that the oracle refuses, or reads another method or id.
pub fn check(bytes: &[u8]) {
    let Ok(message) = RpcMessage::read(bytes) else {
        return;
    };
    let tree: Value = serde_json::from_slice(bytes).expect("an accepted message is JSON");
    let envelope = tree.as_object().expect("an accepted message is an object");
    assert_eq!(envelope.get("jsonrpc"), Some(&Value::from("2.0")));
    assert_eq!(envelope.get("method"), Some(&Value::from(&*message.method)));
    assert!(depth(&tree) <= 16);
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

fn depth(tree: &Value) -> usize {
    match tree {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or_default(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}
