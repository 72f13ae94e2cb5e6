//! The client's address behind trusted proxies.
//!
//! One header is read, and only as far as trusted proxies wrote it. Entries are parsed in `forwarded`.

use std::net::IpAddr;

use http::HeaderMap;
use http::header::{FORWARDED, HeaderName};

use super::forwarded::{in_forwarded, in_x_forwarded_for, split_last};
use super::networks::Networks;

/// Maximum number of entries read.
const MAX_HOPS: usize = 32;

/// Trusted proxies and the header they write.
#[derive(Clone, Debug, Default)]
pub struct Proxies {
    /// Networks of proxies that may name their client; empty by default.
    pub trusted: Networks,
    /// The header they write.
    pub header: ClientHeader,
}

/// The header that is read. A proxy writes one of them and passes the other on as the client sent it: reading both
/// would let clients choose their address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientHeader {
    /// `X-Forwarded-For`.
    #[default]
    XForwardedFor,
    /// `Forwarded` (RFC 7239).
    Forwarded,
    /// None: proxies use the PROXY protocol, or there are none.
    Nothing,
}

impl Proxies {
    /// The client's address. For an untrusted peer no header is read.
    ///
    /// Reads from the nearest hop to the farthest: an entry written by a trusted hop is true; the first untrusted hop
    /// is the client. If all are trusted, the farthest is the client. If an entry cannot be parsed, the hop that
    /// wrote it is the client.
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
    /// The address that each hop states for the hop before it, nearest first; `None` if it cannot be parsed.
    fn hops(self, headers: &HeaderMap) -> impl Iterator<Item = Option<IpAddr>> {
        let name = self.name();
        let lines = name
            .into_iter()
            .flat_map(|name| headers.get_all(name).iter().rev());
        lines.flat_map(move |line| {
            let mut left = Some(line.as_bytes());
            std::iter::from_fn(move || {
                let (before, entry) = split_last(left?, b',', self == Self::Forwarded);
                left = before;
                Some(self.address(entry))
            })
        })
    }

    const fn name(self) -> Option<HeaderName> {
        match self {
            Self::XForwardedFor => Some(HeaderName::from_static("x-forwarded-for")),
            Self::Forwarded => Some(FORWARDED),
            Self::Nothing => None,
        }
    }

    fn address(self, entry: &[u8]) -> Option<IpAddr> {
        match self {
            Self::XForwardedFor => in_x_forwarded_for(entry),
            Self::Forwarded => in_forwarded(entry),
            Self::Nothing => None,
        }
    }
}

#[cfg(test)]
mod tests {
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

    const XFF: &str = "x-forwarded-for";

    #[test]
    fn an_untrusted_peer_is_the_client_whatever_its_headers() {
        let lines = [(XFF, "192.0.2.1"), ("forwarded", "for=192.0.2.2")];
        for header in [
            ClientHeader::XForwardedFor,
            ClientHeader::Forwarded,
            ClientHeader::Nothing,
        ] {
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
            let lines: Vec<_> = lines.iter().map(|line| (XFF, *line)).collect();
            for peer in ["10.0.0.1", "::ffff:10.0.0.1"] {
                assert_eq!(
                    client(ClientHeader::XForwardedFor, peer, &lines),
                    expected,
                    "{lines:?}"
                );
            }
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
            let lines: Vec<_> = lines.iter().map(|line| (XFF, *line)).collect();
            assert_eq!(
                client(ClientHeader::XForwardedFor, "10.0.0.1", &lines),
                expected,
                "{lines:?}"
            );
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
            client(ClientHeader::XForwardedFor, "10.0.0.1", &[(XFF, &line)])
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
        assert_eq!(
            client(ClientHeader::XForwardedFor, "10.0.0.1", &lines),
            "192.0.2.1"
        );
        assert_eq!(
            client(ClientHeader::Forwarded, "10.0.0.1", &lines),
            "192.0.2.2"
        );
        assert_eq!(
            client(ClientHeader::Nothing, "10.0.0.1", &lines),
            "10.0.0.1"
        );
        assert_eq!(
            client(ClientHeader::Forwarded, "10.0.0.1", &lines[..1]),
            "10.0.0.1"
        );
        assert_eq!(
            client(ClientHeader::XForwardedFor, "10.0.0.1", &lines[1..]),
            "10.0.0.1"
        );
    }

    #[test]
    fn unclosed_quote_of_a_client_does_not_hide_later_entries() {
        for spoofed in [
            "for=\"",
            "for=6.6.6.6;x=\"",
            "for=6.6.6.6;x=\"\\",
            "\"\\\"",
            ",",
        ] {
            let line = format!("{spoofed}, for=\"192.0.2.1:80\";host=\"a,b\", for=10.0.0.2");
            assert_eq!(
                client(ClientHeader::Forwarded, "10.0.0.1", &[("forwarded", &line)]),
                "192.0.2.1",
                "{line}"
            );
        }
    }
}
