//! Tests of the scanner with heads that arrive in parts, and bodies between heads.

use std::sync::atomic::Ordering;

use proptest::prelude::*;

use super::scanner::*;

/// The position of the first violation in bytes that arrive in parts of this size.
fn broken(bytes: &[u8], size: usize) -> Option<usize> {
    fault(bytes, size, None).map(|(at, fault)| {
        assert_eq!(fault, HeadFault::Invalid);
        at
    })
}

fn fault(bytes: &[u8], size: usize, limit: Option<&HeadLimit>) -> Option<(usize, HeadFault)> {
    let mut heads = HeadScanner::new(limit);
    bytes.chunks(size).enumerate().find_map(|(part, bytes)| {
        let (at, fault) = heads.fault(bytes)?;
        Some((part * size + at, fault))
    })
}

#[test]
fn a_head_is_too_large_from_the_101st_field_or_24_kib_on_and_not_because_of_the_heads_before_it() {
    let limit = HeadLimit::default();
    let start = "GET / HTTP/1.1\r\n";
    for before in [
        String::new(),
        format!("{start}{}\r\n", "A: b\r\n".repeat(60)).repeat(3),
    ] {
        for size in [1, 7, 1_024, usize::MAX] {
            let found = |fields: usize, value: usize| {
                let more = format!("B: {}\r\n\r\n", "x".repeat(value));
                let bytes = format!(
                    "{before}{start}{}{more}{start}",
                    "a:\r\n".repeat(fields - 1)
                );
                let found = fault(bytes.as_bytes(), size.min(bytes.len()), Some(&limit));
                found.map(|(at, fault)| (at - before.len(), fault))
            };
            assert_eq!(found(100, 1), None);
            let many = (start.len() + 100 * "a:\r\n".len(), HeadFault::TooLarge);
            assert_eq!(found(101, 1), Some(many));
            let fixed = start.len() + "B: \r\n\r\n".len();
            assert_eq!(found(1, MAX_SIZE - fixed), None);
            assert_eq!(
                found(1, MAX_SIZE - fixed + 1),
                Some((MAX_SIZE, HeadFault::TooLarge))
            );
        }
    }
    let long = format!("{start}B: {}\r\n\r\n", "x".repeat(2 * MAX_SIZE));
    assert_eq!(fault(long.as_bytes(), 999, None), None, "without a limit");
}

const GOOD: &[&[u8]] = &[
    b"GET / HTTP/1.1\r\nHost: a\r\nX: #\r\n\r\n",
    b"\r\n\r\nG#T / HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\nGET /a HTTP/1.1\r\nReferer: /#a\r\n\r\n",
];

#[test]
fn a_bare_line_end_and_a_fragment_are_found_in_every_head_and_nothing_else_is() {
    for first in GOOD {
        for (bad, at) in [
            (&b"\nGET / HTTP/1.1\r\n\r\n"[..], 0),
            (b"GET / HTTP/1.1\nHost: a\r\n\r\n", 14),
            (b"GET / HTTP/1.1\r\nA: b\n\r\n", 20),
            (b"GET / HTTP/1.1\r\nA: b\r\n\n", 22),
            (b"GET /#a HTTP/1.1\r\nA: #\r\n\r\n", 5),
            (b"GET # HTTP/1.1\r\n\r\n", 4),
        ] {
            let bytes = [first, bad].concat();
            for size in 1..=bytes.len() {
                assert_eq!(
                    broken(&bytes, size),
                    Some(first.len() + at),
                    "{} by {size}",
                    bytes.escape_ascii()
                );
            }
        }
        assert_eq!(broken(first, first.len()), None);
    }
}

#[tokio::test]
async fn the_codec_gets_a_head_that_ends_at_the_violation_however_little_it_reads() {
    use tokio::io::AsyncReadExt as _;
    for size in 1..9 {
        let mut heads = HeadScanner::stream(&b"GET /#a\r\n"[..], None);
        let mut read = Vec::new();
        let mut part = vec![0; size];
        while !read.ends_with(b"\r\n\r\n") {
            let length = heads.read(&mut part).await.unwrap();
            read.extend_from_slice(&part[..length]);
        }
        assert_eq!(read, b"GET /\0\r\n\r\n");
    }
}

#[tokio::test]
async fn what_follows_a_head_is_read_unchanged_if_it_is_a_body() {
    use tokio::io::AsyncReadExt as _;
    let head = b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n";
    for body in [&b"a=b\nc #d\n"[..], b"G #\n\n\n\n#\n"] {
        let bytes = [&head[..], body].concat();
        let limit = HeadLimit::default();
        let mut heads = HeadScanner::stream(&bytes[..], Some(&limit));
        let mut read = vec![0; bytes.len()];
        let first = heads.read(&mut read).await.unwrap();
        assert!(first >= head.len());
        assert!(!limit.body_follows(None));
        heads.read_exact(&mut read[first..]).await.unwrap();
        assert_eq!(
            read.escape_ascii().to_string(),
            bytes.escape_ascii().to_string()
        );
    }
}

/// Reads everything in pieces of size `part`, like a codec that finds a body of size `body` after each head.
async fn read_with_bodies(bytes: &[u8], part: usize, body: u64) -> (Vec<u8>, usize) {
    use tokio::io::AsyncReadExt as _;
    let limit = HeadLimit::default();
    let mut read = Vec::new();
    let mut heads = 0;
    let mut stream = HeadScanner::stream(
        tokio::io::BufReader::with_capacity(part, bytes),
        Some(&limit),
    );
    let mut buffer = vec![0; part];
    let mut begin = 0;
    loop {
        let length = stream.read(&mut buffer).await.unwrap();
        read.extend_from_slice(&buffer[..length]);
        if length == 0 || read.ends_with(REFUSED) {
            return (read, heads);
        }
        if limit.body.load(Ordering::Relaxed) == 0
            && read[begin..].ends_with(END)
            && read[begin] == b'P'
        {
            assert!(limit.body_follows(Some(body)));
            heads += 1;
            begin = read.len() + usize::try_from(body).unwrap();
        }
    }
}

#[tokio::test]
async fn heads_after_bodies_of_known_size_are_checked_however_the_bytes_arrive() {
    let head = "POST /mcp HTTP/1.1\r\nContent-Length: 9\r\n\r\n";
    let body = "a\n#\r\n\r\nbc";
    let good = [head, body, head, body].concat();
    for part in 1..=good.len() {
        let (read, heads) = read_with_bodies(good.as_bytes(), part, 9).await;
        assert_eq!(
            (read.escape_ascii().to_string(), heads),
            (good.as_bytes().escape_ascii().to_string(), 2)
        );
        for smuggled in ["GET /#a HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\n\n"] {
            let bad = [&good, smuggled].concat();
            let (read, _) = read_with_bodies(bad.as_bytes(), part, 9).await;
            assert!(
                read.starts_with(good.as_bytes()) && read.ends_with(REFUSED),
                "{part} {smuggled:?}"
            );
        }
    }
}

#[test]
fn a_body_that_the_codec_may_have_read_in_part_is_the_last_one() {
    let limit = HeadLimit::default();
    assert!(!limit.body_follows(Some(9)));
    assert_eq!(limit.body.load(Ordering::Relaxed), ENDLESS);
}

#[test]
fn one_byte_anywhere_in_blocks_of_any_length_is_found() {
    for length in 4..=130 {
        let mut bytes = vec![b'x'; length - 4];
        bytes.extend_from_slice(b"\r\n\r\n");
        assert!(!may_be_broken(&bytes), "{length}");
        for at in 0..length - 4 {
            for bad in [b'\n', b'#'] {
                bytes[at] = bad;
                assert!(may_be_broken(&bytes), "{length} {at}");
                bytes[at] = b'x';
            }
        }
    }
}

proptest! {
    #[test]
    fn violations_do_not_depend_on_how_bytes_arrive(bytes in "[GX #\r\n]{0,60}", size in 1_usize..60) {
        prop_assert_eq!(broken(bytes.as_bytes(), size), broken(bytes.as_bytes(), 1));
    }

    #[test]
    fn every_bare_line_end_is_found(bytes in "[GX #\r\n]{0,60}") {
        let at = broken(bytes.as_bytes(), 60).unwrap_or(bytes.len());
        prop_assert!(!bytes.split_at(at).0.replace("\r\n", "").contains('\n'));
    }
}
