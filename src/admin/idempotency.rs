//! `Idempotency-Key`: a repeated command is not performed again, and gets the first reply.
//!
//! The idempotency key is stored with a random salt before the command is performed. A new API key is derived from
//! both. If the reply was not stored, a repeated command derives the same API key and finds it in the store. Stored
//! replies contain no API key.

use data_encoding::HEXLOWER;
use http::{StatusCode, request::Parts};
use serde_json::Value;

use crate::registry::RegistrarError;
use scoregate_base::{clock::Wall, keys::Digest};
use scoregate_store::KeyedRequest;

use super::{
    administration::Administration,
    command::AdminCommand,
    command_problem::{CommandProblem, CommandResult},
};

const REMEDY: &str = "Idempotency-Key: write 16 to 255 visible characters that nobody can guess, such as a \
    UUID; only commands that create or rotate a key or change a tier accept this header";

/// An idempotency key with the digest of its request.
pub struct IdempotencyKey {
    key: String,
    content: Digest,
}

impl IdempotencyKey {
    /// The key of a request, if it has one.
    pub fn from_request(head: &Parts, body: &[u8]) -> CommandResult<Option<Self>> {
        let Some(sent) = head.headers.get("idempotency-key") else {
            return Ok(None);
        };
        let key = sent.to_str().unwrap_or_default().to_owned();
        if !(16..=255).contains(&key.len()) {
            return Err(CommandProblem::bad(REMEDY));
        }
        let body = String::from_utf8_lossy(body);
        let content = Digest::of(&format!("{} {body}", head.uri.path()));
        Ok(Some(Self { key, content }))
    }

    /// Performs the command, unless it was performed with this key before.
    pub async fn perform(
        self,
        mut command: AdminCommand,
        administration: &Administration,
        actor: &str,
        at: Wall,
    ) -> CommandResult {
        let store = administration.reports.store();
        let mut salt = [0; 16];
        getrandom::fill(&mut salt).map_err(RegistrarError::from)?;
        let mut request = KeyedRequest {
            digest: Digest::of(&self.key).to_string(),
            content: self.content.to_string(),
            salt: HEXLOWER.encode(&salt),
            at,
            reply: None,
        };
        let first = store.keep_request(request.clone()).await?;
        if first.content != request.content {
            let error = "a different request was sent with this Idempotency-Key; use a new key";
            return Err(CommandProblem::new(StatusCode::UNPROCESSABLE_ENTITY, error));
        }
        let issued = administration
            .registrar
            .derive_key(&format!("{} {}", first.salt, self.key));
        if let Some(mut reply) = first.reply.and_then(|reply| reply.parse::<Value>().ok()) {
            if let Some(key) = reply.get_mut("key") {
                *key = issued.expose().into();
            }
            return Ok(reply);
        }
        if !command.take_key(&issued) {
            return Err(CommandProblem::bad(REMEDY));
        }
        let reply = command.perform(administration, actor).await?;
        let mut kept = reply.clone();
        if let Some(key) = kept.get_mut("key") {
            key.take();
        }
        request.reply = Some(kept.to_string());
        store.keep_request(request).await?;
        Ok(reply)
    }
}
