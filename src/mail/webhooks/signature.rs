//! Secrets and signatures of messages, and the challenge that the receiver of a new webhook must answer.

use std::time::Duration;

use data_encoding::{BASE64, HEXLOWER};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::json;
use sha2::Sha256;

use scoregate_base::clock::Wall;
use scoregate_base::secret::Secret;
use scoregate_store::{MailKind, NewMail, StoredWebhook};

/// The prefix of secrets.
const PREFIX: &str = "whsec_";
/// Time for which a challenge is repeated.
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
pub(super) fn signatures(webhook: &StoredWebhook, id: &str, now: Wall, body: &str) -> String {
    let content = format!("{id}.{}.{body}", now.seconds());
    let signature = |secret: &Secret| {
        let text = secret.expose();
        // Only a secret that was edited by hand has another form.
        let key = text.strip_prefix(PREFIX).and_then(|key| BASE64.decode(key.as_bytes()).ok());
        let key = key.unwrap_or_else(|| text.as_bytes().to_vec());
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("HMAC accepts a key of any length");
        mac.update(content.as_bytes());
        format!("v1,{}", BASE64.encode(&mac.finalize().into_bytes()))
    };
    webhook.secrets(now).map(signature).collect::<Vec<_>>().join(" ")
}
