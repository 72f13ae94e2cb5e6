//! Byte streams between the socket and the codecs.

mod filtered_io;
mod joined_write;
mod read_ahead;
mod timed_io;

pub(super) use filtered_io::{FilteredIo, ReadFilter};
pub(super) use read_ahead::{ReadAhead, pass_on};
pub(super) use timed_io::TimedIo;
