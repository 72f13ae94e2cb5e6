//! Addresses on the public internet, to which this program may connect on behalf of others.

use std::net::IpAddr;

use ipnet::IpNet;

/// Networks that are not public. IPv4: private, shared, loopback, link-local, protocol assignments, documentation, 6to4
/// relays, benchmarking, multicast and reserved networks. Parts of `2000::/3`: protocol assignments with Teredo,
/// documentation, and 6to4, which contains IPv4 addresses.
const NOT_PUBLIC: &str = "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 \
                          192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/3 2001::/23 \
                          2001:db8::/32 2002::/16 3fff::/20";

/// Whether an address is public. Among IPv6 addresses, only global unicast addresses are public, so mapped addresses
/// and NAT64 addresses are not.
pub fn is_public(address: IpAddr) -> bool {
    let is_global = match address {
        IpAddr::V4(_) => true,
        IpAddr::V6(address) => address.to_bits() >> 125 == 0b001,
    };
    // A network that cannot be parsed counts as containing every address.
    let mut others = NOT_PUBLIC
        .split(' ')
        .map(|network| network.parse::<IpNet>().ok());
    is_global && !others.any(|network| network.is_none_or(|network| network.contains(&address)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLIC: [&str; 17] = [
        "1.1.1.1",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.0",
        "192.167.255.255",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "2001:200::1",
        "2001:4860:4860::8888",
        "2606:4700::1111",
        "2a00::1",
        "3ffe::1",
    ];

    const OTHER: [&str; 44] = [
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "100.64.0.1",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.255.254",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.170",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.1.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::8.8.8.8",
        "::ffff:127.0.0.1",
        "::ffff:8.8.8.8",
        "64:ff9b::808:808",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:2::1",
        "2001:1ff::1",
        "2001:db8::1",
        "2002:7f00:1::1",
        "3fff::1",
        "3fff:fff::1",
        "4000::1",
        "5f00::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fec0::1",
        "ff02::1",
    ];

    #[test]
    fn only_global_unicast_addresses_are_public() {
        for address in PUBLIC {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
        for address in OTHER {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }
}
