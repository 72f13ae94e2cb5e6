//! Version 2: a signature, four bytes of type and length, a block of addresses, further fields.
//!
//! Further fields (TLVs) must fit into the header and are skipped; a checksum among them (`PP2_TYPE_CRC32C`) is not
//! verified, since TCP has its own.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::{LONGEST, Reading};

/// No text protocol begins like this.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// Length of signature, command, family and length field.
const FIXED: usize = 16;
/// Length of the type and length of a TLV.
const FIELD_HEAD: usize = 3;

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

pub(super) fn read(bytes: &[u8]) -> Reading {
    let Some((signature, body)) = bytes.split_first_chunk() else {
        return if SIGNATURE.starts_with(bytes) {
            Reading::Incomplete
        } else {
            Reading::Malformed
        };
    };
    match body {
        _ if signature != SIGNATURE => Reading::Malformed,
        [] | [0x20 | 0x21] => Reading::Incomplete,
        [command, family, length @ ..] => match block(*command, *family) {
            Some(block) => sized(block, length),
            None => Reading::Malformed,
        },
        [_] => Reading::Malformed,
    }
}

fn block(command: u8, family: u8) -> Option<AddressBlock> {
    match (command, family) {
        // For a health check (`LOCAL`) the proxy may send any family.
        (0x20, _) | (0x21, 0x00) => Some(AddressBlock::Ignored),
        (0x21, 0x11) => Some(AddressBlock::Four),
        (0x21, 0x21) => Some(AddressBlock::Six),
        (0x21, 0x31 | 0x32) => Some(AddressBlock::Unix),
        _ => None, // datagrams among others: they never arrive over a connection
    }
}

/// The family with the length of the rest.
fn sized(block: AddressBlock, bytes: &[u8]) -> Reading {
    // The high byte alone may already make it too short or too long.
    let (least, most) = match bytes {
        [] => return Reading::Incomplete,
        [high] => (
            u16::from_be_bytes([*high, 0]),
            u16::from_be_bytes([*high, u8::MAX]),
        ),
        [high, low, ..] => (
            u16::from_be_bytes([*high, *low]),
            u16::from_be_bytes([*high, *low]),
        ),
    };
    let least = usize::from(least);
    let most = usize::from(most);
    if FIXED + least > LONGEST || most < block.length() {
        return Reading::Malformed;
    }
    let Some((_, rest)) = bytes.split_first_chunk::<2>() else {
        return Reading::Incomplete;
    };
    let has_come = rest.get(..least);
    let fields = has_come
        .unwrap_or(rest)
        .get(block.length()..)
        .unwrap_or_default();
    if !block.fields_fit(fields, least) {
        return Reading::Malformed;
    }
    match has_come {
        Some(whole) => Reading::Header {
            length: FIXED + least,
            client: block.client(whole),
        },
        None => Reading::Incomplete,
    }
}

impl AddressBlock {
    /// Length of its addresses and ports.
    const fn length(self) -> usize {
        match self {
            Self::Ignored => 0,
            Self::Four => 12,
            Self::Six => 36,
            Self::Unix => 216,
        }
    }

    /// Whether the TLVs after the addresses, as far as received, fit into the rest.
    fn fields_fit(self, mut fields: &[u8], rest: usize) -> bool {
        let mut left = rest - self.length();
        loop {
            let least = match fields {
                _ if matches!(self, Self::Ignored) || left == 0 => return true,
                _ if left < FIELD_HEAD => return false,
                [] | [_] => return true,
                [_, high] => usize::from(u16::from_be_bytes([*high, 0])),
                [_, high, low, ..] => usize::from(u16::from_be_bytes([*high, *low])),
            };
            let Some(after) = left.checked_sub(FIELD_HEAD + least) else {
                return false;
            };
            let Some(behind) = fields.get(FIELD_HEAD + least..) else {
                return true;
            };
            (left, fields) = (after, behind);
        }
    }

    /// The source address and port; the destination is ours.
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
