//! Writes log lines on a separate thread, so that no caller ever waits for a disk or for the reader of a pipe.
//!
//! The queue is bounded. When it is full, or when a write fails, lines are dropped and counted.

use std::{
    io::Write,
    sync::{
        Arc, OnceLock,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel},
    },
    time::Duration,
};

use metrics::Counter;
use parking_lot::Mutex;

/// Target size of a write when many lines are queued.
// Writing many lines together takes only one system call.
const BATCH: usize = 1 << 16;
/// Pause after the queue was emptied. A caller that queues a line during the pause does not have to wake the thread,
/// which would cost more than the rest of the work for the line.
const PAUSE: Duration = Duration::from_millis(10);

/// Appends a line with its line feed. Runs on the writer's thread.
pub type FormatLine = Box<dyn FnOnce(&mut Vec<u8>) + Send>;

enum WriterItem {
    Line(FormatLine),
    /// A request to signal that everything queued before this item has been written.
    Flush(SyncSender<()>),
}

/// The sending side of a writer thread. It is cheap to clone.
#[derive(Clone, Debug)]
pub struct LineWriter {
    queue: SyncSender<WriterItem>,
    lost: Arc<LostLines>,
}

/// Counts lines that were not written. The counter can be attached later. Earlier losses are then added to it.
#[derive(Debug, Default)]
pub struct LostLines {
    counter: OnceLock<Counter>,
    /// Lines lost before a counter was attached. Always assigned as a whole, so a panic cannot leave a partial change.
    before: Mutex<u64>,
}

impl LostLines {
    fn add(&self, lines: u64) {
        if let Some(counter) = self.counter.get() {
            return counter.increment(lines);
        }
        let mut before = self.before.lock();
        // This is checked again under the lock, because in the meantime the counter may have been attached and the earlier losses
        // added to it.
        match self.counter.get() {
            Some(counter) => counter.increment(lines),
            None => *before += lines,
        }
    }

    /// Attaches a counter. Only the first counter is used.
    pub fn count_in(&self, counter: Counter) {
        let mut before = self.before.lock();
        let counter = self.counter.get_or_init(|| counter);
        counter.increment(std::mem::take(&mut *before));
    }
}

impl LineWriter {
    /// Starts the thread that writes lines to `out`, with a queue of `most` lines. The process does not wait for this
    /// thread at exit.
    pub fn start(
        name: &str,
        most: usize,
        out: impl Write + Send + 'static,
    ) -> std::io::Result<Self> {
        let (queue, items) = sync_channel(most);
        let lost = Arc::new(LostLines::default());
        let counted = Arc::clone(&lost);
        std::thread::Builder::new()
            .name(name.into())
            .spawn(move || write_all(&items, &counted, out))?;
        Ok(Self { queue, lost })
    }

    /// The count of lost lines.
    pub fn lost(&self) -> &LostLines {
        &self.lost
    }

    /// Queues a line, or counts it as lost if the queue is full. Never blocks.
    pub fn send(&self, line: FormatLine) {
        match self.queue.try_send(WriterItem::Line(line)) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => self.lost.add(1),
        }
    }

    /// Waits until every queued line is written, for at most `timeout`. Returns whether all lines were written.
    pub fn finish(&self, timeout: Duration) -> bool {
        let (flushed, is_flushed) = sync_channel(0);
        // If the queue is full, the reader is stalled, so waiting would be pointless.
        if self.queue.try_send(WriterItem::Flush(flushed)).is_err() {
            return false;
        }
        // The writer signals by dropping its end.
        is_flushed.recv_timeout(timeout) != Err(RecvTimeoutError::Timeout)
    }
}

fn write_all(items: &Receiver<WriterItem>, lost: &LostLines, mut out: impl Write) {
    let mut text = Vec::new();
    let mut is_torn = false;
    while let Ok(first) = items.recv() {
        let mut lines = 0;
        let mut waiting = Vec::new();
        for item in std::iter::once(first).chain(items.try_iter()) {
            match item {
                WriterItem::Line(line) => {
                    line(&mut text);
                    lines += 1;
                }
                WriterItem::Flush(flushed) => waiting.push(flushed),
            }
            if text.len() >= BATCH || !waiting.is_empty() {
                break;
            }
        }
        // After a partial write, the next log line must start on a new line.
        if is_torn {
            text.insert(0, b'\n');
        }
        is_torn = out.write_all(&text).and_then(|()| out.flush()).is_err();
        if is_torn {
            lost.add(lines);
        }
        let is_empty = text.len() < BATCH && waiting.is_empty();
        text.clear();
        waiting.clear();
        if is_empty {
            std::thread::sleep(PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::metrics::MetricsRegistry;

    const QUEUE: usize = 100;

    fn line(text: &'static str) -> FormatLine {
        Box::new(move |to| to.extend_from_slice(text.as_bytes()))
    }

    /// A writer that signals the start of a write and blocks until the other end of `held` is dropped.
    struct Stuck {
        begun: SyncSender<()>,
        held: Receiver<()>,
    }

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.begun.send(()).unwrap();
            assert!(self.held.recv().is_err());
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn lost_lines(registry: &MetricsRegistry) -> String {
        let text = registry.scrape().render();
        text.lines()
            .find_map(|line| line.strip_prefix("scoregate_panics_total "))
            .unwrap()
            .to_owned()
    }

    #[test]
    fn lines_without_a_reader_are_dropped_and_counted_without_blocking() {
        let (begun, has_begun) = sync_channel(1);
        let (release, held) = sync_channel(0);
        let writer = LineWriter::start("test", QUEUE, Stuck { begun, held }).unwrap();
        writer.send(line("x\n"));
        has_begun.recv().unwrap();
        // From here on, the thread is blocked and takes no lines from the queue.
        for _ in 0..QUEUE + 1_000 {
            writer.send(line("x\n"));
        }
        assert!(
            !writer.finish(Duration::from_mins(1)),
            "nothing waits for a full queue"
        );
        let registry = MetricsRegistry::default();
        // Any counter can be used. It counts losses from before and after it is attached.
        writer
            .lost()
            .count_in(registry.counter("scoregate_panics_total"));
        assert_eq!(lost_lines(&registry), "1000");
        writer.send(line("x\n"));
        assert_eq!(lost_lines(&registry), "1001");
        drop(release);
    }

    /// A writer that fails every write.
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
    fn full_disk_blocks_nothing_and_lost_lines_are_counted() {
        let writer = LineWriter::start("test", QUEUE, Full).unwrap();
        let registry = MetricsRegistry::default();
        writer
            .lost()
            .count_in(registry.counter("scoregate_panics_total"));
        for _ in 0..10 {
            writer.send(line("x\n"));
            assert!(writer.finish(Duration::from_mins(1)));
        }
        assert_eq!(lost_lines(&registry), "10");
    }
}
