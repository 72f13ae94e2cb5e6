//! Version 1: a line of text such as `PROXY TCP4 192.0.2.1 198.51.100.7 51234 443`.
//!
//! The format must be exactly as specified: single spaces, decimal numbers without leading zeros, and addresses of the
//! stated family.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    str::FromStr,
};

use super::Reading;

/// Maximum length of the line, including the line ending.
// The specification does not allow a longer line.
const LONGEST_LINE: usize = 107;

const BEGINNING: &[u8] = b"PROXY ";

pub fn read(bytes: &[u8]) -> Reading {
    let bytes = bytes.get(..LONGEST_LINE).unwrap_or(bytes);
    // Only printable ASCII is accepted. A line feed without a carriage return is also rejected, because otherwise the
    // client's first line could be consumed as well.
    let end = bytes.iter().position(|byte| !is_printable(*byte));
    let (line, ending) = bytes.split_at(end.unwrap_or(bytes.len()));
    let begins = line.starts_with(BEGINNING) || BEGINNING.starts_with(line);
    match ending {
        _ if !begins || line.len() + 2 > LONGEST_LINE => Reading::Malformed,
        [] | [b'\r'] => Reading::Incomplete,
        [b'\r', b'\n', ..] => whole(line),
        [..] => Reading::Malformed,
    }
}

fn is_printable(byte: u8) -> bool {
    byte == b' ' || byte.is_ascii_graphic()
}

/// Parses a complete line.
fn whole(line: &[u8]) -> Reading {
    let fields = str::from_utf8(line).unwrap_or_default();
    let (family, fields) = fields
        .strip_prefix("PROXY ")
        .and_then(|fields| fields.split_once(' ').or(Some((fields, ""))))
        .unwrap_or_default();
    let client = match family {
        "TCP4" => source::<Ipv4Addr>(fields),
        "TCP6" => source::<Ipv6Addr>(fields),
        _ => None,
    };
    if client.is_none() && family != "UNKNOWN" {
        return Reading::Malformed;
    }
    Reading::Header {
        length: line.len() + 2,
        client,
    }
}

/// Parses both addresses and then both ports. The first address and the first port belong to the client.
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
