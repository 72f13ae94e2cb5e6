//! An answer as it lies on the wire: where its head ends, how long it is, what stands in it; and one question that waits
//! for its answer. Not for: many questions at once (`client`).

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long a single question may take: everything here is on loopback.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where the parts of an answer are.
#[derive(Clone, Copy, Default)]
pub(crate) struct Extent {
    /// The length of its head, blank line included.
    pub(crate) head: usize,
    /// Its whole length.
    pub(crate) whole: usize,
}

impl Extent {
    /// Of what has come so far; none until the head is whole. An answer of unknown length is not in the job.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        let head = bytes.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
        let text = String::from_utf8_lossy(&bytes[..head]).to_ascii_lowercase();
        let length = text.split("\r\ncontent-length:").nth(1).and_then(|rest| rest.split("\r\n").next());
        let body = match length {
            Some(length) => length.trim().parse().unwrap(),
            None if text.starts_with("http/1.1 304") => 0,
            None => panic!("an answer that does not say its length: {text}"),
        };
        // A 304 has the length of what it stands for, if any, and no body.
        let body = if text.starts_with("http/1.1 304") { 0 } else { body };
        Some(Self { head, whole: head + body })
    }
}

/// An answer with all its bytes.
pub(crate) struct Answer {
    /// As it came.
    pub(crate) bytes: Vec<u8>,
    extent: Extent,
}

impl Answer {
    /// Its status.
    pub(crate) fn status(&self) -> u16 {
        std::str::from_utf8(&self.bytes[9..12]).unwrap().parse().unwrap()
    }

    /// Its header fields, names in lower case.
    pub(crate) fn fields(&self) -> Vec<(String, String)> {
        let head = String::from_utf8_lossy(&self.bytes[..self.extent.head]);
        let fields = head.lines().skip(1).filter_map(|line| line.split_once(':'));
        fields.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned())).collect()
    }

    /// The value of a field; empty where there is none.
    pub(crate) fn field(&self, name: &str) -> String {
        self.fields().into_iter().find(|(known, _)| known == name).map(|(_, value)| value).unwrap_or_default()
    }

    /// Its body.
    pub(crate) fn body(&self) -> &[u8] {
        &self.bytes[self.extent.head..]
    }
}

/// Asks once, on a connection of its own.
pub(crate) fn ask(address: SocketAddr, request: &[u8]) -> std::io::Result<Answer> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(request)?;
    let (mut bytes, mut chunk) = (Vec::new(), vec![0; 65_536]);
    loop {
        let read = stream.read(&mut chunk)?;
        if read == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&chunk[..read]);
        if let Some(extent) = Extent::of(&bytes).filter(|extent| bytes.len() >= extent.whole) {
            return Ok(Answer { bytes, extent });
        }
    }
}
