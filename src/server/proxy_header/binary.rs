//! Version 2: a signature, four bytes of type and length, a block of addresses, and further fields.
//!
//! Further fields (TLVs) must fit into the header and are skipped. A checksum (`PP2_TYPE_CRC32C`) is not verified,
//! because TCP has its own.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::{LONGEST, Reading};

/// The first bytes of a header. No text protocol begins like this.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// Length of the signature, the command, the family and the length field.
const FIXED: usize = 16;

/// The address family.
#[derive(Clone, Copy)]
enum AddressBlock {
    /// A health check of the proxy, or an unknown family. The rest is ignored.
    Ignored,
    /// TCP over IPv4.
    Four,
    /// TCP over IPv6.
    Six,
    /// A Unix socket on the proxy's machine.
    Unix,
}

pub fn read(bytes: &[u8]) -> Reading {
    let signature = bytes.get(..SIGNATURE.len()).unwrap_or(bytes);
    if !SIGNATURE.starts_with(signature) {
        return Reading::Malformed;
    }
    let Some((fixed, rest)) = bytes.split_first_chunk::<FIXED>() else {
        return Reading::Incomplete;
    };
    let [.., command, family, high, low] = *fixed;
    let length = usize::from(u16::from_be_bytes([high, low]));
    let Some(block) = block(command, family).filter(|block| block.length() <= length) else {
        return Reading::Malformed;
    };
    match rest.get(..length) {
        _ if FIXED + length > LONGEST => Reading::Malformed,
        None => Reading::Incomplete,
        Some(rest) if block.fields_fit(rest) => Reading::Header {
            length: FIXED + length,
            client: block.client(rest),
        },
        Some(_) => Reading::Malformed,
    }
}

fn block(command: u8, family: u8) -> Option<AddressBlock> {
    match (command, family) {
        // For a health check (`LOCAL`) the proxy may send any family.
        (0x20, _) | (0x21, 0x00) => Some(AddressBlock::Ignored),
        (0x21, 0x11) => Some(AddressBlock::Four),
        (0x21, 0x21) => Some(AddressBlock::Six),
        (0x21, 0x31 | 0x32) => Some(AddressBlock::Unix),
        _ => None, // for example datagrams, which never arrive over a connection
    }
}

impl AddressBlock {
    /// Length of the addresses and ports.
    const fn length(self) -> usize {
        match self {
            Self::Ignored => 0,
            Self::Four => 12,
            Self::Six => 36,
            Self::Unix => 216,
        }
    }

    /// Whether the TLVs after the addresses exactly fill the rest of the header.
    fn fields_fit(self, rest: &[u8]) -> bool {
        let mut fields = rest.get(self.length()..);
        while let Some([_, high, low, after @ ..]) = fields {
            fields = after.get(usize::from(u16::from_be_bytes([*high, *low]))..);
        }
        matches!(self, Self::Ignored) || fields.is_some_and(<[u8]>::is_empty)
    }

    /// The source address and port. The destination, which is the gateway, is ignored.
    fn client(self, block: &[u8]) -> Option<SocketAddr> {
        let (address, port): (IpAddr, &[u8]) = match self {
            Self::Ignored | Self::Unix => return None,
            Self::Four => (
                Ipv4Addr::from(*block.first_chunk::<4>()?).into(),
                block.get(8..)?,
            ),
            Self::Six => (
                Ipv6Addr::from(*block.first_chunk::<16>()?).into(),
                block.get(32..)?,
            ),
        };
        Some(SocketAddr::new(
            address.to_canonical(),
            u16::from_be_bytes(*port.first_chunk()?),
        ))
    }
}
