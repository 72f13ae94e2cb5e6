//! Byte streams between the socket and the codecs.

mod filtered_io;
mod joined_write;
mod read_ahead;
mod timed_io;

pub use filtered_io::{FilteredIo, ReadFilter};
pub use read_ahead::{ReadAhead, pass_on};
pub use timed_io::TimedIo;
