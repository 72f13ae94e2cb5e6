//! Tests of valid and invalid headers of both versions, properties that hold for all bytes, and seeds of the fuzz
//! target.

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use proptest::prelude::*;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, ReadBuf};

use super::*;

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

fn header(length: usize, client: &str) -> Reading {
    let client = (!client.is_empty()).then(|| client.parse().unwrap());
    Reading::Header { length, client }
}

/// A header of version 2.
fn binary(command: u8, family: u8, block: &[u8]) -> Vec<u8> {
    let length = u16::try_from(block.len()).unwrap().to_be_bytes();
    [SIGNATURE, &[command, family], &length, block].concat()
}

fn four() -> Vec<u8> {
    vec![192, 0, 2, 1, 198, 51, 100, 7, 0xc8, 0x22, 0x01, 0xbb]
}

fn six(client: &str) -> Vec<u8> {
    let address = |text: &str| text.parse::<Ipv6Addr>().unwrap().octets();
    [
        &address(client)[..],
        &address("2001:db8::7"),
        &[0xc8, 0x22, 0x01, 0xbb],
    ]
    .concat()
}

#[test]
fn a_line_contains_the_client_s_address() {
    for (line, client) in [
        (
            "PROXY TCP4 192.0.2.1 198.51.100.7 51234 443",
            "192.0.2.1:51234",
        ),
        (
            "PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535",
            "255.255.255.255:65535",
        ),
        ("PROXY TCP4 0.0.0.0 0.0.0.0 0 0", "0.0.0.0:0"),
        (
            "PROXY TCP6 2001:db8::1 2001:db8::7 51234 443",
            "[2001:db8::1]:51234",
        ),
        ("PROXY TCP6 2001:DB8:0:0:0:0:0:1 :: 1 2", "[2001:db8::1]:1"),
        // `inet_ntop` writes IPv4-mapped addresses of dual-stack sockets like this.
        (
            "PROXY TCP6 ::ffff:192.0.2.1 ::ffff:198.51.100.7 51234 443",
            "192.0.2.1:51234",
        ),
        (
            "PROXY TCP6 ::ffff:c000:201 ::1 51234 443",
            "192.0.2.1:51234",
        ),
        ("PROXY UNKNOWN", ""),
        ("PROXY UNKNOWN ", ""),
        ("PROXY UNKNOWN 192.0.2.1 and whatever else", ""),
    ] {
        let bytes = format!("{line}\r\nGET / HTTP/1.1\r\n");
        assert_eq!(
            read(bytes.as_bytes()),
            header(line.len() + 2, client),
            "{line}"
        );
    }
}

#[test]
fn any_other_spelling_of_a_line_is_malformed() {
    for line in [
        "PROXY TCP4 192.0.2.1  198.51.100.7 51234 443",
        "PROXY  TCP4 192.0.2.1 198.51.100.7 51234 443",
        "PROXY\tTCP4 192.0.2.1 198.51.100.7 51234 443",
        "PROXY TCP4 192.0.2.1 198.51.100.7 51234 443 ",
        "PROXY TCP4 192.0.2.1 198.51.100.7 51234 443 x",
        "PROXY TCP4 192.0.2.1 198.51.100.7 51234",
        "PROXY TCP4 192.0.2.1 198.51.100.7",
        "PROXY TCP4 192.0.2.1",
        "PROXY TCP4 ",
        "PROXY TCP4",
        "PROXY ",
        "PROXY",
        "PROXY TCP4 192.0.2.01 198.51.100.7 51234 443",
        "PROXY TCP4 192.0.2.256 198.51.100.7 51234 443",
        "PROXY TCP4 192.0.2 198.51.100.7 51234 443",
        "PROXY TCP4 0xc0.0.2.1 198.51.100.7 51234 443",
        "PROXY TCP4 192.0.2.1 198.51.100.7 051234 443",
        "PROXY TCP4 192.0.2.1 198.51.100.7 51234 00",
        "PROXY TCP4 192.0.2.1 198.51.100.7 +1234 443",
        "PROXY TCP4 192.0.2.1 198.51.100.7 -1 443",
        "PROXY TCP4 192.0.2.1 198.51.100.7 65536 443",
        "PROXY TCP4 192.0.2.1 198.51.100.7 51234 http",
        "PROXY TCP4 2001:db8::1 2001:db8::7 51234 443",
        "PROXY TCP4 ::ffff:192.0.2.1 198.51.100.7 51234 443",
        "PROXY TCP6 192.0.2.1 198.51.100.7 51234 443",
        "PROXY TCP6 2001:db8::1 198.51.100.7 51234 443",
        "PROXY TCP6 2001:db8::1::2 2001:db8::7 51234 443",
        "PROXY TCP6 2001:db8::12345 2001:db8::7 51234 443",
        "PROXY TCP6 [2001:db8::1] 2001:db8::7 51234 443",
        "PROXY TCP6 fe80::1%eth0 2001:db8::7 51234 443",
        "PROXY UDP4 192.0.2.1 198.51.100.7 51234 443",
        "PROXY tcp4 192.0.2.1 198.51.100.7 51234 443",
        "proxy TCP4 192.0.2.1 198.51.100.7 51234 443",
        "PROXY UNKNOWNS",
        "PROXY UNKNOWN \u{e9}",
        "PROXY UNKNOWN \u{7f}",
        "PROXY UNKNOWN\nGET / HTTP/1.1",
        "PROXY UNKNOWN\rx",
        "PROXY UNKNOWN\r",
    ] {
        let bytes = format!("{line}\r\n");
        assert_eq!(read(bytes.as_bytes()), Reading::Malformed, "{line}");
    }
}

#[test]
fn a_line_ends_within_107_bytes() {
    let line = |length: usize| format!("PROXY UNKNOWN {}\r\n", "x".repeat(length - 16));
    assert_eq!(read(line(107).as_bytes()), header(107, ""));
    assert_eq!(read(line(108).as_bytes()), Reading::Malformed);
    let longest = line(107);
    let beyond = line(108);
    assert_eq!(read(&longest.as_bytes()[..106]), Reading::Incomplete);
    assert_eq!(read(&beyond.as_bytes()[..105]), Reading::Incomplete);
    assert_eq!(
        read(&beyond.as_bytes()[..106]),
        Reading::Malformed,
        "two more bytes cannot end the line in time"
    );
}

#[test]
fn a_block_contains_the_client_s_address() {
    let mapped = six("::ffff:192.0.2.1");
    let other = six("2001:db8::1");
    let unix = [7; 216];
    let checksummed = [
        &four()[..],
        &[3, 0, 4, 1, 2, 3, 4],
        &[4, 0, 0],
        &[0xe2, 0, 1, 9],
    ]
    .concat();
    let fullest = [&four()[..], &[4, 1, 249], &[0; 505]].concat();
    for (command, family, block, client) in [
        (0x21, 0x11, &four()[..], "192.0.2.1:51234"),
        (0x21, 0x21, &other, "[2001:db8::1]:51234"),
        (0x21, 0x21, &mapped, "192.0.2.1:51234"),
        (0x21, 0x11, &checksummed, "192.0.2.1:51234"),
        (0x21, 0x11, &fullest, "192.0.2.1:51234"),
        (0x21, 0x31, &unix, ""),
        (0x21, 0x32, &unix, ""),
        (0x21, 0x00, &[], ""),
        (0x21, 0x00, &[1, 2, 3, 4], ""),
        (0x20, 0x00, &[], ""),
        (0x20, 0x11, &four(), ""),
        (0x20, 0xff, &[9; 520], ""),
    ] {
        let mut bytes = binary(command, family, block);
        let length = bytes.len();
        bytes.extend(b"GET / HTTP/1.1\r\n");
        assert_eq!(
            read(&bytes),
            header(length, client),
            "{command:x} {family:x} {block:?}"
        );
    }
}

#[test]
fn a_block_of_the_wrong_length_is_malformed() {
    let with = |field: &[u8]| [&four()[..], field].concat();
    for (command, family, block) in [
        (0x11, 0x11, four()),
        (0x31, 0x11, four()),
        (0x22, 0x11, four()),
        (0x2f, 0x11, four()),
        (0x21, 0x12, four()),
        (0x21, 0x10, four()),
        (0x21, 0x13, four()),
        (0x21, 0x22, six("2001:db8::1")),
        (0x21, 0x41, six("2001:db8::1")),
        (0x21, 0x01, vec![]),
        (0x21, 0x33, vec![0; 216]),
        (0x21, 0x11, four()[..11].to_vec()),
        (0x21, 0x21, four()),
        (0x21, 0x31, vec![0; 215]),
        (0x20, 0x00, vec![0; 521]),
        (0x21, 0x11, vec![0; 65_535]),
        (0x21, 0x11, with(&[4])),
        (0x21, 0x11, with(&[4, 0])),
        (0x21, 0x11, with(&[4, 0, 1])),
        (0x21, 0x11, with(&[4, 1, 0, 0])),
        (0x21, 0x11, with(&[4, 0, 0, 4])),
    ] {
        let bytes = binary(command, family, &block);
        assert_eq!(
            read(&bytes),
            Reading::Malformed,
            "{command:x} {family:x} {block:?}"
        );
    }
    let mut signed = binary(0x21, 0x11, &four());
    signed[5] = b'\n';
    assert_eq!(read(&signed), Reading::Malformed);
}

#[test]
fn a_wrong_beginning_is_refused_at_once_and_a_wrong_header_at_its_end() {
    let far = [SIGNATURE, &[0x21, 0x11, 2, 8]].concat();
    let too_far = [SIGNATURE, &[0x21, 0x11, 2, 9]].concat();
    let too_near = [SIGNATURE, &[0x21, 0x31, 0, 215]].concat();
    let field = binary(0x21, 0x11, &[&four()[..], &[4, 0, 9]].concat());
    for (bytes, is_found) in [
        (&b"G"[..], true),
        (b"\n", true),
        (b"\x16\x03", true),
        (b"PR", false),
        (b"PRI", true),
        (b"PROXY", false),
        (b"PROXYT", true),
        (b"PROXY TCP5", false),
        (b"PROXY TCP5\r", false),
        (b"PROXY TCP5\r\n", true),
        (b"PROXY TCP4 1.2.3.4\n", true),
        (b"PROXY TCP4 1.2.3.4 1.2.3.4 1 1\r", false),
        (b"\r\nG", true),
        (b"\r\n\r\n\0\r\nQUIT", false),
        (b"\r\n\r\n\0\r\nQUIT\n\x21\x12", false),
        (b"\r\n\r\n\0\r\nQUIT\n\x21\x12\0\x0c", true),
        (&far, false),
        (&too_far, true),
        (&too_near, true),
        (&field[..30], false),
        (&field, true),
    ] {
        let expected = if is_found {
            Reading::Malformed
        } else {
            Reading::Incomplete
        };
        assert_eq!(
            read(bytes),
            expected,
            "{:?}",
            String::from_utf8_lossy(bytes)
        );
    }
}

/// Parses every prefix, and fails if a final result changes.
fn decided(bytes: &[u8]) -> Reading {
    let mut first = Reading::Incomplete;
    for end in 0..=bytes.len() {
        let reading = read(&bytes[..end]);
        match first {
            Reading::Incomplete => first = reading,
            Reading::Header { .. } | Reading::Malformed => {
                assert_eq!(reading, first, "{end} of {bytes:?}");
            }
        }
        if let Reading::Header { length, .. } = reading {
            assert!(
                (15..=LONGEST).contains(&length) && length <= end,
                "{end} of {bytes:?}"
            );
        }
        assert!(
            first != Reading::Incomplete || end < LONGEST,
            "this many bytes are decisive"
        );
    }
    first
}

fn any_address() -> impl Strategy<Value = IpAddrs> {
    let four = (any::<Ipv4Addr>(), any::<Ipv4Addr>()).prop_map(|(a, b)| IpAddrs::Four(a, b));
    let six = (any::<Ipv6Addr>(), any::<Ipv6Addr>()).prop_map(|(a, b)| IpAddrs::Six(a, b));
    let mostly_zeros = any::<[bool; 16]>().prop_map(|zeros| {
        let octets = zeros.map(|is_zero| if is_zero { 0 } else { 0x1a });
        IpAddrs::Six(octets.into(), Ipv6Addr::UNSPECIFIED)
    });
    let mapped = (any::<Ipv4Addr>(), any::<Ipv4Addr>())
        .prop_map(|(a, b)| IpAddrs::Six(a.to_ipv6_mapped(), b.to_ipv6_mapped()));
    prop_oneof![four, six, mostly_zeros, mapped]
}

/// A source and a destination of the same family.
#[derive(Clone, Copy, Debug)]
enum IpAddrs {
    Four(Ipv4Addr, Ipv4Addr),
    Six(Ipv6Addr, Ipv6Addr),
}

/// A header of each version with these addresses, and the client.
fn headers(addresses: IpAddrs, from: u16, to: u16, note: &[u8]) -> ([Vec<u8>; 2], SocketAddr) {
    let ports = [from.to_be_bytes(), to.to_be_bytes()].concat();
    let field = [
        &[0xea][..],
        &u16::try_from(note.len()).unwrap().to_be_bytes(),
        note,
    ]
    .concat();
    let (text, block, family, client) = match addresses {
        IpAddrs::Four(a, b) => {
            let block = [&a.octets()[..], &b.octets()].concat();
            (
                format!("PROXY TCP4 {a} {b} {from} {to}\r\n"),
                block,
                0x11,
                SocketAddr::from((a, from)),
            )
        }
        IpAddrs::Six(a, b) => {
            let block = [&a.octets()[..], &b.octets()].concat();
            let client = SocketAddr::new(a.to_canonical(), from);
            (
                format!("PROXY TCP6 {a} {b} {from} {to}\r\n"),
                block,
                0x21,
                client,
            )
        }
    };
    (
        [
            text.into_bytes(),
            binary(0x21, family, &[block, ports, field].concat()),
        ],
        client,
    )
}

proptest! {
    #[test]
    fn encoded_headers_are_parsed_and_every_prefix_is_incomplete(
        addresses in any_address(), from: u16, to: u16,
        note in prop::collection::vec(any::<u8>(), 0..300), behind in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let (written, client) = headers(addresses, from, to, &note);
        for bytes in written {
            for end in 0..bytes.len() {
                prop_assert_eq!(read(&bytes[..end]), Reading::Incomplete, "{:?}", &bytes[..end]);
            }
            let followed = [&bytes[..], &behind].concat();
            prop_assert_eq!(read(&followed), Reading::Header { length: bytes.len(), client: Some(client) });
        }
    }

    #[test]
    fn arbitrary_bytes_do_not_panic_and_decisions_are_final(
        bytes in prop::collection::vec(any::<u8>(), 0..600), addresses in any_address(),
        at: prop::sample::Index, byte: u8, note in prop::collection::vec(any::<u8>(), 0..30),
    ) {
        decided(&bytes);
        decided(&[SIGNATURE, &[0x21, 0x11, 0], &bytes].concat());
        // Mutations of valid headers are most likely to find defects.
        for mut nearly in headers(addresses, 51_234, 443, &note).0 {
            let at = at.index(nearly.len());
            nearly[at] = byte;
            nearly.extend(&bytes);
            decided(&nearly);
        }
    }
}

#[tokio::test]
async fn a_header_is_removed_and_the_bytes_after_it_are_passed_on() {
    for bytes in [
        b"PROXY TCP4 192.0.2.1 198.51.100.7 51234 443\r\n".to_vec(),
        binary(0x21, 0x11, &four()),
    ] {
        // Byte by byte, then all bytes together.
        for size in [1, bytes.len() + 3] {
            let (mut near, mut far) = tokio::io::duplex(size);
            let sent = [&bytes[..], b"GET"].concat();
            let write = async {
                far.write_all(&sent).await.unwrap();
                drop(far);
            };
            let taken = async {
                let (client, mut rest) =
                    take(&mut near).await.map(|(c, b)| (c, b.to_vec())).unwrap();
                near.read_to_end(&mut rest).await.unwrap();
                (client, rest)
            };
            let ((client, rest), ()) = tokio::join!(taken, write);
            assert_eq!(
                (client, &rest[..]),
                (Some("192.0.2.1:51234".parse().unwrap()), &b"GET"[..])
            );
        }
    }
}

/// A stream that was reset by the other end.
struct ResetStream;

impl AsyncRead for ResetStream {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()))
    }
}

#[tokio::test]
async fn missing_header_returns_the_reason() {
    for (mut stream, expected) in [
        (
            Box::new(&b"GET / HTTP/1.1\r\n"[..]) as Box<dyn AsyncRead + Unpin>,
            NoHeader::Malformed,
        ),
        (Box::new(&b"PROXY TCP4 192.0.2.1 198"[..]), NoHeader::Ended),
        (Box::new(&b""[..]), NoHeader::Ended),
        (
            Box::new(ResetStream),
            NoHeader::Broken(io::ErrorKind::ConnectionReset.into()),
        ),
    ] {
        let error = take(&mut stream).await.unwrap_err();
        assert_eq!(error.to_string(), expected.to_string());
    }
    let mut unknown = &b"PROXY UNKNOWN\r\n"[..];
    assert_eq!(take(&mut unknown).await.unwrap(), (None, Bytes::new()));
}
