//! The bytes that an attacker sends.

use std::{
    fmt::Write as _,
    net::{IpAddr, Ipv4Addr},
};

use crate::{
    connections::http2::{DATA, PREFACE, SETTINGS, fields, frame, opening},
    site::leaked_keys::{self, Scanner},
};

/// The number of bytes sent of a body of 64 KiB.
pub const SENT: usize = 60 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    Http1,
    Http1OverTls,
    /// HTTP/2 with this many bodies on each connection.
    Http2(u32),
}

/// The kind of request whose body is never finished.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    Mcp,
    /// A body of unknown length, which is refused unread.
    McpChunked,
    /// A head of 15 KiB.
    McpLargeHead,
    Form,
    /// A report of leaked keys with a forged signature.
    Report,
}

#[derive(Clone, Copy, Debug)]
pub struct Attack {
    pub transport: Transport,
    pub target: Target,
    pub connections: u32,
    pub networks: u32,
}

impl Target {
    fn path(self) -> &'static str {
        match self {
            Self::Mcp | Self::McpChunked | Self::McpLargeHead => "/mcp",
            Self::Form => "/account/sign-in",
            Self::Report => leaked_keys::PATH,
        }
    }

    fn headers(self, scanner: &Scanner) -> Vec<(&'static str, String)> {
        let json = ("content-type", "application/json".to_owned());
        let length = ("content-length", (64 << 10).to_string());
        match self {
            Self::Mcp => vec![json, length],
            Self::McpChunked => vec![json, ("transfer-encoding", "chunked".into())],
            Self::McpLargeHead => vec![json, length, ("x-large", "x".repeat(15 << 10))],
            Self::Form => {
                let kind = "application/x-www-form-urlencoded".into();
                vec![("content-type", kind), ("content-length", "8192".into())]
            }
            Self::Report => [vec![length], scanner.signed(b"another body").to_vec()].concat(),
        }
    }

    fn body(self) -> Vec<u8> {
        match self {
            Self::Mcp | Self::McpLargeHead | Self::Report => vec![b' '; SENT],
            Self::McpChunked => [&b"ffff\r\n"[..], &vec![b' '; SENT]].concat(),
            Self::Form => vec![b'x'; 8_000],
        }
    }
}

impl Attack {
    /// The bytes that a connection sends before its first request.
    pub fn preface(self) -> Vec<u8> {
        match self.transport {
            Transport::Http1 | Transport::Http1OverTls => Vec::new(),
            Transport::Http2(_) => [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat(),
        }
    }

    /// The bytes of the unfinished requests on each connection.
    pub fn opening(self, scanner: &Scanner) -> Vec<u8> {
        let headers = self.target.headers(scanner);
        let Transport::Http2(streams) = self.transport else {
            let mut head = format!(
                "POST {} HTTP/1.1\r\nhost: localhost\r\n",
                self.target.path()
            );
            for (name, value) in headers {
                write!(head, "{name}: {value}\r\n").unwrap();
            }
            return [head.as_bytes(), b"\r\n", &self.target.body()].concat();
        };
        let pseudo = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", self.target.path()),
            (":authority", "localhost"),
        ];
        // The body has no stated length.
        let headers = headers.iter().filter(|(name, _)| *name != "content-length");
        let headers = headers.map(|(name, value)| (*name, value.as_str()));
        let head: Vec<_> = pseudo.into_iter().chain(headers).collect();
        let mut bytes = self.preface();
        for stream in (0..streams).map(|number| 2 * number + 1) {
            bytes.extend(opening(stream, &fields(&head), 0));
            bytes.extend(frame(DATA, 0, stream, &[b' '; 15 << 10]));
        }
        bytes
    }

    pub fn address(self, number: u32) -> IpAddr {
        let network = number % self.networks;
        let [.., high, low] = (0x0100 + network).to_be_bytes();
        IpAddr::V4(Ipv4Addr::new(127, high, low, 9))
    }

    pub fn bodies(self) -> u32 {
        match self.transport {
            Transport::Http1 | Transport::Http1OverTls => self.connections,
            Transport::Http2(streams) => self.connections * streams,
        }
    }
}
