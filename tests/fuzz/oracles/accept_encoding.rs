//! Lines of `Accept-Encoding`: the selected encoding is the one that the client prefers, never one that it excludes or
//! does not name. The oracle looks q-values up among all their spellings.

use std::collections::HashMap;

use http::HeaderValue;
use scoregate::cache::{ContentCoding, negotiate};

/// Fails if the program selects another encoding.
pub fn check(bytes: &[u8]) {
    let lines: Vec<HeaderValue> = bytes
        .split(|byte| *byte == b'\n')
        .take(8)
        .filter_map(|line| HeaderValue::from_bytes(line).ok())
        .collect();
    let selected = negotiate(lines.iter());
    // The last weight of a name counts.
    let mut weights: HashMap<&str, u16> = HashMap::new();
    let items = lines
        .iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','));
    for (name, quality) in items.filter_map(weighted) {
        weights.insert(name, quality);
    }
    let of = |name: &str| weights.get(name).or(weights.get("*")).copied().unwrap_or(0);
    let brotli = of("br");
    let gzip = of("gzip");
    let identity = weights.get("identity").copied().unwrap_or(0);
    let best = brotli.max(gzip).max(identity);
    let expected = match best {
        0 => ContentCoding::Identity,
        best if best == brotli => ContentCoding::Brotli,
        best if best == gzip => ContentCoding::Gzip,
        _ => ContentCoding::Identity,
    };
    assert_eq!(selected, expected, "{lines:?}");
}

/// A supported encoding and its weight; `None` if the item is malformed or another encoding.
fn weighted(item: &str) -> Option<(&'static str, u16)> {
    let parts: Vec<&str> = item
        .split(';')
        .map(|part| part.trim_matches([' ', '\t']))
        .collect();
    let quality = match parts.as_slice() {
        [_] => 1_000,
        [_, weight] => (0..=1_000).find(|thousandths| {
            spellings(*thousandths).any(|one| one.eq_ignore_ascii_case(weight))
        })?,
        _ => return None,
    };
    let name = match parts.first()?.to_ascii_lowercase().as_str() {
        "br" => "br",
        "gzip" | "x-gzip" => "gzip",
        "identity" => "identity",
        "*" => "*",
        _ => return None,
    };
    Some((name, quality))
}

/// Every spelling of a weight.
fn spellings(thousandths: u16) -> impl Iterator<Item = String> {
    let whole = format!("q={}.{:03}", thousandths / 1_000, thousandths % 1_000);
    let shorter = (0..=4).map(move |zeros| {
        let (kept, cut) = whole.split_at(whole.len() - zeros);
        (cut.bytes().all(|byte| byte == b'0') || cut == ".000").then(|| kept.to_owned())
    });
    shorter.flatten()
}
