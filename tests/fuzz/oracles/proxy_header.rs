//! The beginning of a connection from a listed proxy: what is decided about it no further byte changes, it is decided in
//! time, and whom it names is named again by the same words written plainly.

use std::net::SocketAddr;

use scoregate::server::{Reading, read_proxy_header as read};

/// The longest header that is read.
const LONGEST: usize = 536;

/// Fails if what is read of these bytes changes as they come in.
pub fn check(bytes: &[u8]) {
    let mut first = Reading::Incomplete;
    for end in 0..=bytes.len() {
        let reading = read(bytes.get(..end).unwrap_or_default());
        if first == Reading::Incomplete {
            first = reading;
        }
        assert_eq!(reading, first, "{end} of {bytes:?}");
        if let Reading::Header { length, .. } = reading {
            assert!((15..=LONGEST).contains(&length) && length <= end, "{end} of {bytes:?}");
        }
        assert!(first != Reading::Incomplete || end < LONGEST, "so many bytes are decided");
    }
    for more in [&b"\r\n"[..], b"\0", b"GET / HTTP/1.1\r\n\r\n", &[0xff; LONGEST]] {
        let longer = read(&[bytes, more].concat());
        assert!(first == Reading::Incomplete || longer == first, "{more:?} behind {bytes:?}");
    }
    if let Reading::Header { client: Some(client), .. } = first {
        let plain = plainly(client);
        let length = plain.len();
        assert_eq!(read(plain.as_bytes()), Reading::Header { length, client: Some(client) }, "{bytes:?}");
    }
}

fn plainly(client: SocketAddr) -> String {
    let (family, here) = if client.is_ipv4() { ("TCP4", "192.0.2.1") } else { ("TCP6", "::") };
    format!("PROXY {family} {} {here} {} 443\r\n", client.ip(), client.port())
}
