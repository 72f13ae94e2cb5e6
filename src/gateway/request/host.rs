//! The syntax of `Host`. `parse` checks that a request has exactly one.

use std::net::Ipv6Addr;

/// Without this limit, leading zeros could make a host arbitrarily long.
const MAX_PORT_DIGITS: usize = 5;

/// Whether a valid host and an authority are equal. The comparison ignores case, and the default port of the scheme may
/// be omitted (RFC 9110, 4.2.3).
pub fn is_same_host(host: &[u8], authority: &str, scheme: Option<&str>) -> bool {
    if host == authority.as_bytes() {
        return true;
    }
    let Ok(host) = std::str::from_utf8(host) else {
        return false;
    };
    let default_port = if scheme == Some("https") { 443 } else { 80 };
    name_and_port(host, default_port) == name_and_port(authority, default_port)
}

fn name_and_port(host: &str, default_port: u16) -> (String, u16) {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if is_port(port.as_bytes()) => (name, port),
        Some(_) | None => (host, ""),
    };
    (
        name.to_ascii_lowercase(),
        port.parse().unwrap_or(default_port),
    )
}

/// Whether the text is a name or an address, with or without a port. User information, lists, escapes and zones are
/// rejected, because a proxy in front of the gateway could read a different host.
pub fn is_host(host: &[u8]) -> bool {
    let (is_known, rest) = match host {
        [b'[', address @ ..] => {
            let end = address
                .iter()
                .position(|byte| *byte == b']')
                .unwrap_or(address.len());
            let (address, rest) = address.split_at(end);
            let address = std::str::from_utf8(address)
                .ok()
                .and_then(|text| text.parse::<Ipv6Addr>().ok());
            (
                address.is_some() && !rest.is_empty(),
                rest.get(1..).unwrap_or_default(),
            )
        }
        name => {
            let end = name
                .iter()
                .position(|byte| OF_A_NAME.get(usize::from(*byte)) != Some(&true))
                .unwrap_or(name.len());
            (end > 0, name.get(end..).unwrap_or_default())
        }
    };
    is_known && (rest.is_empty() || rest.strip_prefix(b":").is_some_and(is_port))
}

/// Whether a byte is allowed in a name (RFC 3986, 3.2.2). Percent-encoding is not supported.
#[expect(clippy::indexing_slicing, reason = "every byte is an index")]
const OF_A_NAME: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0_u8;
    while byte < u8::MAX {
        table[byte as usize] = matches!(byte, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'!' | b'$' | b'&'..=b'+' | b';' | b'=');
        byte += 1;
    }
    table
};

/// Whether the text after a colon is a port, which may be empty.
fn is_port(port: &[u8]) -> bool {
    let number = port.iter().try_fold(0_u32, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| u32::from(digit - b'0'))?;
        Some(number.saturating_mul(10).saturating_add(digit))
    });
    port.len() <= MAX_PORT_DIGITS && number.is_some_and(|number| u16::try_from(number).is_ok())
}
