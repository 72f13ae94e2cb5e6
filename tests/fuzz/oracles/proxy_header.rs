//! The first bytes of a connection from a trusted proxy: a decision does not change with further bytes and is made within
//! the maximum length, and the client address survives a round trip through the text form of the header.

use std::net::SocketAddr;

use scoregate::server::{Reading, read_proxy_header as read};

/// The longest header that is read.
const LONGEST: usize = 536;

/// Fails if the result changes while these bytes arrive.
pub fn check(bytes: &[u8]) {
    let mut first = Reading::Incomplete;
    for end in 0..=bytes.len() {
        let reading = read(bytes.get(..end).unwrap_or_default());
        if first == Reading::Incomplete {
            first = reading;
        }
        assert_eq!(reading, first, "{end} of {bytes:?}");
        if let Reading::Header { length, .. } = reading {
            assert!(
                (15..=LONGEST).contains(&length) && length <= end,
                "{end} of {bytes:?}"
            );
        }
        assert!(
            first != Reading::Incomplete || end < LONGEST,
            "no decision after {end} bytes"
        );
    }
    for more in [
        &b"\r\n"[..],
        b"\0",
        b"GET / HTTP/1.1\r\n\r\n",
        &[0xff; LONGEST],
    ] {
        let longer = read(&[bytes, more].concat());
        assert!(
            first == Reading::Incomplete || longer == first,
            "{more:?} after {bytes:?}"
        );
    }
    if let Reading::Header {
        client: Some(client),
        ..
    } = first
    {
        let header = text_header(client);
        let length = header.len();
        assert_eq!(
            read(header.as_bytes()),
            Reading::Header {
                length,
                client: Some(client)
            },
            "{bytes:?}"
        );
    }
}

fn text_header(client: SocketAddr) -> String {
    let (family, server) = if client.is_ipv4() {
        ("TCP4", "192.0.2.1")
    } else {
        ("TCP6", "::")
    };
    format!(
        "PROXY {family} {} {server} {} 443\r\n",
        client.ip(),
        client.port()
    )
}
