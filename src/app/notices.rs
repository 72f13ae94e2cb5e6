//! The settings of mail from operators to owners.

use http::Uri;

use crate::accounts::NoticeSettings;
use crate::config::Config;

/// The domain of message ids without an address of the service.
const NO_DOMAIN: &str = "localhost";

/// Whether gateways with these settings send queued mail, and the domain of its message ids.
pub fn notice_settings(config: &Config) -> NoticeSettings {
    // There are no settings of a mail server, so no gateway sends mail.
    NoticeSettings { domain: domain(config.base_url.as_deref()), is_sent: false }
}

fn domain(base_url: Option<&str>) -> String {
    let host = base_url.and_then(|url| url.parse::<Uri>().ok()).and_then(|url| url.host().map(str::to_owned));
    host.filter(|host| !host.starts_with('[')).unwrap_or_else(|| NO_DOMAIN.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_ids_have_the_domain_of_the_service() {
        for (base_url, expected) in [
            (None, "localhost"),
            (Some("https://api.example.org"), "api.example.org"),
            (Some("http://gateway:8080/api/v1"), "gateway"),
            (Some("http://[::1]:8080"), "localhost"),
        ] {
            assert_eq!(domain(base_url), expected, "{base_url:?}");
        }
    }
}
