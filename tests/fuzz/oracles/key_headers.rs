//! The two headers that a key may stand in, a line each: `A` and a value of `Authorization`, `X` and one of `X-API-Key`.
//! The key that is found, or the refusal, is the one that the contract's own sentences lead to.

use http::{HeaderMap, HeaderValue};
use scoregate::gateway::cache_hit;
use scoregate::routes::codes::ErrorCode;

/// Fails if the program finds another key, or none, or one where there is none.
pub fn check(bytes: &[u8]) {
    let (mut headers, mut tokens, mut keys) = (HeaderMap::new(), Vec::new(), Vec::new());
    for line in bytes.split(|byte| *byte == b'\n').take(8) {
        let Some((which, value)) = line.split_first() else { continue };
        let Ok(value) = HeaderValue::from_bytes(value) else { continue };
        match which {
            b'A' => {
                tokens.push(value.as_bytes().to_vec());
                headers.append("authorization", value);
            }
            b'X' => {
                keys.push(value.as_bytes().to_vec());
                headers.append("x-api-key", value);
            }
            _ => {}
        }
    }
    let found = cache_hit::key(&headers).map(str::to_owned).map_err(|refusal| refusal.code());
    assert_eq!(found, expected(&tokens, &keys), "{headers:?}");
}

fn expected(tokens: &[Vec<u8>], keys: &[Vec<u8>]) -> Result<String, ErrorCode> {
    // Either header twice.
    if tokens.len() > 1 || keys.len() > 1 {
        return Err(ErrorCode::InvalidApiKey);
    }
    let mut said = Vec::new();
    for value in tokens {
        let blank = |byte: &u8| *byte == b' ' || *byte == b'\t';
        let mut parts = value.splitn(2, blank);
        // Another scheme is no key, whatever follows it.
        if parts.next().unwrap().eq_ignore_ascii_case(b"bearer") {
            said.push(parts.next().unwrap_or_default());
        }
    }
    said.extend(keys.iter().map(Vec::as_slice));
    // An empty one is none; one that is no text is none that anybody was given.
    let said: Vec<String> =
        said.into_iter().map(|value| value.iter().map(|byte| char::from(*byte)).collect()).collect();
    let mut said: Vec<&str> =
        said.iter().map(|value| value.trim_matches([' ', '\t'])).filter(|value| !value.is_empty()).collect();
    if said.iter().any(|value| !value.is_ascii()) {
        return Err(ErrorCode::InvalidApiKey);
    }
    // Both, equal: one.
    said.dedup();
    match said.as_slice() {
        [] => Err(ErrorCode::ApiKeyRequired),
        [one] => Ok((*one).to_owned()),
        _ => Err(ErrorCode::InvalidApiKey),
    }
}
