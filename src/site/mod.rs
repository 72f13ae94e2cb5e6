//! The pages of accounts: people sign up with an email address, and manage their applications and keys.
//!
//! Separate from the request path of the API, with separate limits. [`Site::handle`] is the shell, `answer` lists the
//! steps. The HTML is in `pages::account`, mail is sent by `mail`. Visitors are not trusted: forms need the token of
//! their session, and steps that cannot be undone need a recent session.

mod account;
mod application;
mod cookies;
mod form;
mod form_origin;
mod link_mail;
mod mailbox;
mod sign_in;
mod site_admission;
mod site_config;
mod site_refusal;
mod site_reply;
mod site_requests;
mod visit;
mod webhooks;

pub use mailbox::{EmailAddress, MailDomains, is_address_fragment, is_domain};
pub use site_config::SiteConfig;
pub use site_requests::Site;
