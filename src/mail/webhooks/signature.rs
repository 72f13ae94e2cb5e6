//! Secrets and signatures of messages, and the challenge that verifies the receiver of a new webhook.

use std::time::Duration;

use data_encoding::{BASE64, HEXLOWER};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::json;
use sha2::Sha256;

use scoregate_base::{clock::Wall, secret::Secret};
use scoregate_store::{MailKind, NewMail};

/// The prefix of secrets.
const PREFIX: &str = "whsec_";
/// Time during which delivery of a challenge is retried.
const CHALLENGE_VALID: Duration = Duration::from_mins(15);

/// A random secret.
pub fn new_webhook_secret() -> Result<Secret, getrandom::Error> {
    let mut key = [0; 24];
    getrandom::fill(&mut key)?;
    Ok(Secret::new(format!("{PREFIX}{}", BASE64.encode(&key))))
}

/// The message with a random challenge for the webhook with this id.
pub fn challenge(webhook: &str, now: Wall) -> Result<NewMail, getrandom::Error> {
    let mut token = [0; 16];
    getrandom::fill(&mut token)?;
    let token = HEXLOWER.encode(&token);
    let body = json!({
        "type": "webhook.verification", "timestamp": now.rfc3339(), "data": {"challenge": token},
    });
    Ok(NewMail {
        kind: MailKind::Webhook,
        recipient: webhook.to_owned(),
        message_id: format!("challenge.{token}@{webhook}"),
        subject: token,
        text: body.to_string(),
        html: String::new(),
        webhook: String::new(),
        created_at: now,
        expires_at: now.plus(CHALLENGE_VALID),
    })
}

/// The signatures of a message, one for each secret in use.
pub fn signatures(secrets: &[Secret], id: &str, now: Wall, body: &str) -> String {
    let content = format!("{id}.{}.{body}", now.seconds());
    let signatures = secrets.iter().map(|secret| {
        // The secret of the operator may have another form.
        let text = secret.expose().trim_start_matches(PREFIX).as_bytes();
        let key = BASE64.decode(text).unwrap_or_else(|_| text.to_vec());
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&key).expect("HMAC accepts a key of any length");
        mac.update(content.as_bytes());
        format!("v1,{}", BASE64.encode(&mac.finalize().into_bytes()))
    });
    signatures.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_that_of_the_published_example_of_standard_webhooks() {
        let secret = Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".into());
        let at = Wall::from_seconds(1_614_265_330);
        let signed = signatures(
            &[secret],
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            at,
            "{\"test\": 2432232314}",
        );
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn secrets_are_random_and_have_the_prefix_and_the_length_of_the_specification() {
        let [one, other] = [(); 2].map(|()| new_webhook_secret().unwrap());
        assert_ne!(one.expose(), other.expose());
        let key = BASE64
            .decode(one.expose().strip_prefix("whsec_").unwrap().as_bytes())
            .unwrap();
        assert_eq!(key.len(), 24);
    }
}
