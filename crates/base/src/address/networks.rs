//! Lists of configured networks, and membership tests.
//!
//! IPv4 addresses and IPv4-mapped IPv6 addresses are equal.

use std::{net::IpAddr, str::FromStr};

use ipnet::{IpNet, Ipv4Net};

/// Length of the prefix of IPv4-mapped IPv6 addresses.
const MAPPED_BITS: u8 = 96;

/// One network. A single address is a network with one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network(IpNet);

/// The reason why a string is not a valid network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadNetwork {
    /// The string is neither an address nor a network.
    #[error(
        "write an address, such as \"192.0.2.1\", or a network, such as \"10.0.0.0/8\" or \"2001:db8::/32\""
    )]
    Spelling,
    /// The address has bits set beyond the prefix, so it is ambiguous.
    #[error(
        "the address is inside a network; write \"{network}\" for the network, or the address alone"
    )]
    Inside {
        /// The network with that prefix.
        network: IpNet,
    },
}

/// A list of networks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Networks(Vec<IpNet>);

impl FromStr for Network {
    type Err = BadNetwork;

    fn from_str(text: &str) -> Result<Self, BadNetwork> {
        let (address, bits) = text
            .split_once('/')
            .map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| BadNetwork::Spelling)?;
        let Some(bits) = bits else {
            return Ok(Self(address.to_canonical().into()));
        };
        let is_plain = bits == "0" || !bits.starts_with(['0', '+']);
        let bits: u8 = bits
            .parse()
            .ok()
            .filter(|_| is_plain)
            .ok_or(BadNetwork::Spelling)?;
        let network = IpNet::new(address, bits).map_err(|_| BadNetwork::Spelling)?;
        if network.trunc() != network {
            return Err(BadNetwork::Inside {
                network: network.trunc(),
            });
        }
        Ok(Self(unmapped(network)))
    }
}

/// The canonical form for comparisons of networks.
fn unmapped(network: IpNet) -> IpNet {
    let IpNet::V6(six) = network else {
        return network;
    };
    let four = six
        .addr()
        .to_ipv4_mapped()
        .zip(six.prefix_len().checked_sub(MAPPED_BITS));
    four.and_then(|(address, bits)| Ipv4Net::new(address, bits).ok())
        .map_or(network, IpNet::V4)
}

impl FromIterator<Network> for Networks {
    fn from_iter<I: IntoIterator<Item = Network>>(networks: I) -> Self {
        Self(
            networks
                .into_iter()
                .map(|Network(network)| network)
                .collect(),
        )
    }
}

impl Networks {
    /// Whether an address is in one of the networks.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the networks together cover all IPv4 or all IPv6 addresses.
    pub fn hold_everybody(&self) -> bool {
        IpNet::aggregate(&self.0)
            .iter()
            .any(|network| network.prefix_len() == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn networks(texts: &[&str]) -> Networks {
        texts
            .iter()
            .map(|text| text.parse::<Network>().unwrap())
            .collect()
    }

    #[test]
    fn ipv4_mapped_addresses_match_ipv4_networks() {
        let listed = networks(&[
            "10.0.0.0/8",
            "192.0.2.1",
            "2001:db8::/32",
            "2001:db9::1",
            "::ffff:198.51.100.0/120",
        ]);
        for inside in [
            "10.0.0.0",
            "10.255.255.255",
            "::ffff:10.1.2.3",
            "192.0.2.1",
            "2001:db8:ffff::1",
            "2001:db9::1",
            "198.51.100.9",
            "::ffff:198.51.100.9",
        ] {
            assert!(listed.contains(inside.parse().unwrap()), "{inside}");
        }
        for outside in [
            "11.0.0.0",
            "9.255.255.255",
            "192.0.2.2",
            "2001:db7::1",
            "2001:db9::2",
            "198.51.101.0",
            "::10.0.0.1",
        ] {
            assert!(!listed.contains(outside.parse().unwrap()), "{outside}");
        }
        assert!(!Networks::default().contains("127.0.0.1".parse().unwrap()));
    }

    #[test]
    fn an_invalid_network_gets_an_error_with_the_remedy() {
        for bad in [
            "",
            " ",
            "10.0.0.0/",
            "/8",
            "10.0.0.0/33",
            "2001:db8::/129",
            "10.0.0.0/08",
            "10.0.0.0/+8",
            "10.0.0.0/-1",
            "10.0.0/8",
            "010.0.0.0/8",
            "10.0.0.0/255.0.0.0",
            "localhost",
            "10.0.0.1:80",
            "[::1]",
            " 10.0.0.1",
            "fe80::1%eth0",
        ] {
            assert_eq!(bad.parse::<Network>(), Err(BadNetwork::Spelling), "{bad}");
        }
        let inside = "10.1.2.3/8".parse::<Network>().unwrap_err();
        assert!(
            inside.to_string().contains("write \"10.0.0.0/8\""),
            "{inside}"
        );
        assert!(matches!(
            "::1/64".parse::<Network>(),
            Err(BadNetwork::Inside { .. })
        ));
    }

    #[test]
    fn coverage_of_all_addresses_is_detected_even_in_parts() {
        for everybody in [
            &["0.0.0.0/0"][..],
            &["::/0"],
            &["0.0.0.0/1", "128.0.0.0/1"],
            &["::ffff:0:0/96", "10.0.0.1"],
        ] {
            assert!(networks(everybody).hold_everybody(), "{everybody:?}");
        }
        for some in [
            &[][..],
            &["0.0.0.0/1"],
            &["10.0.0.0/8", "2000::/3"],
            &["0.0.0.0", "::"],
        ] {
            assert!(!networks(some).hold_everybody(), "{some:?}");
        }
    }
}
