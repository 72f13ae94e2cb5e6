//! HTTP/2 as bytes: frames by number, heads with arbitrary octets, and the replies.
//!
//! For requests that no library would send; `http2_client` is for well-formed ones. Header blocks are written without
//! table and Huffman code, and are not decoded: the status of a response is in its body, or in the first octet of its
//! head. The rules of all responses are in `client`.

mod client_limits;
mod deadlines;
mod floods;
mod heads;
pub mod http2_client;
mod parity;
mod refused_bodies;
mod resource_use;
pub mod unread_responses;

use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::world::World;

/// The client preface.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

pub const ACK: u8 = 1;
pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;

/// The default maximum frame payload.
const LARGEST: usize = 16_384;

/// A received frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

/// The outcome of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamOutcome {
    /// A complete response: its status and, for an error, its code.
    Response(u16, String),
    /// The stream was reset with this code.
    Reset(u32),
    /// A GOAWAY with this code was received.
    Gone(u32),
    /// The connection was closed without a GOAWAY.
    Closed,
}

impl StreamOutcome {
    /// Whether the stream was rejected before it was handled as a request.
    pub fn is_error(&self) -> bool {
        !matches!(self, Self::Response(..))
    }
}

/// The bytes of a frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A header block: each field literal with its name, not indexed.
pub fn block(fields: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in fields {
        bytes.push(0);
        for text in [name, value] {
            length(&mut bytes, text.len());
            bytes.extend_from_slice(text);
        }
    }
    bytes
}

/// A length, encoded in seven bits and, if necessary, further octets.
fn length(bytes: &mut Vec<u8>, length: usize) {
    let Some(mut rest) = length.checked_sub(127) else {
        return bytes.push(u8::try_from(length).unwrap());
    };
    bytes.push(127);
    while rest >= 128 {
        bytes.push(u8::try_from(rest % 128 + 128).unwrap());
        rest /= 128;
    }
    bytes.push(u8::try_from(rest).unwrap());
}

/// The fields of a plain GET, followed by further ones.
pub fn get(target: &str, more: &[(&str, &str)]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let plain = [
        (":method", "GET"),
        (":scheme", "http"),
        (":authority", "localhost"),
        (":path", target),
    ];
    fields(&[&plain, more].concat())
}

pub fn fields(fields: &[(&str, &str)]) -> Vec<(Vec<u8>, Vec<u8>)> {
    fields
        .iter()
        .map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()))
        .collect()
}

/// The frames of a head with `END_STREAM`.
pub fn request(stream: u32, fields: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    opening(stream, fields, END_STREAM)
}

/// The frames of a head with these flags.
pub fn opening(stream: u32, fields: &[(Vec<u8>, Vec<u8>)], flags: u8) -> Vec<u8> {
    let block = block(fields);
    let mut kind = HEADERS;
    let mut flags = flags;
    let mut bytes = Vec::new();
    let mut rest = &block[..];
    while let Some((part, behind)) = rest.split_at_checked(LARGEST) {
        bytes.extend(frame(kind, flags, stream, part));
        (kind, flags, rest) = (CONTINUATION, 0, behind);
    }
    bytes.extend(frame(kind, flags | END_HEADERS, stream, rest));
    bytes
}

pub struct Wire {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// Whether the client acknowledges SETTINGS and PINGs.
    pub acknowledges: bool,
}

impl Wire {
    /// A connection after the preface with default settings.
    pub async fn open(address: SocketAddr) -> Self {
        Self::open_with(address, &[]).await
    }

    /// A connection after the preface with these settings.
    pub async fn open_with(address: SocketAddr, settings: &[(u16, u32)]) -> Self {
        let mut connection = Self::bare(address).await;
        let one =
            |(name, value): &(u16, u32)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat();
        let settings: Vec<u8> = settings.iter().flat_map(one).collect();
        connection
            .send(&[PREFACE, &frame(SETTINGS, 0, 0, &settings)].concat())
            .await;
        connection
    }

    /// A connection before the preface.
    pub async fn bare(address: SocketAddr) -> Self {
        Self {
            stream: TcpStream::connect(address).await.unwrap(),
            buffer: Vec::new(),
            acknowledges: true,
        }
    }

    /// Sends bytes. If the gateway has closed the connection, the next read fails.
    pub async fn send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).await.is_ok()
    }

    /// The next frame; none if the connection is closed.
    pub async fn read(&mut self) -> Option<Frame> {
        let head = loop {
            if let Some(head) = self.buffer.first_chunk::<9>() {
                break *head;
            }
            self.more().await?;
        };
        let length = usize::try_from(u32::from_be_bytes([0, head[0], head[1], head[2]])).unwrap();
        while self.buffer.len() < 9 + length {
            self.more().await?;
        }
        let payload = self.buffer.drain(..9 + length).skip(9).collect();
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        let read = Frame {
            kind: head[3],
            flags: head[4],
            stream,
            payload,
        };
        if self.acknowledges && matches!(read.kind, SETTINGS | PING) && read.flags & ACK == 0 {
            let payload = if read.kind == PING {
                &read.payload[..]
            } else {
                &[]
            };
            self.send(&frame(read.kind, ACK, 0, payload)).await;
        }
        Some(read)
    }

    async fn more(&mut self) -> Option<()> {
        let mut chunk = [0; 16_384];
        match self.stream.read(&mut chunk).await {
            Ok(0) | Err(_) => None,
            Ok(read) => {
                self.buffer.extend_from_slice(&chunk[..read]);
                Some(())
            }
        }
    }

    /// Whether a GOAWAY or a close has been received so far.
    pub fn has_goaway_or_close(&mut self) -> bool {
        let mut chunk = [0; 16_384];
        while let Ok(read) = self.stream.try_read(&mut chunk) {
            if read == 0 {
                return true;
            }
            self.buffer.extend_from_slice(&chunk[..read]);
        }
        let mut is_over = false;
        while let Some(length) = self.buffer.first_chunk::<3>() {
            let length =
                usize::try_from(u32::from_be_bytes([0, length[0], length[1], length[2]])).unwrap();
            let Some(whole) = self.buffer.get(..9 + length) else {
                break;
            };
            is_over |= whole[3] == GOAWAY && code(&whole[13..]) != 0;
            self.buffer.drain(..9 + length);
        }
        is_over
    }

    /// Waits for the outcome of a stream.
    pub async fn stream_outcome(&mut self, stream: u32) -> StreamOutcome {
        let mut status = 0;
        let mut body = Vec::new();
        while let Some(read) = self.read().await {
            match read.kind {
                GOAWAY if code(&read.payload[4..]) != 0 => {
                    return StreamOutcome::Gone(code(&read.payload[4..]));
                }
                RST_STREAM if read.stream == stream => {
                    return StreamOutcome::Reset(code(&read.payload));
                }
                HEADERS if read.stream == stream => status = short_status(read.payload[0]),
                DATA if read.stream == stream => body.extend(read.payload),
                _ => continue,
            }
            if read.stream == stream && read.flags & END_STREAM != 0 {
                return response(status, &body);
            }
        }
        StreamOutcome::Closed
    }

    /// Reads to the end and returns the unread frames.
    pub async fn rest(&mut self) -> Vec<Frame> {
        let mut rest = Vec::new();
        while let Some(read) = self.read().await {
            rest.push(read);
        }
        rest
    }

    /// Waits for a frame of a kind.
    pub async fn find(&mut self, kind: u8) -> Frame {
        loop {
            let read = self
                .read()
                .await
                .expect("a frame of this kind before the end");
            if read.kind == kind {
                return read;
            }
        }
    }

    /// Waits until everything sent before was read: the gateway answers a PING in order.
    pub async fn settled(&mut self) {
        self.send(&frame(PING, 0, 0, b"settled!")).await;
        while self
            .read()
            .await
            .is_some_and(|read| (read.kind, read.flags) != (PING, ACK))
        {}
    }
}

/// The error code at the start of a payload.
pub fn code(payload: &[u8]) -> u32 {
    u32::from_be_bytes(*payload.first_chunk().unwrap())
}

/// The status encoded by one octet; 0 if the encoding is longer.
fn short_status(octet: u8) -> u16 {
    let short = [
        (0x88, 200),
        (0x89, 204),
        (0x8b, 304),
        (0x8c, 400),
        (0x8d, 404),
        (0x8e, 500),
    ];
    short
        .iter()
        .find(|(known, _)| *known == octet)
        .map_or(0, |(_, status)| *status)
}

/// An error has its status in its body as well.
fn response(short: u16, body: &[u8]) -> StreamOutcome {
    let body: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let long = body["status"]
        .as_u64()
        .and_then(|status| u16::try_from(status).ok());
    StreamOutcome::Response(
        long.unwrap_or(short),
        body["code"].as_str().unwrap_or_default().to_owned(),
    )
}

impl World {
    /// Sends a head on its own connection and returns the outcome.
    pub async fn outcome_of(&self, fields: &[(Vec<u8>, Vec<u8>)]) -> StreamOutcome {
        let mut connection = Wire::open(self.address()).await;
        connection.send(&request(1, fields)).await;
        connection.stream_outcome(1).await
    }
}
