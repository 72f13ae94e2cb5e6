//! A thread that reads ahead of its consumer. A panic in it is an error, not the end of the input.

use std::io;
use std::thread::JoinHandle;

use tokio::sync::mpsc;

/// Values that are read ahead.
const AHEAD: usize = 2;

/// A thread that reads values, and their receiver.
pub(super) struct ReaderThread<T> {
    values: mpsc::Receiver<T>,
    thread: Option<JoinHandle<()>>,
}

/// The thread panicked, so the last value is not the end of the input.
#[derive(Debug, thiserror::Error)]
#[error(
    "reading the input panicked, so the import is incomplete; report this with the message of the panic"
)]
pub(super) struct ReaderPanicked;

impl<T: Send + 'static> ReaderThread<T> {
    /// Starts a thread that sends the values until there are no more, or the receiver is gone.
    pub(super) fn start(read: impl FnOnce(&mpsc::Sender<T>) + Send + 'static) -> io::Result<Self> {
        let (sender, values) = mpsc::channel(AHEAD);
        let thread = std::thread::Builder::new()
            .name("reader".into())
            .spawn(move || read(&sender))?;
        Ok(Self {
            values,
            thread: Some(thread),
        })
    }

    /// The next value; `None` at the end of the input. Can be cancelled without losing a value.
    pub(super) async fn next(&mut self) -> Result<Option<T>, ReaderPanicked> {
        if let Some(value) = self.values.recv().await {
            return Ok(Some(value));
        }
        // Its sender is gone, so the thread is about to end.
        match self.thread.take().map(JoinHandle::join) {
            Some(Err(_)) => Err(ReaderPanicked),
            Some(Ok(())) | None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_while_reading_is_an_error_after_the_values_before_it() {
        let read = |to: &mpsc::Sender<u8>| {
            to.blocking_send(1).unwrap();
            to.blocking_send(2).unwrap();
            panic!("of a test");
        };
        let mut reader = ReaderThread::start(read).unwrap();
        assert_eq!(reader.next().await.unwrap(), Some(1));
        assert_eq!(reader.next().await.unwrap(), Some(2));
        assert!(
            reader
                .next()
                .await
                .unwrap_err()
                .to_string()
                .contains("incomplete")
        );
    }

    #[tokio::test]
    async fn the_end_of_the_input_is_no_error() {
        let mut reader = ReaderThread::start(|to| to.blocking_send(1).unwrap()).unwrap();
        assert_eq!(reader.next().await.unwrap(), Some(1));
        assert_eq!(reader.next().await.unwrap(), None);
        assert_eq!(reader.next().await.unwrap(), None);
    }
}
