//! The settings for mail to owners.

use http::Uri;

use crate::{
    config::Config,
    registry::{NoticeSettings, NoticeTexts},
};

/// The domain of message ids if neither the service's address nor a sender is set.
const NO_DOMAIN: &str = "localhost";

/// Whether gateways with these settings send queued mail, and the domain of message ids.
pub fn notice_settings(config: &Config) -> NoticeSettings {
    let sender = config.mail.as_ref().map(|mail| mail.from.domain());
    NoticeSettings {
        domain: domain(config.base_url.as_deref(), sender),
        is_sent: sender.is_some(),
        root: config
            .site
            .as_ref()
            .map_or_else(String::new, |site| site.root.clone()),
    }
}

/// The texts of notices to owners, if there are account pages and mail is sent.
pub fn notice_texts(config: &Config) -> Option<NoticeTexts> {
    let NoticeSettings {
        domain,
        is_sent,
        root,
    } = notice_settings(config);
    let has_pages = !root.is_empty();
    (is_sent && has_pages).then(|| NoticeTexts {
        service: config.service.clone(),
        root,
        domain,
        webhooks: config.site.as_ref().is_some_and(|site| site.webhooks),
    })
}

fn domain(base_url: Option<&str>, sender: Option<&str>) -> String {
    let host = base_url
        .and_then(|url| url.parse::<Uri>().ok())
        .and_then(|url| url.host().map(str::to_owned));
    let host = host.filter(|host| !host.starts_with('['));
    host.unwrap_or_else(|| {
        sender
            .filter(|domain| !domain.starts_with('['))
            .unwrap_or(NO_DOMAIN)
            .into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_ids_have_the_domain_of_the_service_or_of_the_sender() {
        for (base_url, sender, expected) in [
            (None, None, "localhost"),
            (None, Some("example.org"), "example.org"),
            (None, Some("[192.0.2.1]"), "localhost"),
            (
                Some("https://api.example.org"),
                Some("example.org"),
                "api.example.org",
            ),
            (Some("http://gateway:8080/api/v1"), None, "gateway"),
            (
                Some("http://[::1]:8080"),
                Some("example.org"),
                "example.org",
            ),
        ] {
            assert_eq!(
                domain(base_url, sender),
                expected,
                "{base_url:?} {sender:?}"
            );
        }
    }
}
