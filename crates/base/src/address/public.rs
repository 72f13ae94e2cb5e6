//! Addresses on the public internet: those to which this program connects in the name of others.

use std::net::IpAddr;

/// IPv4 networks that are not public: private, shared, loopback, link-local, protocol assignments, documentation, the relays of
/// 6to4, benchmarks, multicast and reserved ones.
const NOT_PUBLIC_V4: [([u8; 4], u32); 14] = [
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    ([192, 88, 99, 0], 24),
    ([192, 168, 0, 0], 16),
    ([198, 18, 0, 0], 15),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    ([224, 0, 0, 0], 3),
];
/// Parts of 2000::/3 that are not public: protocol assignments with Teredo, documentation, and 6to4, which contains IPv4 addresses.
const NOT_PUBLIC_V6: [([u16; 2], u32); 4] =
    [([0x2001, 0], 23), ([0x2001, 0xdb8], 32), ([0x2002, 0], 16), ([0x3fff, 0], 20)];

/// Whether an address is public. Of IPv6 only the global unicast addresses are, so mapped addresses and those of NAT64 are not.
pub fn is_public(address: IpAddr) -> bool {
    let is_in = |address: u32, network: u32, bits: u32| (address ^ network) >> (32 - bits) == 0;
    match address {
        IpAddr::V4(address) => {
            let of = |(network, bits): &([u8; 4], u32)| {
                is_in(address.to_bits(), u32::from_be_bytes(*network), *bits)
            };
            !NOT_PUBLIC_V4.iter().any(of)
        }
        IpAddr::V6(address) => {
            let [one, two, ..] = address.segments();
            let first = (u32::from(one) << 16) | u32::from(two);
            let of = |([one, two], bits): &([u16; 2], u32)| {
                is_in(first, (u32::from(*one) << 16) | u32::from(*two), *bits)
            };
            is_in(first, 0x2000_0000, 3) && !NOT_PUBLIC_V6.iter().any(of)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_global_unicast_addresses_are_public() {
        for public in [
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
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for other in [
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
        ] {
            assert!(!is_public(other.parse().unwrap()), "{other}");
        }
    }
}
