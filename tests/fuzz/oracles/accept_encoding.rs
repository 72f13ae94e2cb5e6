//! Lines of `Accept-Encoding`: what is chosen is what a client likes best of what it named, by q-values that are looked up
//! among all there are; never what it ruled out, never what it did not name.

use std::collections::HashMap;

use http::HeaderValue;
use scoregate::cache::{ContentCoding, negotiate};

/// Fails if the program chooses another one.
pub fn check(bytes: &[u8]) {
    let lines: Vec<HeaderValue> = bytes
        .split(|byte| *byte == b'\n')
        .take(8)
        .filter_map(|line| HeaderValue::from_bytes(line).ok())
        .collect();
    let chosen = negotiate(lines.iter());
    // Of one name, what was said last.
    let mut wishes: HashMap<&str, u16> = HashMap::new();
    let items = lines.iter().filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(','));
    for (name, quality) in items.filter_map(wish) {
        wishes.insert(name, quality);
    }
    let of = |name: &str| wishes.get(name).or(wishes.get("*")).copied().unwrap_or(0);
    let (brotli, gzip, identity) = (of("br"), of("gzip"), wishes.get("identity").copied().unwrap_or(0));
    let best = brotli.max(gzip).max(identity);
    let expected = match best {
        0 => ContentCoding::Identity,
        best if best == brotli => ContentCoding::Brotli,
        best if best == gzip => ContentCoding::Gzip,
        _ => ContentCoding::Identity,
    };
    assert_eq!(chosen, expected, "{lines:?}");
}

/// A name that we know, and how much it is wished for; nothing if the item is malformed.
fn wish(item: &str) -> Option<(&'static str, u16)> {
    let parts: Vec<&str> = item.split(';').map(|part| part.trim_matches([' ', '\t'])).collect();
    let quality = match parts.as_slice() {
        [_] => 1_000,
        [_, weight] => (0..=1_000)
            .find(|thousandths| spellings(*thousandths).any(|one| one.eq_ignore_ascii_case(weight)))?,
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

/// Every way to write so many thousandths.
fn spellings(thousandths: u16) -> impl Iterator<Item = String> {
    let whole = format!("q={}.{:03}", thousandths / 1_000, thousandths % 1_000);
    let shorter = (0..=4).map(move |zeros| {
        let (kept, cut) = whole.split_at(whole.len() - zeros);
        (cut.bytes().all(|byte| byte == b'0') || cut == ".000").then(|| kept.to_owned())
    });
    shorter.flatten()
}
