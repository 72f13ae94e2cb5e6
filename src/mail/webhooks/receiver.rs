//! The receiver of messages: its URL, and the secrets that sign them.

use http::Uri;
use rustls::pki_types::ServerName;

use scoregate_base::{
    clock::Wall,
    secret::{Secret, SecretSetting},
};
use scoregate_store::{OPERATOR, StoredWebhook};

const PORTS: [u16; 2] = [443, 8443];
const MAX_LENGTH: usize = 500;

/// The URL of a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookUrl(Uri);

/// The webhook of the operator for messages about sign-ups and suspects.
#[derive(Clone, Debug)]
pub struct OperatorWebhook {
    /// The URL of the webhook.
    pub url: WebhookUrl,
    /// The secret that signs messages.
    pub secret: SecretSetting,
}

/// The receiver of a message.
pub struct Receiver {
    /// `None` if the URL is not usable.
    pub url: Option<WebhookUrl>,
    /// The secrets in use, newest first.
    pub secrets: Vec<Secret>,
    /// The webhook, if it belongs to an owner. Its messages are sent only to public addresses, because the owner
    /// chooses the host.
    pub webhook: Option<StoredWebhook>,
}

impl WebhookUrl {
    /// Parses the URL of an owner's webhook, which must have `https`, a host name, and port 443 or 8443. User names and
    /// fragments are rejected.
    pub fn parse(text: &str) -> Option<Self> {
        let url = Self::of_operator(text).filter(|_| !text.contains(['@', '\\']))?;
        let is_name = matches!(ServerName::try_from(url.host()), Ok(ServerName::DnsName(_)));
        let is_usable = url.has_tls() && is_name && PORTS.contains(&url.port());
        (is_usable && has_top_level_domain(url.host())).then_some(url)
    }

    /// Parses the URL of the operator's webhook, which may also use HTTP without TLS or have an IP address as its host.
    pub fn of_operator(text: &str) -> Option<Self> {
        let is_plain = text.len() <= MAX_LENGTH && text.bytes().all(|byte| byte.is_ascii_graphic());
        let url: Uri = text
            .parse()
            .ok()
            .filter(|_| is_plain && !text.contains('#'))?;
        // If the port is too large or not a number, the library treats it as part of the authority and reports no port.
        let has_port = url.authority()?.as_str() != url.host()?;
        let is_http = matches!(url.scheme_str(), Some("http" | "https"));
        (is_http && has_port == url.port().is_some()).then_some(Self(url))
    }

    pub(super) fn has_tls(&self) -> bool {
        self.0.scheme_str() == Some("https")
    }

    /// The host, without the brackets of an IPv6 address.
    pub(super) fn host(&self) -> &str {
        self.0
            .host()
            .unwrap_or_default()
            .trim_start_matches('[')
            .trim_end_matches(']')
    }

    pub(super) fn port(&self) -> u16 {
        let usual = if self.has_tls() { 443 } else { 80 };
        self.0.port().map_or(usual, |port| port.as_u16())
    }

    /// The value of the `Host` header: the host, with the port unless it is the default.
    pub(super) fn authority(&self) -> String {
        let host = self.0.host().unwrap_or_default();
        let port = self.port();
        let is_usual = matches!((self.has_tls(), port), (true, 443) | (false, 80));
        if is_usual {
            host.to_owned()
        } else {
            format!("{host}:{port}")
        }
    }

    pub(super) fn path(&self) -> &str {
        self.0
            .path_and_query()
            .map_or("/", http::uri::PathAndQuery::as_str)
    }
}

impl Receiver {
    /// The id of the owner who chose the URL, or [`OPERATOR`].
    pub fn owner(&self) -> String {
        let webhook = self.webhook.as_ref();
        webhook.map_or_else(|| OPERATOR.to_owned(), |webhook| webhook.owner.to_string())
    }

    pub fn host(&self) -> &str {
        self.url.as_ref().map_or("", WebhookUrl::host)
    }

    pub fn of_owner(webhook: StoredWebhook, now: Wall) -> Self {
        let url = WebhookUrl::parse(&webhook.url);
        let secrets = webhook.secrets(now).cloned().collect();
        Self {
            url,
            secrets,
            webhook: Some(webhook),
        }
    }

    /// The receiver of messages to the operator. There is no URL if the settings of this gateway contain no webhook.
    pub fn of_operator(webhook: Option<&OperatorWebhook>) -> Self {
        let url = webhook.map(|webhook| webhook.url.clone());
        let secrets = webhook
            .map(|webhook| webhook.secret.current())
            .into_iter()
            .collect();
        Self {
            url,
            secrets,
            webhook: None,
        }
    }
}

/// Whether a name has a top-level domain that can have public hosts. A last label that begins with a digit is part of
/// an IP address in a form such as `0x7f.0x1`, and `localhost` resolves to loopback. A name with a trailing dot is
/// rejected, because its last label is empty.
fn has_top_level_domain(host: &str) -> bool {
    host.rsplit_once('.').is_some_and(|(_, last)| {
        last.starts_with(|first: char| first.is_ascii_alphabetic())
            && !last.eq_ignore_ascii_case("localhost")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_https_urls_of_host_names_at_two_ports_are_accepted() {
        for (text, host, port) in [
            ("https://hooks.example.org", "hooks.example.org", 443),
            (
                "https://hooks.example.org:443/in?x=1",
                "hooks.example.org",
                443,
            ),
            (
                "https://hooks.example.org:8443/a/b",
                "hooks.example.org",
                8443,
            ),
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
            "https://localhost./",
            "https://hooks.LocalHost/",
            "https://0x7f.0x1/",
            "https://0x7f.1/",
            "https://0177.0.0.01/",
            "https://127.1/",
            "https://127.0.0.1./",
            "https://1.2.3.0X4/",
            "https://hooks.example.org./",
            "https://b\u{fc}cher.example/",
            &format!("https://hooks.example.org/{}", "x".repeat(500)),
        ] {
            assert_eq!(WebhookUrl::parse(text), None, "{text}");
        }
    }
}
