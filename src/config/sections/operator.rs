//! Reads `operator.*`: the webhook of the operator.

use crate::{
    config::config_reader::ConfigReader,
    mail::{OperatorWebhook, WebhookUrl},
};

use super::site::plain_url;

const WEBHOOK: &str = "operator.webhook";
const SECRET: &str = "operator.webhook_secret";
const SECRET_FILE: &str = "operator.webhook_secret_file";
/// Minimum length of a secret: `whsec_` and 24 bytes in Base64.
const MIN_SECRET: usize = 38;

/// Reads the operator's webhook. `None` if no URL is set.
pub(in crate::config) fn read(reading: &mut ConfigReader<'_>) -> Option<OperatorWebhook> {
    let secret = reading.secret(SECRET, MIN_SECRET);
    if reading.maybe(WEBHOOK).is_none() {
        if secret.is_some() {
            reading.problem(WEBHOOK, None, format!("write the URL for {SECRET}"));
        }
        return None;
    }
    let url = plain_url(reading, WEBHOOK);
    // An unusable secret file is reported when it is read.
    if secret
        .as_ref()
        .is_none_or(|secret| secret.current().expose().len() < MIN_SECRET)
        && reading.maybe(SECRET_FILE).is_none()
    {
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
    use crate::config::tests::accepted;

    #[test]
    fn the_webhook_may_be_private_and_without_tls() {
        assert!(accepted("").operator.is_none());
        for url in [
            "https://hooks.example.org/in",
            "http://10.0.0.7:9000/in?x=1",
            "http://[::1]:80",
            "http://ops/",
        ] {
            let text = format!(
                "[operator]\nwebhook = \"{url}\"\nwebhook_secret = \"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\""
            );
            assert!(accepted(&text).operator.is_some(), "{url}");
        }
    }
}
