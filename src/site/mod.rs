//! The account pages, where people sign up with an email address and manage their applications and keys.
//!
//! The site is separate from the request path of the API and has separate limits. [`Site::handle`] wraps `answer`,
//! which lists the steps. The HTML is in `pages::account`. Mail is sent by `mail`. Visitors are not trusted: forms need
//! the token of their session, and irreversible steps need a recent session.

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
