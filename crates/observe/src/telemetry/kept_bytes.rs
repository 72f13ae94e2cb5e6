//! A writer that keeps bytes in memory, for tests.

use std::{
    io::{self, Write},
    sync::Arc,
};

use parking_lot::Mutex;

#[derive(Clone, Default)]
pub struct KeptBytes(Arc<Mutex<Vec<u8>>>);

impl Write for KeptBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl KeptBytes {
    /// The text written since the last call.
    pub fn text(&self) -> String {
        let bytes = std::mem::take(&mut *self.0.lock());
        String::from_utf8(bytes).unwrap()
    }
}
