//! Writes the common part of an error body: flat, because a real client prints `body.code`. The gateway adds limits
//! and the request id.
//!
//! Written by hand: a refusal must not cost more than the request it refuses, and a serializer inspects every
//! character of texts that need no escaping.

use std::io::Write as _;

use serde_json::Value;

use super::codes::CodeRow;
use super::{API_VERSION, AllowedValues, Param};

/// The common part of an error.
#[derive(Debug)]
pub struct ErrorBody<'a> {
    row: &'static CodeRow,
    message: &'a str,
    param: Option<(Param, AllowedValues)>,
}

impl<'a> ErrorBody<'a> {
    /// An error with this code, the parameter concerned and the values this caller may use.
    pub fn new(row: &'static CodeRow, message: &'a str, param: Option<(Param, AllowedValues)>) -> Self {
        Self { row, message, param }
    }

    /// Writes its members, without braces.
    pub fn write(&self, body: &mut Vec<u8>) {
        let CodeRow { status, word, .. } = self.row;
        let status = status.as_u16();
        put(body, format_args!("\"success\":false,\"version\":\"{API_VERSION}\",\"status\":{status},"));
        put(body, format_args!("\"code\":\"{word}\",\"message\":{}", Value::from(self.message)));
        if let Some((param, allowed)) = &self.param {
            put(body, format_args!(",\"param\":\"{}\"", param.name()));
            for (name, value) in allowed.members() {
                put(body, format_args!(",\"{name}\":{value}"));
            }
        }
    }
}

fn put(body: &mut Vec<u8>, words: std::fmt::Arguments<'_>) {
    body.write_fmt(words).expect("there is always room in a list of bytes");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::codes::ErrorCode;

    #[test]
    fn members_are_valid_json_for_any_message() {
        let message = "say \"24h\" or \\ and\nnothing else";
        let mut body = vec![b'{'];
        ErrorBody::new(
            ErrorCode::InvalidPeriod.row(),
            message,
            Some((Param::Period, AllowedValues::Words(vec!["24h", "7d"]))),
        )
        .write(&mut body);
        body.push(b'}');
        let read: Value = serde_json::from_slice(&body).unwrap();
        let expected = serde_json::json!({
            "success": false, "version": API_VERSION, "status": 400, "code": "invalid_period", "message": message,
            "param": "period", "allowed": ["24h", "7d"],
        });
        assert_eq!(read, expected);
    }
}
