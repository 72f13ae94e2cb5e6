//! The access log: one line per logged request, on standard output.
//!
//! A line is formatted and written by the writer's thread, so no request waits for a disk or a reader.
//! `gateway::access_log` decides which requests are logged.

use std::{io::Write, sync::OnceLock, time::Duration};

use metrics::Counter;
use serde_json::Value;

use super::line_writer::LineWriter;

/// Maximum number of queued lines. At full load, this is a few seconds of the access log.
const QUEUE: usize = 4_096;

/// The fields of a line, in order.
pub type LineFields = Vec<(&'static str, Value)>;

static ENABLED: OnceLock<()> = OnceLock::new();

/// Enables writing to standard output. The program calls this once. Tests do not call it.
pub fn enable() {
    ENABLED.get_or_init(|| ());
}

/// Whether writing is enabled.
pub fn is_enabled() -> bool {
    ENABLED.get().is_some()
}

/// Writes the access log.
#[derive(Debug)]
pub struct AccessLogWriter {
    writer: LineWriter,
    json: bool,
}

impl AccessLogWriter {
    /// Starts the thread that writes lines to `out`, as JSON or as text. `lost` counts lines that were not written.
    pub fn start(
        json: bool,
        lost: Counter,
        out: impl Write + Send + 'static,
    ) -> std::io::Result<Self> {
        let writer = LineWriter::start("access-log", QUEUE, out)?;
        writer.lost().count_in(lost);
        Ok(Self { writer, json })
    }

    /// Queues a line, or drops it if the queue is full. `fields` runs on the writer's thread.
    pub fn write(&self, fields: impl FnOnce() -> LineFields + Send + 'static) {
        let json = self.json;
        self.writer
            .send(Box::new(move |text| put(&fields(), json, text)));
    }

    /// Waits until all queued lines are written, for at most `timeout`. Blocks.
    pub fn finish(&self, timeout: Duration) {
        if !self.writer.finish(timeout) {
            tracing::warn!("access log reader too slow; the last lines are lost");
        }
    }
}

fn put(fields: &LineFields, json: bool, text: &mut Vec<u8>) {
    let (start, separator, end) = if json {
        ("{", ",", "}\n")
    } else {
        ("", " ", "\n")
    };
    text.extend_from_slice(start.as_bytes());
    let mut before = "";
    for (name, value) in fields.iter().filter(|(_, value)| json || !value.is_null()) {
        text.extend_from_slice(before.as_bytes());
        before = separator;
        let parts = if json {
            ["\"", name, "\":"]
        } else {
            ["", name, "="]
        };
        for part in parts {
            text.extend_from_slice(part.as_bytes());
        }
        match value.as_str().filter(|word| !json && is_plain(word)) {
            Some(word) => text.extend_from_slice(word.as_bytes()),
            None => serde_json::to_writer(&mut *text, value).expect("a vector takes all bytes"),
        }
    }
    text.extend_from_slice(end.as_bytes());
}

/// Whether a value needs no quotes in a text line.
fn is_plain(word: &str) -> bool {
    !word.is_empty()
        && word
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._:/?&=-".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::kept_bytes::KeptBytes;

    fn fields(word: &'static str) -> LineFields {
        vec![
            ("word", word.into()),
            ("number", 7.into()),
            ("nothing", Value::Null),
        ]
    }

    fn written(json: bool) -> String {
        let kept = KeptBytes::default();
        let lines = AccessLogWriter::start(json, Counter::noop(), kept.clone()).unwrap();
        for word in ["plain", "two words", "a\nb\u{1b}[31m"] {
            lines.write(move || fields(word));
        }
        lines.finish(Duration::from_mins(1));
        kept.text()
    }

    #[test]
    fn record_is_one_line_for_any_field_values() {
        assert_eq!(
            written(false),
            "word=plain number=7\nword=\"two words\" number=7\nword=\"a\\nb\\u001b[31m\" number=7\n"
        );
        let json = written(true);
        assert_eq!(json.lines().count(), 3);
        let first: Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
        assert_eq!(
            first,
            serde_json::json!({"word": "plain", "number": 7, "nothing": null})
        );
    }
}
