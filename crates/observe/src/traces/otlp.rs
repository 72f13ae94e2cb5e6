//! OTLP in JSON: the request that exports spans, and its response.
//!
//! As in the OTLP mapping of protobuf to JSON, ids are hexadecimal, 64-bit integers are strings, and enums are numbers.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use scoregate_base::clock::Wall;

use super::span::{FinishedSpan, SpanAttribute, TracedSpanKind};

/// Span flags: whether the parent is known to be local or remote, and whether it is remote.
const HAS_IS_REMOTE: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;
/// The status of a failed span.
const STATUS_ERROR: u8 = 2;

/// The origin of the spans of this process.
#[derive(Clone, Debug)]
pub struct TraceResource {
    /// The name of this gateway.
    pub instance: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OtlpSpan<'s> {
    trace_id: &'s str,
    span_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_span_id: Option<String>,
    flags: u32,
    name: &'s str,
    kind: u8,
    start_time_unix_nano: String,
    end_time_unix_nano: String,
    attributes: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<OtlpStatus>,
}

#[derive(Serialize)]
struct OtlpStatus {
    code: u8,
}

/// The response of a collector.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ExportReply {
    /// Number of rejected spans.
    pub rejected: u64,
    /// The reason for the rejection, or a warning.
    pub message: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct OtlpReply {
    partial_success: Option<OtlpPartialSuccess>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct OtlpPartialSuccess {
    /// A string or a number.
    rejected_spans: Value,
    error_message: String,
}

/// The request that exports these spans.
pub fn export_request(spans: &[FinishedSpan], resource: &TraceResource) -> Vec<u8> {
    let version = env!("CARGO_PKG_VERSION");
    let resource_attributes = [
        attribute("service.name", &"scoregate".into()),
        attribute("service.version", &version.into()),
        attribute("service.instance.id", &resource.instance.clone().into()),
    ];
    let spans: Vec<OtlpSpan<'_>> = spans.iter().map(span).collect();
    let scope = json!({"name": "scoregate", "version": version});
    let request = json!({"resourceSpans": [{
        "resource": {"attributes": resource_attributes},
        "scopeSpans": [{"scope": scope, "spans": spans}],
    }]});
    request.to_string().into_bytes()
}

fn span(span: &FinishedSpan) -> OtlpSpan<'_> {
    let remote = if span.has_remote_parent { IS_REMOTE } else { 0 };
    OtlpSpan {
        trace_id: span.trace.id(),
        span_id: span.id.to_string(),
        parent_span_id: span.parent.map(|parent| parent.to_string()),
        flags: u32::from(span.trace.flags()) | HAS_IS_REMOTE | remote,
        name: &span.name,
        kind: match span.kind {
            TracedSpanKind::Internal => 1,
            TracedSpanKind::Server => 2,
            TracedSpanKind::Client => 3,
        },
        start_time_unix_nano: nanos(span.started),
        end_time_unix_nano: nanos(span.started.plus(span.took)),
        attributes: span
            .attributes
            .iter()
            .map(|(name, value)| attribute(name, value))
            .collect(),
        status: span.has_failed.then_some(OtlpStatus { code: STATUS_ERROR }),
    }
}

fn nanos(at: Wall) -> String {
    at.nanos().to_string()
}

fn attribute(name: &str, value: &SpanAttribute) -> Value {
    let value = match value {
        SpanAttribute::Text(text) => json!({"stringValue": text}),
        SpanAttribute::Integer(number) => json!({"intValue": number.to_string()}),
    };
    json!({"key": name, "value": value})
}

/// Reads the response to an accepted request. If the response cannot be parsed, no spans count as rejected.
pub fn export_reply(body: &[u8]) -> ExportReply {
    let reply: OtlpReply = serde_json::from_slice(body).unwrap_or_default();
    let Some(OtlpPartialSuccess {
        rejected_spans,
        error_message,
    }) = reply.partial_success
    else {
        return ExportReply::default();
    };
    let rejected = rejected_spans
        .as_u64()
        .or_else(|| rejected_spans.as_str()?.parse().ok());
    ExportReply {
        rejected: rejected.unwrap_or(0),
        message: error_message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejected_spans_are_read_from_a_number_or_a_string() {
        let reply = |rejected, message: &str| ExportReply {
            rejected,
            message: message.into(),
        };
        for (body, expected) in [
            ("", reply(0, "")),
            ("{}", reply(0, "")),
            ("<html>", reply(0, "")),
            (r#"{"partialSuccess":null}"#, reply(0, "")),
            (
                r#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"too old"}}"#,
                reply(3, "too old"),
            ),
            (
                r#"{"partialSuccess":{"rejectedSpans":4,"unknown":[]}}"#,
                reply(4, ""),
            ),
            (
                r#"{"partialSuccess":{"errorMessage":"a warning"}}"#,
                reply(0, "a warning"),
            ),
        ] {
            assert_eq!(export_reply(body.as_bytes()), expected, "{body}");
        }
    }
}
