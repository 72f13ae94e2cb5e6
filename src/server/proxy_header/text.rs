//! Version 1: one line of text, such as `PROXY TCP4 192.0.2.1 198.51.100.7 51234 443`.
//!
//! Exactly as specified: single spaces, decimal without leading zeros, addresses of the stated family.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use super::Reading;

/// Maximum length of the line with its ending.
const LONGEST_LINE: usize = 107;

const UNKNOWN: &str = "PROXY UNKNOWN";
const FOUR: &str = "PROXY TCP4 ";
const SIX: &str = "PROXY TCP6 ";

/// Completions of a partial address: if it can become valid, one of these makes it so.
const ENDINGS: [&str; 11] = [
    "", "0", ":", "::", "0:0", ".0", "0.0", ".0.0", "0.0.0", ".0.0.0", "0.0.0.0",
];

pub(super) fn read(bytes: &[u8]) -> Reading {
    let bytes = bytes.get(..LONGEST_LINE).unwrap_or(bytes);
    let end = bytes
        .iter()
        .position(|byte| *byte == b'\r')
        .unwrap_or(bytes.len());
    let (line, ending) = bytes.split_at(end);
    // Only printable ASCII. A line feed without a carriage return is rejected too: otherwise the client's first line
    // would be consumed as well.
    let Some(line) = str::from_utf8(line)
        .ok()
        .filter(|line| line.bytes().all(is_printable))
    else {
        return Reading::Malformed;
    };
    match ending {
        _ if line.len() + 2 > LONGEST_LINE => Reading::Malformed,
        [] if may_begin(line) => Reading::Incomplete,
        [b'\r'] if whole(line) != Reading::Malformed => Reading::Incomplete,
        [b'\r', b'\n', ..] => whole(line),
        [] | [_, ..] => Reading::Malformed,
    }
}

fn is_printable(byte: u8) -> bool {
    byte == b' ' || byte.is_ascii_graphic()
}

/// Parses a complete line.
fn whole(line: &str) -> Reading {
    let length = line.len() + 2;
    if line
        .strip_prefix(UNKNOWN)
        .is_some_and(|ignored| ignored.is_empty() || ignored.starts_with(' '))
    {
        return Reading::Header {
            length,
            client: None,
        };
    }
    let four = line.strip_prefix(FOUR).and_then(source::<Ipv4Addr>);
    let client = four.or_else(|| line.strip_prefix(SIX).and_then(source::<Ipv6Addr>));
    if client.is_some() {
        Reading::Header { length, client }
    } else {
        Reading::Malformed
    }
}

/// Both addresses, then both ports; the first of each is the client's.
fn source<A: FromStr + Into<IpAddr>>(fields: &str) -> Option<SocketAddr> {
    let mut fields = fields.split(' ');
    let address: A = fields.next()?.parse().ok()?;
    let _here: A = fields.next()?.parse().ok()?;
    let from = port(fields.next()?)?;
    let _to = port(fields.next()?)?;
    fields
        .next()
        .is_none()
        .then(|| SocketAddr::new(address.into().to_canonical(), from))
}

fn port(text: &str) -> Option<u16> {
    let is_plain = text == "0" || !text.starts_with(['0', '+']);
    text.parse().ok().filter(|_| is_plain)
}

/// Whether an incomplete line can become valid.
fn may_begin(line: &str) -> bool {
    if let Some(fields) = line.strip_prefix(FOUR) {
        return may_begin_fields::<Ipv4Addr>(fields);
    }
    if let Some(fields) = line.strip_prefix(SIX) {
        return may_begin_fields::<Ipv6Addr>(fields);
    }
    whole(line) != Reading::Malformed
        || [UNKNOWN, FOUR, SIX]
            .iter()
            .any(|known| known.starts_with(line))
}

fn may_begin_fields<A: FromStr>(fields: &str) -> bool {
    let is_address = |text: &str| text.parse::<A>().is_ok();
    let may_begin_address = |text: &str| {
        ENDINGS
            .iter()
            .any(|ending| is_address(&format!("{text}{ending}")))
    };
    let is_port = |text: &str| port(text).is_some();
    let (before, last) = fields
        .rsplit_once(' ')
        .map_or((None, fields), |(before, last)| (Some(before), last));
    let mut whole = before.into_iter().flat_map(|before| before.split(' '));
    match (whole.next(), whole.next(), whole.next(), whole.next()) {
        (None, _, _, _) => may_begin_address(last),
        (Some(from), None, _, _) => is_address(from) && may_begin_address(last),
        (Some(from), Some(to), port, None) => {
            let addressed = is_address(from) && is_address(to);
            addressed && port.is_none_or(is_port) && (last.is_empty() || is_port(last))
        }
        (Some(_), Some(_), _, Some(_)) => false,
    }
}
