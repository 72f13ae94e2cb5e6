//! Responses on the wire: the end of the head, the length, the fields; and a single request and its response. Many
//! requests are sent in `client`.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

/// Timeout of a single request on loopback.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The parts of a response.
#[derive(Clone, Copy, Default)]
pub struct Extent {
    /// Length of its head, empty line included.
    pub head: usize,
    /// Its total length.
    pub whole: usize,
}

impl Extent {
    /// Parses the bytes received; `None` until the head is complete. The job has no response of unknown length.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let head = bytes.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
        let text = String::from_utf8_lossy(&bytes[..head]).to_ascii_lowercase();
        let length = text
            .split("\r\ncontent-length:")
            .nth(1)
            .and_then(|rest| rest.split("\r\n").next());
        let body = match length {
            Some(length) => length.trim().parse().unwrap(),
            None if text.starts_with("http/1.1 304") => 0,
            None => panic!("an answer that does not say its length: {text}"),
        };
        // A 304 has the length of the full response, if any, and no body.
        let body = if text.starts_with("http/1.1 304") {
            0
        } else {
            body
        };
        Some(Self {
            head,
            whole: head + body,
        })
    }
}

/// A complete response.
pub struct Answer {
    /// As received.
    pub bytes: Vec<u8>,
    extent: Extent,
}

impl Answer {
    /// Its status.
    pub fn status(&self) -> u16 {
        std::str::from_utf8(&self.bytes[9..12])
            .unwrap()
            .parse()
            .unwrap()
    }

    /// Its header fields, names in lower case.
    pub fn fields(&self) -> Vec<(String, String)> {
        let head = String::from_utf8_lossy(&self.bytes[..self.extent.head]);
        let fields = head.lines().skip(1).filter_map(|line| line.split_once(':'));
        fields
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect()
    }

    /// The value of a field; empty where there is none.
    pub fn field(&self, name: &str) -> String {
        self.fields()
            .into_iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value)
            .unwrap_or_default()
    }

    /// Its body.
    pub fn body(&self) -> &[u8] {
        &self.bytes[self.extent.head..]
    }
}

/// Sends one request on a connection of its own.
pub fn ask(address: SocketAddr, request: &[u8]) -> std::io::Result<Answer> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.write_all(request)?;
    let mut bytes = Vec::new();
    let mut chunk = vec![0; 65_536];
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
