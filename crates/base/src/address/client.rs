//! The client's address behind trusted proxies.
//!
//! Only the part of the header that trusted proxies wrote is read, starting from the end.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use http::HeaderMap;

use super::networks::Networks;

const X_FORWARDED_FOR: &str = "x-forwarded-for";

/// Maximum number of entries that are read.
const MAX_HOPS: usize = 32;

/// Trusted proxies, and the header that they write.
#[derive(Clone, Debug, Default)]
pub struct Proxies {
    /// Networks of proxies whose client header is trusted; empty by default.
    pub trusted: Networks,
    /// The header they write.
    pub header: ClientHeader,
}

/// The header that is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientHeader {
    /// `X-Forwarded-For`.
    #[default]
    XForwardedFor,
    /// No header. Proxies use the PROXY protocol, or there are no proxies.
    Nothing,
}

impl Proxies {
    /// The client's address. If the peer is not trusted, no header is read.
    ///
    /// Entries are read from the nearest hop to the farthest. An entry that a trusted hop wrote is trusted. The first
    /// untrusted hop is the client. If all hops are trusted, the farthest hop is the client. If an entry cannot be
    /// parsed, the hop that wrote it is the client.
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut known = peer.to_canonical();
        if !self.trusted.contains(known) {
            return known;
        }
        for entry in self.header.hops(headers).take(MAX_HOPS) {
            let Some(address) = entry else { break };
            known = address;
            if !self.trusted.contains(known) {
                break;
            }
        }
        known
    }
}

impl ClientHeader {
    /// The address that each hop reports for the previous hop, nearest first; `None` if it cannot be parsed.
    fn hops(self, headers: &HeaderMap) -> impl Iterator<Item = Option<IpAddr>> {
        let lines = match self {
            Self::XForwardedFor => Some(headers.get_all(X_FORWARDED_FOR).iter().rev()),
            Self::Nothing => None,
        };
        let lines = lines.into_iter().flatten();
        lines.flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b',').map(address))
    }
}

/// Parses an address, with or without a port: `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]:80`.
fn address(entry: &[u8]) -> Option<IpAddr> {
    let text = str::from_utf8(entry.trim_ascii()).ok()?;
    with_port(text)
        .or_else(|| text.parse::<Ipv6Addr>().ok().map(IpAddr::V6))
        .map(|address| address.to_canonical())
}

/// Parses an address with an optional port. IPv6 addresses are in brackets. Names such as `unknown` are not addresses.
fn with_port(text: &str) -> Option<IpAddr> {
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

#[cfg(test)]
mod tests {
    use http::HeaderName;
    use proptest::prelude::*;

    use crate::address::networks::Network;

    use super::*;

    fn proxies(header: ClientHeader) -> Proxies {
        let listed =
            ["10.0.0.0/8", "2001:db8:aaaa::/48"].map(|text| text.parse::<Network>().unwrap());
        Proxies {
            trusted: listed.into_iter().collect(),
            header,
        }
    }

    /// The client of a request from this peer with these header lines.
    fn client(header: ClientHeader, peer: &str, lines: &[(&'static str, &str)]) -> String {
        let mut headers = HeaderMap::new();
        for (name, line) in lines {
            headers.append(*name, line.parse().unwrap());
        }
        proxies(header)
            .client(peer.parse().unwrap(), &headers)
            .to_string()
    }

    const XFF: &str = X_FORWARDED_FOR;

    /// The client behind a proxy, in these lines of `X-Forwarded-For`.
    fn forwarded(lines: &[&str]) -> String {
        let lines: Vec<_> = lines.iter().map(|line| (XFF, *line)).collect();
        let [found, mapped] = ["10.0.0.1", "::ffff:10.0.0.1"]
            .map(|peer| client(ClientHeader::XForwardedFor, peer, &lines));
        assert_eq!(found, mapped, "{lines:?}");
        found
    }

    #[test]
    fn an_untrusted_peer_is_the_client_whatever_its_headers() {
        let lines = [(XFF, "192.0.2.1"), ("forwarded", "for=192.0.2.2")];
        for header in [ClientHeader::XForwardedFor, ClientHeader::Nothing] {
            assert_eq!(client(header, "203.0.113.9", &lines), "203.0.113.9");
            assert_eq!(client(header, "::ffff:203.0.113.9", &lines), "203.0.113.9");
        }
        let nobody = Proxies::default();
        let headers =
            HeaderMap::from_iter([(HeaderName::from_static(XFF), "192.0.2.1".parse().unwrap())]);
        assert_eq!(
            nobody
                .client("10.0.0.1".parse().unwrap(), &headers)
                .to_string(),
            "10.0.0.1"
        );
    }

    #[test]
    fn the_nearest_untrusted_hop_is_the_client() {
        for (lines, expected) in [
            (&[][..], "10.0.0.1"),
            (&["192.0.2.1"], "192.0.2.1"),
            (&["198.51.100.7, 192.0.2.1"], "192.0.2.1"),
            (&["198.51.100.7, 192.0.2.1, 10.0.0.2"], "192.0.2.1"),
            (
                &["198.51.100.7, 192.0.2.1", "10.0.0.3, 10.0.0.2"],
                "192.0.2.1",
            ),
            (
                &["192.0.2.1", "2001:db8:aaaa::1", "::ffff:10.0.0.2"],
                "192.0.2.1",
            ),
            (&["10.0.0.4, 10.0.0.3", "10.0.0.2"], "10.0.0.4"),
            (&["2001:db8::1"], "2001:db8::1"),
        ] {
            assert_eq!(forwarded(lines), expected, "{lines:?}");
        }
    }

    #[test]
    fn sender_of_an_unreadable_entry_is_the_client() {
        for (lines, expected) in [
            (&["192.0.2.1, unknown"][..], "10.0.0.1"),
            (&["192.0.2.1, _hidden, 10.0.0.2"], "10.0.0.2"),
            (&["192.0.2.1, , 10.0.0.2"], "10.0.0.2"),
            (&["192.0.2.1", "", "10.0.0.2"], "10.0.0.2"),
            (&["192.0.2.1,"], "10.0.0.1"),
            (&["nonsense, 192.0.2.1"], "192.0.2.1"),
        ] {
            assert_eq!(forwarded(lines), expected, "{lines:?}");
        }
    }

    #[test]
    fn at_most_32_entries_are_read() {
        let through = |hops: usize| {
            let proxies: Vec<_> = (1..=hops)
                .rev()
                .map(|hop| format!("10.0.1.{hop}"))
                .collect();
            let line = format!("192.0.2.1, {}", proxies.join(", "));
            forwarded(&[&line])
        };
        assert_eq!(
            (through(31), through(32), through(60)),
            ("192.0.2.1".into(), "10.0.1.32".into(), "10.0.1.32".into())
        );
    }

    #[test]
    fn only_the_configured_header_is_read() {
        let lines = [
            (XFF, "192.0.2.1"),
            ("forwarded", "for=192.0.2.2, for=10.0.0.2"),
            ("x-real-ip", "192.0.2.3"),
        ];
        for (header, lines, expected) in [
            (ClientHeader::XForwardedFor, &lines[..], "192.0.2.1"),
            (ClientHeader::Nothing, &lines, "10.0.0.1"),
            (ClientHeader::XForwardedFor, &lines[1..], "10.0.0.1"),
        ] {
            assert_eq!(client(header, "10.0.0.1", lines), expected);
        }
    }

    #[test]
    fn an_x_forwarded_for_entry_is_an_address_with_or_without_a_port() {
        for (entry, expected) in [
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
                address(entry.as_bytes()),
                Some(expected.parse().unwrap()),
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
            assert_eq!(address(entry.as_bytes()), None, "{entry}");
        }
        assert_eq!(address(b"192.0.2.1\xff"), None);
    }

    proptest! {
        #[test]
        fn last_entry_is_parsed_independently_of_earlier_entries(
            before in prop::collection::vec(prop::sample::select(b" ,;=\"\\:[]for1".to_vec()), 0..40),
            last: IpAddr,
        ) {
            let line = [&before[..], b", ", last.to_string().as_bytes()].concat();
            let headers = HeaderMap::from_iter([
                (HeaderName::from_static(XFF), line.as_slice().try_into().unwrap()),
            ]);
            let nearest = ClientHeader::XForwardedFor.hops(&headers).next();
            prop_assert_eq!(nearest, Some(Some(last.to_canonical())));
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(entry in prop::collection::vec(any::<u8>(), 0..80)) {
            address(&entry);
        }
    }
}
