//! Reads `operator.*`: the webhook of the operator.

use crate::config::config_reader::ConfigReader;
use crate::mail::{OperatorWebhook, WebhookUrl};
use scoregate_base::secret::SecretSetting;

use super::site::plain_url;

const WEBHOOK: &str = "operator.webhook";
const SECRET: &str = "operator.webhook_secret";
const SECRET_FILE: &str = "operator.webhook_secret_file";
/// `whsec_` and 24 bytes in Base64.
const MIN_SECRET: usize = 38;

/// `None` without a URL.
pub(in crate::config) fn read(reading: &mut ConfigReader<'_>) -> Option<OperatorWebhook> {
    let secret = reading.secret(SECRET, MIN_SECRET);
    if reading.maybe(WEBHOOK).is_none() {
        if secret.is_some() {
            reading.problem(WEBHOOK, None, format!("write the URL for {SECRET}"));
        }
        return None;
    }
    let url = plain_url(reading, WEBHOOK);
    let is_long = |secret: &SecretSetting| secret.current().expose().len() >= MIN_SECRET;
    // An unusable file of the secret is reported when it is read.
    if !secret.as_ref().is_some_and(is_long) && reading.maybe(SECRET_FILE).is_none() {
        let remedy =
            format!("write whsec_ and at least 24 random bytes in Base64, or {SECRET_FILE}");
        reading.problem(SECRET, None, remedy);
    }
    let url = url?;
    let usable = WebhookUrl::of_operator(&url);
    if usable.is_none() {
        reading.reject(
            WEBHOOK,
            "write a URL without a fragment and with at most 500 characters",
        );
    }
    Some(OperatorWebhook {
        url: usable?,
        secret: secret?,
    })
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, read_text, resolve};

    const SECRET: &str = "webhook_secret = \"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\"";

    fn read(text: &str) -> Result<Config, String> {
        let text = format!("upstream = \"built-in\"\n[operator]\n{text}");
        resolve(&read_text(&text).unwrap()).map_err(|problems| problems.to_string())
    }

    #[test]
    fn the_webhook_may_be_private_and_without_tls() {
        assert!(read("").unwrap().operator.is_none());
        for url in [
            "https://hooks.example.org/in",
            "http://10.0.0.7:9000/in?x=1",
            "http://[::1]:80",
            "http://ops/",
        ] {
            assert!(
                read(&format!("webhook = \"{url}\"\n{SECRET}"))
                    .unwrap()
                    .operator
                    .is_some(),
                "{url}"
            );
        }
    }

    #[test]
    fn unusable_webhooks_are_rejected_with_the_remedy_and_without_the_secret() {
        for (text, path, remedy) in [
            (
                SECRET.to_owned(),
                "operator.webhook:",
                "the URL for operator.webhook_secret",
            ),
            (
                "webhook = \"https://x.example\"".into(),
                "operator.webhook_secret:",
                "whsec_",
            ),
            (
                "webhook = \"https://x.example\"\nwebhook_secret = \"canary\"".into(),
                "operator.webhook_secret:",
                "24",
            ),
            (
                format!("webhook = \"ftp://x.example\"\n{SECRET}"),
                "operator.webhook:",
                "http://",
            ),
            (
                format!("webhook = \"https://me@x.example\"\n{SECRET}"),
                "operator.webhook:",
                "user name",
            ),
            (
                format!("webhook = \"https://x.example/#a\"\n{SECRET}"),
                "operator.webhook:",
                "fragment",
            ),
            (
                format!("webhook = 7\n{SECRET}"),
                "operator.webhook:",
                "string",
            ),
        ] {
            let found = read(&text).err().unwrap_or_default();
            assert!(
                found.starts_with(path) && found.contains(remedy),
                "{text}: {found}"
            );
            assert!(
                found.lines().count() == 1 && !found.contains("canary"),
                "{text}: {found}"
            );
        }
    }
}
