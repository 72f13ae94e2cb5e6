//! The URL of a webhook.

use http::Uri;
use rustls::pki_types::ServerName;

const PORTS: [u16; 2] = [443, 8443];
const MAX_LENGTH: usize = 500;

/// The URL of a webhook: `https`, a host name, and port 443 or 8443.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookUrl(Uri);

impl WebhookUrl {
    /// The URL in a text, if it can be used. Addresses instead of names are refused, and user names and fragments too.
    pub fn parse(text: &str) -> Option<Self> {
        let is_plain = text.len() <= MAX_LENGTH && text.bytes().all(|byte| byte.is_ascii_graphic());
        let url: Uri = text.parse().ok().filter(|_| is_plain && !text.contains(['#', '@', '\\']))?;
        // A port that is not a number or is too large is part of the authority, and no port.
        let has_port = url.authority()?.as_str() != url.host()?;
        let is_https = url.scheme_str() == Some("https") && has_port == url.port().is_some();
        let url = Self(url);
        let is_name = matches!(ServerName::try_from(url.host()), Ok(ServerName::DnsName(_)));
        (is_https && is_name && url.host().contains('.') && PORTS.contains(&url.port())).then_some(url)
    }

    pub(super) fn host(&self) -> &str {
        self.0.host().unwrap_or_default()
    }

    pub(super) fn port(&self) -> u16 {
        self.0.port().map_or(443, |port| port.as_u16())
    }

    /// The host for the header, with a port that is not the usual one.
    pub(super) fn authority(&self) -> String {
        if self.port() == 443 { self.host().to_owned() } else { format!("{}:{}", self.host(), self.port()) }
    }

    pub(super) fn path(&self) -> &str {
        self.0.path_and_query().map_or("/", http::uri::PathAndQuery::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_https_urls_of_host_names_at_two_ports_are_accepted() {
        for (text, host, port) in [
            ("https://hooks.example.org", "hooks.example.org", 443),
            ("https://hooks.example.org:443/in?x=1", "hooks.example.org", 443),
            ("https://hooks.example.org:8443/a/b", "hooks.example.org", 8443),
        ] {
            let url = WebhookUrl::parse(text).unwrap();
            assert_eq!((url.host(), url.port()), (host, port));
        }
        for text in [
            "",
            "hooks.example.org",
            "/in",
            "http://hooks.example.org/",
            "https://hooks.example.org:80/",
            "https://hooks.example.org:0/",
            "https://hooks.example.org:99999/",
            "https://hooks.example.org:x/",
            "https://hooks.example.org:/",
            "https://ann:pw@hooks.example.org/",
            "https://hooks.example.org/#part",
            "https://hooks.example.org/a b",
            "https://127.0.0.1/",
            "https://8.8.8.8/",
            "https://[::1]/",
            "https://2130706433/",
            "https://localhost/",
            "https://b\u{fc}cher.example/",
            &format!("https://hooks.example.org/{}", "x".repeat(500)),
        ] {
            assert_eq!(WebhookUrl::parse(text), None, "{text}");
        }
    }
}
