//! Checks whether a host or the origin of a page belongs to this service. Clients choose `Host`, and after DNS
//! rebinding, browsers send foreign names.

use std::net::IpAddr;

use http::Uri;

/// Whether a host is an IP address, `localhost` or a configured name, with any port.
pub fn is_own_host(host: &str, names: &[String]) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port))
            if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            name
        }
        Some(_) | None => host,
    };
    // A trailing dot does not change the name.
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_listed = names.iter().any(|own| own.eq_ignore_ascii_case(name));
    ip_address(name).is_some() || name.eq_ignore_ascii_case("localhost") || is_listed
}

/// Whether a host, given without a port, can be reached only from this machine.
pub fn is_loopback(host: &str) -> bool {
    let is_own_address = ip_address(host).is_some_and(|address| address.is_loopback());
    is_own_address || host.eq_ignore_ascii_case("localhost")
}

/// Whether an origin belongs to this service. The origin must match the base URL. If the base URL is unknown (empty), the origin
/// must match the host. The host is trusted only if it does not depend on DNS.
pub fn is_own_origin(origin: &str, base_url: &str, host: Option<&str>) -> bool {
    let Some(sent) = PageOrigin::parse(origin) else {
        return false;
    };
    let own = if base_url.is_empty() {
        let host = host.filter(|host| is_own_host(host, &[]));
        host.and_then(|host| PageOrigin::parse(&format!("{}://{host}", sent.scheme)))
    } else {
        PageOrigin::parse(base_url)
    };
    own == Some(sent)
}

#[derive(PartialEq, Eq)]
struct PageOrigin {
    scheme: &'static str,
    host: String,
    port: u16,
}

impl PageOrigin {
    fn parse(url: &str) -> Option<Self> {
        let url: Uri = url.parse().ok()?;
        let (scheme, default_port) = match url.scheme_str()? {
            "http" => ("http", 80),
            "https" => ("https", 443),
            _ => return None,
        };
        let host = url.host()?;
        // A browser on this machine can reach the same port under several of these names.
        let host = if is_loopback(host) { "localhost" } else { host };
        Some(Self {
            scheme,
            host: host.to_ascii_lowercase(),
            port: url.port_u16().unwrap_or(default_port),
        })
    }
}

/// Parses a host that is an address, with or without brackets.
fn ip_address(host: &str) -> Option<IpAddr> {
    let inside = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    inside.unwrap_or(host).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_a_base_url_only_its_origin_is_own_whatever_the_host_is() {
        let is_own = |origin, host| {
            is_own_origin(origin, "https://api.example/api/v1", host)
                && is_own_origin(origin, "https://API.example:443", host)
        };
        for host in [None, Some("api.example"), Some("10.0.0.1:8080")] {
            assert!(is_own("https://api.example", host), "{host:?}");
        }
        for (origin, host) in [
            ("https://evil.example", "evil.example"),
            ("http://10.0.0.1:8080", "10.0.0.1:8080"),
            ("http://localhost:8080", "localhost:8080"),
            ("http://api.example", "api.example"),
            ("https://api.example:8443", "api.example"),
            ("https://api.example.evil.example", "api.example"),
            ("chrome-extension://api.example", "api.example"),
            ("api.example", "api.example"),
            ("null", "api.example"),
            ("", "api.example"),
        ] {
            assert!(!is_own(origin, Some(host)), "{origin} {host}");
        }
    }

    #[test]
    fn names_of_this_machine_are_one_host() {
        let is_own = |origin| is_own_origin(origin, "http://127.0.0.1:8080", None);
        assert!(is_own("http://localhost:8080") && is_own("http://[::1]:8080"));
        assert!(!is_own("http://localhost:8081") && !is_own("https://localhost:8080"));
    }

    #[test]
    fn without_a_base_url_a_host_counts_only_if_no_dns_server_decides_where_it_leads() {
        let is_own = |origin, host| is_own_origin(origin, "", host);
        for (origin, host) in [
            ("http://localhost:8080", "localhost:8080"),
            ("http://127.0.0.1:8080", "localhost:8080"),
            ("http://192.0.2.7", "192.0.2.7"),
            ("https://[2001:db8::1]", "[2001:db8::1]:443"),
        ] {
            assert!(is_own(origin, Some(host)), "{origin} {host}");
        }
        for (origin, host) in [
            ("http://evil.example:8080", Some("evil.example:8080")),
            (
                "http://localhost.evil.example",
                Some("localhost.evil.example"),
            ),
            ("http://192.0.2.7:81", Some("192.0.2.7")),
            ("http://192.0.2.7", Some("192.0.2.8")),
            ("http://localhost", None),
        ] {
            assert!(!is_own(origin, host), "{origin} {host:?}");
        }
    }
}
