//! Request targets, one per line, from a Free and a paid caller. The oracle is a slow, literal implementation of the
//! contract: the program must return the same error code or select the same document, and two targets must select the
//! same document only if they do so in the oracle.

use http::{Request, Uri};
use scoregate::gateway::lab;
use scoregate_base::{
    plans::Rights,
    routes::{DocumentKey, EndpointTable, codes::ErrorCode},
};

/// The paths below `/api/v1` and the parameters of each.
const ENDPOINTS: [(&[&str], &[&str]); 13] = [
    (&["models"], &["period", "sortBy"]),
    (&["models", ":id"], &[]),
    (&["models", ":id", "history"], &["period"]),
    (&["index"], &[]),
    (&["alerts"], &[]),
    (&["incidents"], &["period", "limit"]),
    (&["providers"], &[]),
    (&["analytics", "degradations"], &["period"]),
    (&["analytics", "recommendations"], &["period"]),
    (&["analytics", "provider-reliability"], &["period"]),
    (&["analytics", "transparency"], &["period"]),
    (&["drift", ":id"], &[]),
    (&["me"], &[]),
];

/// Fails if the program parses one of these targets differently.
pub fn check(bytes: &[u8]) {
    let mut selected: Vec<(DocumentKey, String)> = Vec::new();
    for target in bytes.split(|byte| *byte == b'\n').take(8) {
        let Ok(uri) = Uri::try_from(target) else {
            continue;
        };
        for (rights, is_paid) in [(Rights::FREE, false), (Rights::PAID, true)] {
            let request = Request::builder()
                .uri(uri.clone())
                .header("host", "a")
                .body(())
                .unwrap();
            let found =
                lab::document(&request.into_parts().0, rights).map_err(|refusal| refusal.code());
            let expected = read(target, is_paid);
            let shown = String::from_utf8_lossy(target);
            assert_eq!(found.clone().map(|key| key.address()), expected, "{shown}");
            if let (Ok(key), Ok(address)) = (found, expected) {
                assert_eq!(
                    DocumentKey::at(&address, &EndpointTable::default()).as_ref(),
                    Some(&key),
                    "{shown}"
                );
                selected.push((key, address));
            }
        }
    }
    for (key, address) in &selected {
        for (other, other_address) in &selected {
            assert_eq!(
                key == other,
                address == other_address,
                "{address} {other_address}"
            );
        }
    }
}

/// The address of the document that a target selects, or the error code.
fn read(target: &[u8], is_paid: bool) -> Result<String, ErrorCode> {
    let target = target.split(|byte| *byte == b'#').next().unwrap();
    let is_path = target.first() == Some(&b'/');
    // The length of a URL is that of its path. Measuring it is not worth a second parser.
    let is_long = match Uri::try_from(target) {
        Ok(uri) if !is_path => uri
            .path_and_query()
            .is_some_and(|path| path.as_str().len() > 2_048),
        _ => target.len() > 2_048,
    };
    if is_long {
        return Err(ErrorCode::UriTooLong);
    }
    let of_url = if is_path {
        None
    } else {
        Some(path_of_url(target).ok_or(ErrorCode::BadRequest)?)
    };
    let target = of_url.as_deref().unwrap_or(target);
    let target = std::str::from_utf8(target)
        .ok()
        .filter(|target| target.is_ascii())
        .ok_or(ErrorCode::BadRequest)?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let segments: Vec<&str> = path.split('/').collect();
    let ["", "api", "v1", below @ ..] = segments.as_slice() else {
        return Err(ErrorCode::NotFound);
    };
    let matches = |pattern: &[&str]| {
        pattern.len() == below.len()
            && pattern
                .iter()
                .zip(below)
                .all(|(part, segment)| match *part {
                    ":id" => !["", ".", ".."].contains(segment),
                    part => decoded(segment, false).is_some_and(|text| text == part.as_bytes()),
                })
    };
    let (pattern, names) = ENDPOINTS
        .into_iter()
        .find(|row| matches(row.0))
        .ok_or(ErrorCode::NotFound)?;
    let mut address = "/api/v1".to_owned();
    for (part, segment) in pattern.iter().zip(below) {
        let part = if *part == ":id" {
            id(segment)?
        } else {
            (*part).to_owned()
        };
        address += &format!("/{part}");
    }
    let mut values = Vec::new();
    for name in names {
        values.push((*name, value(query, name, is_paid)?));
    }
    if !is_paid && values.contains(&("period", "latest".into())) {
        return Err(ErrorCode::LatestRequiresPlan);
    }
    let pairs: Vec<String> = values
        .into_iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    Ok(if pairs.is_empty() {
        address
    } else {
        format!("{address}?{}", pairs.join("&"))
    })
}

/// Path and query of a URL whose authority is `a`.
fn path_of_url(target: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(target).ok()?;
    let (scheme, rest) = text.split_once("://")?;
    let default = match scheme.to_ascii_lowercase().as_str() {
        "http" => 80,
        "https" => 443,
        _ => return None,
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let (host, port) = authority.split_once(':').unwrap_or((authority, ""));
    let is_digits = port.bytes().all(|byte| byte.is_ascii_digit());
    let is_default = port.is_empty() || (is_digits && port.parse() == Ok(default));
    let is_same = host.eq_ignore_ascii_case("a") && is_default;
    let slash = if path.starts_with('/') { "" } else { "/" };
    is_same.then(|| format!("{slash}{path}").into_bytes())
}

fn id(segment: &str) -> Result<String, ErrorCode> {
    let bytes = decoded(segment, false).ok_or(ErrorCode::InvalidModelId)?;
    let text = String::from_utf8(bytes).map_err(|_| ErrorCode::InvalidModelId)?;
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "._:-".contains(c);
    let starts_valid = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    (starts_valid && text.len() <= 128 && text.chars().all(is_allowed))
        .then_some(text)
        .ok_or(ErrorCode::InvalidModelId)
}

/// The effective value of a parameter.
fn value(query: &str, name: &str, is_paid: bool) -> Result<String, ErrorCode> {
    let limits: Vec<String> = (1..=100).map(|number: u8| number.to_string()).collect();
    let words = |words: &[&str]| {
        words
            .iter()
            .map(|word| (*word).to_owned())
            .collect::<Vec<_>>()
    };
    let (allowed, default, code) = match name {
        "period" => (
            words(&["latest", "24h", "7d", "1m"]),
            if is_paid { "latest" } else { "24h" },
            ErrorCode::InvalidPeriod,
        ),
        "sortBy" => (
            words(&[
                "combined",
                "reasoning",
                "speed",
                "price",
                "coding",
                "7axis",
                "tooling",
            ]),
            "combined",
            ErrorCode::InvalidSortBy,
        ),
        _ => (limits, "50", ErrorCode::InvalidLimit),
    };
    let pairs = query
        .split('&')
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let given: Vec<&str> = pairs
        .filter(|(known, _)| decoded(known, true).is_some_and(|known| known == name.as_bytes()))
        .map(|(_, value)| value)
        .collect();
    match given.as_slice() {
        [] => Ok(default.into()),
        [one] => {
            let text = decoded(one, true)
                .and_then(|bytes| String::from_utf8(bytes).ok())
                .ok_or(code)?;
            allowed.contains(&text).then_some(text).ok_or(code)
        }
        _ => Err(code),
    }
}

/// Percent-decodes once; `None` if any escape is invalid.
fn decoded(text: &str, plus_is_space: bool) -> Option<Vec<u8>> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, after @ ..] = rest {
        rest = after;
        match (first, after) {
            (b'%', [high, low, after @ ..])
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                let digits = [*high, *low];
                bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap());
                rest = after;
            }
            (b'%', _) => return None,
            (b'+', _) if plus_is_space => bytes.push(b' '),
            (other, _) => bytes.push(*other),
        }
    }
    Some(bytes)
}
