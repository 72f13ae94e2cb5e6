//! Sends queued mail: claims emails, sends them over SMTP or writes them to a directory, and records the results.
//!
//! Every email is sent at least once. A retry has the same message id. The queue is in `store::mail_queue`. The code
//! that queues an email writes its text.

mod directory;
mod failure;
mod limited_stream;
mod message;
mod queue_monitor;
mod retry;
mod sender;
mod settings;
mod smtp;
mod smtp_tls;
mod transport;
mod webhooks;

pub use failure::UnusableTransport;
pub use message::SenderMailbox;
pub use queue_monitor::QueueMonitor;
pub use sender::MailSender;
pub use settings::{MailConfig, MailDelivery, SmtpLogin, SmtpServer, SmtpTls};
pub use transport::MailTransport;
pub use webhooks::{
    OperatorWebhook, PublicInternet, WebhookClient, WebhookNetwork, WebhookSender, WebhookUrl,
    challenge, new_webhook_secret,
};
