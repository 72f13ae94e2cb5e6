//! Signs queued messages, and sends them to webhooks. Messages to owners are sent only over HTTPS and to public
//! addresses.
//!
//! The messages have the form of [Standard Webhooks](https://www.standardwebhooks.com).

mod failure;
mod network;
mod receiver;
mod request;
mod signature;
mod turns;
mod worker;

pub use network::{PublicInternet, WebhookNetwork};
pub use receiver::{OperatorWebhook, WebhookUrl};
pub use request::WebhookClient;
pub use signature::{challenge, new_webhook_secret};
pub use worker::WebhookSender;
