//! The two headers that may contain a key, one per line: `A` and a value of `Authorization`, or `X` and a value of
//! `X-API-Key`. The program must find the same key, or return the same error, as a literal reading of the contract.

use http::{HeaderMap, HeaderValue};
use scoregate::gateway::lab;
use scoregate_base::routes::codes::ErrorCode;

/// Fails if the program finds another key or returns another error.
pub fn check(bytes: &[u8]) {
    let (mut headers, mut tokens, mut keys) = (HeaderMap::new(), Vec::new(), Vec::new());
    for line in bytes.split(|byte| *byte == b'\n').take(8) {
        let Some((header, value)) = line.split_first() else {
            continue;
        };
        let Ok(value) = HeaderValue::from_bytes(value) else {
            continue;
        };
        match header {
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
    let found = lab::key(&headers)
        .map(str::to_owned)
        .map_err(|refusal| refusal.code());
    assert_eq!(found, expected(&tokens, &keys), "{headers:?}");
}

fn expected(tokens: &[Vec<u8>], keys: &[Vec<u8>]) -> Result<String, ErrorCode> {
    // A repeated header.
    if tokens.len() > 1 || keys.len() > 1 {
        return Err(ErrorCode::InvalidApiKey);
    }
    let mut values = Vec::new();
    for value in tokens {
        let blank = |byte: &u8| *byte == b' ' || *byte == b'\t';
        let mut parts = value.splitn(2, blank);
        // Another scheme contains no key.
        if parts.next().unwrap().eq_ignore_ascii_case(b"bearer") {
            values.push(parts.next().unwrap_or_default());
        }
    }
    values.extend(keys.iter().map(Vec::as_slice));
    // An empty value is no key, and no issued key contains other bytes than ASCII.
    let values: Vec<String> = values
        .into_iter()
        .map(|value| value.iter().map(|byte| char::from(*byte)).collect())
        .collect();
    let mut keys: Vec<&str> = values
        .iter()
        .map(|value| value.trim_matches([' ', '\t']))
        .filter(|value| !value.is_empty())
        .collect();
    if keys.iter().any(|key| !key.is_ascii()) {
        return Err(ErrorCode::InvalidApiKey);
    }
    // The same key in both headers counts once.
    keys.dedup();
    match keys.as_slice() {
        [] => Err(ErrorCode::ApiKeyRequired),
        [one] => Ok((*one).to_owned()),
        _ => Err(ErrorCode::InvalidApiKey),
    }
}
