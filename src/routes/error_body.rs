//! The part of an error's body that everybody who answers by these tables says in the same words: flat, because a real
//! client prints `body.code`. Not for: what only a gateway knows (limits, a request's identifier).
//!
//! It is written by hand: a refusal must cost no more than what it refuses, and a serializer looks at each character of
//! words that are all our own.

use std::io::Write as _;

use serde::Serialize;

use super::codes::CodeRow;
use super::{API_VERSION, AllowedValues, Param};

/// What every error says.
#[derive(Debug)]
pub struct ErrorBody<'a> {
    row: &'static CodeRow,
    message: &'a str,
    param: Option<(Param, AllowedValues)>,
}

impl<'a> ErrorBody<'a> {
    /// An error of this code, with the parameter that it is about and the values this caller may use.
    pub fn new(row: &'static CodeRow, message: &'a str, param: Option<(Param, AllowedValues)>) -> Self {
        Self { row, message, param }
    }

    /// Writes its members, without the braces around them.
    pub fn write(&self, body: &mut Vec<u8>) {
        let CodeRow { status, word, .. } = self.row;
        let status = status.as_u16();
        put(body, format_args!("\"success\":false,\"version\":\"{API_VERSION}\",\"status\":{status},"));
        put(body, format_args!("\"code\":\"{word}\",\"message\":{}", json(self.message)));
        if let Some((param, allowed)) = &self.param {
            let (name, allowed) = (param.name(), json(allowed));
            put(body, format_args!(",\"param\":\"{name}\",\"allowed\":{allowed}"));
        }
    }
}

fn json(value: &(impl Serialize + ?Sized)) -> String {
    serde_json::to_string(value).expect("texts, numbers and lists of them are always JSON")
}

fn put(body: &mut Vec<u8>, words: std::fmt::Arguments<'_>) {
    body.write_fmt(words).expect("there is always room in a list of bytes");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::codes::ErrorCode;

    #[test]
    fn its_members_are_json_whatever_the_message_says() {
        let message = "say \"24h\" or \\ and\nnothing else";
        let mut body = vec![b'{'];
        ErrorBody::new(
            ErrorCode::InvalidPeriod.row(),
            message,
            Some((Param::Period, AllowedValues::Words(vec!["24h", "7d"]))),
        )
        .write(&mut body);
        body.push(b'}');
        let read: serde_json::Value = serde_json::from_slice(&body).unwrap();
        let expected = serde_json::json!({
            "success": false, "version": API_VERSION, "status": 400, "code": "invalid_period", "message": message,
            "param": "period", "allowed": ["24h", "7d"],
        });
        assert_eq!(read, expected);
    }
}
