//! Writes the common part of an error body. The object is flat, because a real client prints `body.code`. The gateway
//! adds limits and the request id. The JSON is written without a serializer, which would inspect every character of
//! texts that need no escaping. A refusal must not cost more than the refused request.

use super::{API_VERSION, AllowedValues, Param, codes::CodeRow};

/// The common part of an error.
#[derive(Debug)]
pub struct ErrorBody<'a> {
    row: &'static CodeRow,
    message: &'a str,
    param: Option<(Param, AllowedValues)>,
}

impl<'a> ErrorBody<'a> {
    /// An error with this code and, if a parameter is invalid, the parameter and the values that this caller may use.
    pub fn new(
        row: &'static CodeRow,
        message: &'a str,
        param: Option<(Param, AllowedValues)>,
    ) -> Self {
        Self {
            row,
            message,
            param,
        }
    }

    /// Writes the members, without braces.
    pub fn write(&self, body: &mut Vec<u8>) {
        let CodeRow { status, word, .. } = self.row;
        append(
            body,
            &[
                "\"success\":false,\"version\":\"",
                API_VERSION,
                "\",\"status\":",
                status.as_str(),
            ],
        );
        append(body, &[",\"code\":\"", word, "\",\"message\":"]);
        append_string(body, self.message);
        if let Some((param, allowed)) = &self.param {
            append(body, &[",\"param\":\"", param.name(), "\""]);
            for (name, value) in allowed.members() {
                append(body, &[",\"", name, "\":", &value.to_string()]);
            }
        }
    }
}

/// Appends JSON text. Errors are frequent during an attack, and appending pieces costs a fraction of formatting.
pub fn append(body: &mut Vec<u8>, pieces: &[&str]) {
    for piece in pieces {
        body.extend_from_slice(piece.as_bytes());
    }
}

/// Appends text as a JSON string.
pub fn append_string(body: &mut Vec<u8>, text: &str) {
    // The loop has no early exit, so that several characters can be checked in one instruction.
    if text.bytes().fold(false, |any, byte| {
        any | matches!(byte, 0..b' ' | b'"' | b'\\')
    }) {
        serde_json::to_writer(body, text)
            .expect("a string is valid JSON, and a list of bytes has room");
    } else {
        append(body, &["\"", text, "\""]);
    }
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
        let read: serde_json::Value = serde_json::from_slice(&body).unwrap();
        let expected = serde_json::json!({
            "success": false, "version": API_VERSION, "status": 400, "code": "invalid_period", "message": message,
            "param": "period", "allowed": ["24h", "7d"],
        });
        assert_eq!(read, expected);
    }
}
