//! The log of requests: lines that a thread of its own writes, so that no request waits for a disk or a reader.
//!
//! Between them is a queue with a bound. Where nobody reads, or nothing can be written, lines are lost and counted, and all
//! else goes on. Not for: events of the program (`log.rs`), nor for which requests are told and what is told of them.

use std::io::Write;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use metrics::Counter;
use serde_json::Value;

/// Lines that may wait to be written: some seconds of all that is told at full load.
const WAITING: usize = 4_096;
/// So much is written at once, where so much waits.
const PIECE: usize = 1 << 16;
/// So long the writer rests when it has written all there was. Whoever tells meanwhile has nobody to wake, which would cost
/// a request more than all the rest of its line.
const REST: Duration = Duration::from_millis(10);

/// What a line says, in its order.
pub type Fields = Vec<(&'static str, Value)>;

/// A line in the making: it is put into words by the thread that writes it.
pub type Line = Box<dyn FnOnce() -> Fields + Send>;

static HEARD: OnceLock<()> = OnceLock::new();

/// Lines go to standard output from now on, where settings want them. Only the program does this, once; tests leave
/// requests untold.
pub fn hear() {
    HEARD.get_or_init(|| ());
}

/// Whether anybody hears lines.
pub fn is_heard() -> bool {
    HEARD.get().is_some()
}

enum Wanted {
    Line(Line),
    /// Somebody waits until everything before is written.
    Told(SyncSender<()>),
}

/// Where lines go.
#[derive(Debug)]
pub struct Lines {
    to: SyncSender<Wanted>,
    lost: Counter,
}

impl Lines {
    /// Starts the thread that writes lines to `out`, as JSON or for people. `lost` counts those that were not written.
    pub fn start(json: bool, lost: Counter, out: impl Write + Send + 'static) -> std::io::Result<Self> {
        let (to, lines) = sync_channel(WAITING);
        let missed = lost.clone();
        let writer = move || write_all(&lines, json, &missed, out);
        std::thread::Builder::new().name("request-log".into()).spawn(writer)?;
        Ok(Self { to, lost })
    }

    /// Has a line written, if there is room for it.
    pub fn tell(&self, line: Line) {
        match self.to.try_send(Wanted::Line(line)) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => self.lost.increment(1),
        }
    }

    /// Waits until everything that was told is written, for so long at the most. Blocks.
    pub fn finish(&self, patience: Duration) {
        let (told, is_told) = sync_channel(0);
        // A queue that is full has a reader that does not read.
        if self.to.try_send(Wanted::Told(told)).is_ok() {
            // Letting go of its end is the writer's answer.
            if is_told.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                tracing::warn!("nobody reads the log of requests: its last lines are lost");
            }
        }
    }
}

fn write_all(lines: &Receiver<Wanted>, json: bool, lost: &Counter, mut out: impl Write) {
    let mut text = String::new();
    let mut is_torn = false;
    while let Ok(first) = lines.recv() {
        let (mut count, mut waits) = (0, Vec::new());
        for wanted in std::iter::once(first).chain(lines.try_iter()) {
            match wanted {
                Wanted::Line(line) => {
                    put(&line(), json, &mut text);
                    count += 1;
                }
                Wanted::Told(told) => waits.push(told),
            }
            if text.len() >= PIECE || !waits.is_empty() {
                break;
            }
        }
        // What was broken off in the middle of a line must not run into the next.
        if is_torn {
            text.insert(0, '\n');
        }
        is_torn = out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err();
        if is_torn {
            lost.increment(count);
        }
        let is_all = text.len() < PIECE && waits.is_empty();
        text.clear();
        waits.clear();
        if is_all {
            std::thread::sleep(REST);
        }
    }
}

fn put(fields: &Fields, json: bool, text: &mut String) {
    let known = fields.iter().filter(|(_, value)| json || !value.is_null());
    let words = known.map(|(name, value)| {
        let plain = value.as_str().filter(|word| !json && is_plain(word));
        let words = plain.map_or_else(|| value.to_string(), str::to_owned);
        if json { format!("\"{name}\":{words}") } else { format!("{name}={words}") }
    });
    let words: Vec<String> = words.collect();
    let line = if json { format!("{{{}}}", words.join(",")) } else { words.join(" ") };
    text.push_str(&line);
    text.push('\n');
}

/// Whether a text can stand in a line for people without quotes.
fn is_plain(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"._:/?&=-".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    fn line(word: &'static str) -> Line {
        Box::new(move || vec![("word", word.into()), ("number", 7.into()), ("nothing", Value::Null)])
    }

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn written(json: bool) -> String {
        let kept = Kept::default();
        let lines = Lines::start(json, Counter::noop(), kept.clone()).unwrap();
        for word in ["plain", "two words", "a\nb\u{1b}[31m"] {
            lines.tell(line(word));
        }
        lines.finish(Duration::from_mins(1));
        String::from_utf8(kept.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn a_line_is_one_line_whatever_stands_in_it() {
        assert_eq!(
            written(false),
            "word=plain number=7\nword=\"two words\" number=7\nword=\"a\\nb\\u001b[31m\" number=7\n"
        );
        let json = written(true);
        assert_eq!(json.lines().count(), 3);
        let first: Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
        assert_eq!(first, serde_json::json!({"word": "plain", "number": 7, "nothing": null}));
    }

    /// What cannot be written to until it is let go.
    struct Stuck(Receiver<()>);

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            // It ends when the other end is let go of.
            assert!(self.0.recv().is_err());
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn where_nobody_reads_lines_are_lost_and_nobody_waits() {
        let (let_go, held) = sync_channel(0);
        let lines = Lines::start(true, Counter::noop(), Stuck(held)).unwrap();
        // Were anybody to wait for the reader, this would not end.
        for _ in 0..3 * WAITING {
            lines.tell(line("x"));
        }
        lines.finish(Duration::ZERO);
        drop(let_go);
    }

    struct Full;

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_stops_nothing() {
        let lines = Lines::start(true, Counter::noop(), Full).unwrap();
        for _ in 0..10 {
            lines.tell(line("x"));
            lines.finish(Duration::from_mins(1));
        }
    }
}
