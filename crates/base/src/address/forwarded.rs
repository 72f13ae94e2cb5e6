//! Parses entries of `X-Forwarded-For` and `Forwarded`.
//!
//! Parsing starts at the end, which the nearest proxy wrote: whatever a client put before it, such as an unclosed
//! quote, cannot change the result. Trust is decided in `client`.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Splits at the last `separator`: the text behind it, and the text before it if there is one. With `may_quote`,
/// separators inside quotes do not count.
pub(super) fn split_last(text: &[u8], separator: u8, may_quote: bool) -> (Option<&[u8]>, &[u8]) {
    let mut is_quoted = false;
    let mut before = text;
    while let Some((last, rest)) = before.split_last() {
        if *last == b'"' && may_quote {
            is_quoted = !is_quoted || is_escaped(rest);
        } else if *last == separator && !is_quoted {
            return (Some(rest), text.get(before.len()..).unwrap_or_default());
        }
        before = rest;
    }
    (None, text)
}

/// Whether a character is escaped: the text before it ends in an odd number of backslashes.
fn is_escaped(before: &[u8]) -> bool {
    before
        .iter()
        .rev()
        .take_while(|byte| **byte == b'\\')
        .count()
        % 2
        == 1
}

/// Parses an address, with or without a port: `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]:80`.
pub(super) fn in_x_forwarded_for(entry: &[u8]) -> Option<IpAddr> {
    let text = str::from_utf8(entry.trim_ascii()).ok()?;
    let bare = || text.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    with_port(text, is_port)
        .or_else(bare)
        .map(|address| address.to_canonical())
}

/// Parses the address of the only `for` parameter: `for=192.0.2.60;proto=http`.
pub(super) fn in_forwarded(entry: &[u8]) -> Option<IpAddr> {
    let mut left = Some(entry);
    let mut found = None;
    while let Some(text) = left {
        let (before, pair) = split_last(text, b';', true);
        left = before;
        let pair = pair.trim_ascii();
        if pair.is_empty() {
            continue;
        }
        let equals = pair.iter().position(|byte| *byte == b'=')?;
        let (name, value) = pair.split_at(equals);
        let value = value_of(value.get(1..)?)?;
        if !is_token(name) {
            return None;
        }
        if name.eq_ignore_ascii_case(b"for") && found.replace(value).is_some() {
            return None;
        }
    }
    let node = found?;
    with_port(str::from_utf8(&node).ok()?, |port| {
        is_port(port) || is_hidden(port)
    })
    .map(|address| address.to_canonical())
}

/// A token as it is; a quoted string without quotes and escapes.
fn value_of(text: &[u8]) -> Option<Cow<'_, [u8]>> {
    if is_token(text) {
        return Some(Cow::Borrowed(text));
    }
    let quoted = text.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if !quoted.contains(&b'\\') {
        return (!quoted.contains(&b'"')).then_some(Cow::Borrowed(quoted));
    }
    let mut plain = Vec::with_capacity(quoted.len());
    let mut bytes = quoted.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return None,
            b'\\' => plain.push(*bytes.next()?),
            _ => plain.push(*byte),
        }
    }
    Some(Cow::Owned(plain))
}

fn is_token(text: &[u8]) -> bool {
    !text.is_empty()
        && text
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte))
}

/// Parses an address with an optional port; IPv6 in brackets. Names such as `unknown` are not addresses.
fn with_port(text: &str, is_port: impl Fn(&str) -> bool) -> Option<IpAddr> {
    let (address, behind): (IpAddr, &str) = if let Some(bracketed) = text.strip_prefix('[') {
        let (six, behind) = bracketed.split_once(']')?;
        (six.parse::<Ipv6Addr>().ok()?.into(), behind)
    } else {
        let end = text.find(':').unwrap_or(text.len());
        let (four, behind) = text.split_at_checked(end)?;
        (four.parse::<Ipv4Addr>().ok()?.into(), behind)
    };
    let fits = behind.is_empty() || behind.strip_prefix(':').is_some_and(is_port);
    fits.then_some(address)
}

fn is_port(text: &str) -> bool {
    (1..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// An obfuscated port.
fn is_hidden(text: &str) -> bool {
    let is_name = |name: &str| {
        name.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    };
    text.strip_prefix('_')
        .is_some_and(|name| !name.is_empty() && is_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entries(line: &str, may_quote: bool) -> Vec<&str> {
        let mut left = Some(line.as_bytes());
        let mut entries = Vec::new();
        while let Some(text) = left {
            let (before, entry) = split_last(text, b',', may_quote);
            entries.push(str::from_utf8(entry).unwrap());
            left = before;
        }
        entries
    }

    #[test]
    fn line_is_split_into_entries_from_the_end() {
        assert_eq!(entries("a, b,c", false), ["c", " b", "a"]);
        assert_eq!(entries("", true), [""]);
        assert_eq!(entries(",", true), ["", ""]);
        assert_eq!(
            entries(r#"x="a,b",y="\",",z"#, true),
            ["z", r#"y="\",""#, r#"x="a,b""#]
        );
        assert_eq!(entries(r#"x="\\",y="#, true), ["y=", r#"x="\\""#]);
        assert_eq!(
            entries(r#"for=",for=b"#, true),
            ["for=b", r#"for=""#],
            "what never closes harms itself"
        );
        assert_eq!(entries(r#"x="a,b""#, false), [r#"b""#, r#"x="a"#]);
    }

    #[test]
    fn an_x_forwarded_for_entry_is_an_address_with_or_without_a_port() {
        for (entry, address) in [
            ("192.0.2.1", "192.0.2.1"),
            (" \t192.0.2.1 ", "192.0.2.1"),
            ("192.0.2.1:80", "192.0.2.1"),
            ("2001:db8::1", "2001:db8::1"),
            ("[2001:DB8::1]", "2001:db8::1"),
            ("[2001:db8::1]:65535", "2001:db8::1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("[::ffff:192.0.2.1]:1", "192.0.2.1"),
        ] {
            assert_eq!(
                in_x_forwarded_for(entry.as_bytes()),
                Some(address.parse().unwrap()),
                "{entry}"
            );
        }
        for entry in [
            "",
            " ",
            "unknown",
            "_hidden",
            "192.0.2",
            "192.0.2.01",
            "192.0.2.1:",
            "192.0.2.1:x",
            "192.0.2.1:_x",
            "192.0.2.1:123456",
            "192.0.2.1 198.51.100.7",
            "\"192.0.2.1\"",
            "for=192.0.2.1",
            "[2001:db8::1",
            "2001:db8::1]",
            "[2001:db8::1]80",
            "[192.0.2.1]",
            "fe80::1%eth0",
            "localhost",
            "192.0.2.1/32",
            "\u{661}92.0.2.1",
        ] {
            assert_eq!(in_x_forwarded_for(entry.as_bytes()), None, "{entry}");
        }
        assert_eq!(in_x_forwarded_for(b"192.0.2.1\xff"), None);
    }

    #[test]
    fn a_forwarded_entry_has_exactly_one_for_parameter() {
        for (entry, address) in [
            ("for=192.0.2.60;proto=http;by=203.0.113.43", "192.0.2.60"),
            ("For=192.0.2.60", "192.0.2.60"),
            ("FOR=\"192.0.2.60\"", "192.0.2.60"),
            (" proto=http; for=192.0.2.60 ;", "192.0.2.60"),
            ("for=\"192.0.2.60:4711\"", "192.0.2.60"),
            ("for=\"192.0.2.60:_pool\"", "192.0.2.60"),
            ("for=\"[2001:db8:cafe::17]:4711\"", "2001:db8:cafe::17"),
            ("for=\"[2001:db8:cafe::17]\"", "2001:db8:cafe::17"),
            ("for=\"[::ffff:192.0.2.60]\"", "192.0.2.60"),
            (r#"for="\[2001:db8::1\]\:80""#, "2001:db8::1"),
            (r#"host="a;b,\"for=6.6.6.6\"";for=192.0.2.60"#, "192.0.2.60"),
            (";;for=192.0.2.60;;", "192.0.2.60"),
        ] {
            assert_eq!(
                in_forwarded(entry.as_bytes()),
                Some(address.parse().unwrap()),
                "{entry}"
            );
        }
        for entry in [
            "",
            ";",
            "for",
            "for=",
            "for=\"\"",
            "=192.0.2.60",
            "192.0.2.60",
            "by=192.0.2.60",
            "for=unknown",
            "for=_hidden",
            "for=\"_hidden:80\"",
            "for=\"unknown\"",
            "for=192.0.2.60:80",
            "for=[2001:db8::1]",
            "for=\"2001:db8::1\"",
            "for = 192.0.2.60",
            "for=\"192.0.2.60",
            "for=192.0.2.60\"",
            "for=\"192.0.2.60\"\"",
            "for=\"192.0.2.60\\\"",
            "for=192.0.2.60;for=192.0.2.61",
            "for=192.0.2.60;proto",
            "for=192.0.2.60;pro to=x",
            "for=192.0.2.60;x=\"",
            "for=\"192.0.2.60:\"",
            "for=\"192.0.2.60:_\"",
            "for=\"192.0.2.60:_a b\"",
            "fo\u{131}=192.0.2.60",
        ] {
            assert_eq!(in_forwarded(entry.as_bytes()), None, "{entry}");
        }
    }

    proptest! {
        #[test]
        fn last_entry_is_parsed_independently_of_earlier_entries(
            before in prop::collection::vec(prop::sample::select(b" ,;=\"\\:[]for1".to_vec()), 0..40),
            address: IpAddr,
        ) {
            let node = match address {
                IpAddr::V4(four) => format!("for={four};host=\"a,\\\"b\""),
                IpAddr::V6(six) => format!("proto=https;for=\"[{six}]:80\""),
            };
            let line = [&before[..], b",", node.as_bytes()].concat();
            let (left, entry) = split_last(&line, b',', true);
            prop_assert_eq!(left, Some(&before[..]));
            prop_assert_eq!(in_forwarded(entry), Some(address.to_canonical()));
            let line = [&before[..], b", ", address.to_string().as_bytes()].concat();
            prop_assert_eq!(in_x_forwarded_for(split_last(&line, b',', false).1), Some(address.to_canonical()));
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(line in prop::collection::vec(any::<u8>(), 0..80)) {
            in_x_forwarded_for(&line);
            in_forwarded(&line);
            split_last(&line, b',', true);
        }
    }
}
