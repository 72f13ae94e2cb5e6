//! Reads `upstream.credential_header` and `[upstream.headers]`: headers that every request to the backend has. Headers
//! of client requests are not sent, because fetches are shared.

use http::{HeaderMap, HeaderName, HeaderValue};
use toml::Value;

use crate::config::{
    config_reader::ConfigReader, secrets::header_file, tables::UPSTREAM_HEADERS as HEADERS,
};

const CREDENTIAL: &str = "upstream.credential_header";
/// Headers that the gateway or the protocol sets.
const RESERVED: [&str; 23] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-length",
    "content-type",
    "expect",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "range",
    "te",
    "traceparent",
    "tracestate",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
];

/// The header of the credential.
pub fn of_credential(reading: &mut ConfigReader<'_>) -> HeaderName {
    let text: String = reading.get(CREDENTIAL);
    let has_credential = ["upstream.credential", "upstream.credential_file"]
        .iter()
        .any(|path| reading.maybe(path).is_some());
    if reading.maybe(CREDENTIAL).is_some() && !has_credential {
        reading.reject(
            CREDENTIAL,
            "set upstream.credential too, or remove this setting",
        );
    }
    name(&text).unwrap_or_else(|remedy| {
        reading.reject(CREDENTIAL, remedy);
        http::header::AUTHORIZATION
    })
}

/// The fixed headers.
pub fn fixed(reading: &mut ConfigReader<'_>, credential: Option<&HeaderName>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let Some(given) = reading.maybe(HEADERS) else {
        return headers;
    };
    let Some(table) = given.as_table() else {
        reading.problem(HEADERS, None, "write it as a table of names and values");
        return headers;
    };
    for (written, value) in table {
        let read = name(written).and_then(|name| match credential {
            Some(credential) if *credential == name => {
                Err("remove it: it is the header of upstream.credential".to_owned())
            }
            _ if headers.contains_key(&name) => {
                Err("remove it: the header is given twice".to_owned())
            }
            Some(_) | None => Ok((name, value_of(value)?)),
        });
        match read {
            Ok((name, value)) => drop(headers.insert(name, value)),
            Err(remedy) => reading.problem(&format!("{HEADERS}.{written}"), None, remedy),
        }
    }
    headers
}

fn name(text: &str) -> Result<HeaderName, String> {
    let name: HeaderName = text
        .parse()
        .map_err(|_| "write the name of a header, such as X-Service-Key".to_owned())?;
    if RESERVED.contains(&name.as_str()) {
        return Err("choose another header: the gateway or the protocol sets this one".into());
    }
    Ok(name)
}

/// A string, or the content of a file.
fn value_of(value: &Value) -> Result<HeaderValue, String> {
    // `secrets` reports a file that could not be read.
    let text = value.as_str().or_else(|| header_file(value).map(|_| ""));
    let text = text.ok_or_else(|| "write a string, or { file = \"PATH\" }".to_owned())?;
    let mut value = HeaderValue::try_from(text)
        .map_err(|_| "use only characters that are allowed in a header".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}
