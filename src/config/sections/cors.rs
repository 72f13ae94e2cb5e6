//! Reads `cors.*`: the origins whose pages may read responses. An origin must be written as browsers send it, because
//! otherwise it would never match.

use http::HeaderValue;

use crate::gateway::CorsPolicy;

use crate::config::config_reader::ConfigReader;

const PATH: &str = "cors.origins";
/// Maximum number of origins. Each request with an `Origin` header is compared with all of them.
const MOST_ORIGINS: usize = 64;

/// Reads the CORS policy. `None` if no origin is listed.
pub(in crate::config) fn read(reading: &mut ConfigReader<'_>) -> Option<CorsPolicy> {
    let max_age = reading.get("cors.max_age");
    let written: Vec<String> = reading.get(PATH);
    if written.iter().any(|origin| origin == "*") {
        if written.len() > 1 {
            reading.reject(
                PATH,
                "write [\"*\"] alone for any origin, or list origins without it",
            );
        }
        return Some(CorsPolicy::any(max_age));
    }
    reading.at_most(PATH, written.len(), MOST_ORIGINS, "origins");
    let mut origins: Vec<HeaderValue> = Vec::with_capacity(written.len());
    for text in written {
        match (wrong_with(&text), HeaderValue::from_str(&text)) {
            (None, Ok(origin)) if !origins.contains(&origin) => origins.push(origin),
            (None, Ok(_)) => reading.problem(PATH, Some(&text.into()), "write each origin once"),
            (wrong, _) => reading.problem(PATH, Some(&text.into()), wrong.unwrap_or(EXAMPLE)),
        }
    }
    (!origins.is_empty()).then(|| CorsPolicy::listed(origins, max_age))
}

const EXAMPLE: &str =
    "write an origin, such as \"https://dash.example.org\" or \"http://localhost:3000\"";

/// The remedy for a string that no browser sends as an origin.
fn wrong_with(text: &str) -> Option<&'static str> {
    let Some((scheme, authority)) = text.split_once("://") else {
        return Some(EXAMPLE);
    };
    let own_port = match scheme {
        "https" => "443",
        "http" => "80",
        _ if scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http") => {
            return Some("write it in lower case, as browsers send it");
        }
        _ => return Some("begin it with https:// or http://"),
    };
    if authority.contains(['/', '?', '#', '\\']) {
        return Some("remove the path and the trailing slash");
    }
    if authority.contains('@') {
        return Some("remove the user name");
    }
    if authority.contains('*') {
        return Some(
            "write each host name in full: patterns are not supported, only [\"*\"] for any origin",
        );
    }
    if !authority.is_ascii() {
        return Some("write the host name in ASCII, as browsers send it: \"xn--…\"");
    }
    if authority.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Some("write it in lower case, as browsers send it");
    }
    let (host, port) = host_and_port(authority);
    match port {
        Some(port) if port == own_port => {
            return Some("remove the port: it is the default of the scheme");
        }
        Some(port) if !is_port(port) => return Some("write a port from 1 to 65535"),
        Some(_) | None => {}
    }
    (!is_host(host)).then_some(EXAMPLE)
}

/// Splits an authority into the host, which may be an IPv6 address in brackets, and the port after the colon.
pub(in crate::config) fn host_and_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        Some(_) | None => (authority, None),
    }
}

pub(in crate::config) fn is_port(text: &str) -> bool {
    text.parse::<u16>()
        .is_ok_and(|port| port > 0 && port.to_string() == text)
}

pub(in crate::config) fn is_host(host: &str) -> bool {
    if let Some(inside) = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
    {
        // Browsers send an IPv6 address in its shortest form.
        return inside
            .parse()
            .is_ok_and(|address: std::net::Ipv6Addr| address.to_string() == inside);
    }
    is_host_name(host)
}

/// Whether a string is a host name or an IPv4 address.
pub(in crate::config) fn is_host_name(host: &str) -> bool {
    host.len() <= 253
        && host.split('.').all(|label| {
            !label.is_empty()
                && label
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        })
}

#[cfg(test)]
mod tests {
    use crate::config::tests::{accepted, with_variable};

    #[test]
    fn without_origins_there_is_no_cors() {
        for text in ["", "cors.origins = []", "cors.max_age = \"5m\""] {
            assert!(accepted(text).cors.is_none(), "{text}");
        }
    }

    #[test]
    fn origins_are_a_list_or_comma_separated_in_the_environment() {
        for text in [
            "cors.origins = [\"*\"]",
            "[cors]\norigins = [\"https://dash.example.org\", \"http://localhost:3000\"]\nmax_age = \"1d\"",
            "cors.origins = [\"http://[::1]:8000\", \"http://192.0.2.7\", \"https://xn--bcher-kva.example:8443\"]",
        ] {
            assert!(accepted(text).cors.is_some(), "{text}");
        }
        let read = |text: &str| format!("{:?}", with_variable("SCOREGATE_CORS_ORIGINS", text).cors);
        assert!(read("*").contains("Any"));
        let two = read("https://dash.example.org, http://localhost:3000");
        assert!(
            two.contains("https://dash.example.org") && two.contains("http://localhost:3000"),
            "{two}"
        );
        assert_eq!(read(""), "None");
    }
}
