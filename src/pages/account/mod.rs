//! The pages of an account as HTML: signing in, applications, keys and their use. Pure: what is shown is collected in
//! `site`. Everything that comes from a person is escaped.
//!
//! The pages work without JavaScript; only that of a new key has a script, which copies the key. They load nothing but the
//! icon. Paths and names of fields are those that `site` handles.

mod application;
mod fields;
mod frame;
mod keys;
mod link_mail;
mod overview;
mod quota;
mod sign_in;
mod usage_chart;
mod usage_tables;
mod views;

use super::content_policy::AllowedContent;

pub use fields::EXISTING;
pub use keys::{KEY_NAME, NEW_NAME, OVERLAP, REPLACE};
pub use link_mail::link_mail_html;
pub use views::{
    AccountView, ApplicationFields, CurrentUsage, FormProblem, IssuedKeyView, KeyFields, LinkForm,
    ListedApplication, MessagePage, OwnedApplicationView, SignInForm, SignedIn,
};

/// The style sheet of the pages: the text of their only `style` element.
pub const STYLE: &str = concat!(include_str!("../docs/page.css"), include_str!("account.css"));

/// The only script, on the page of a new key.
pub const COPY_SCRIPT: &str = include_str!("copy.js");

/// The service that the pages are about. All texts are escaped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountSite {
    /// Its name.
    pub service: String,
    /// The terms of use, one sentence each.
    pub terms: Vec<String>,
    /// Their version.
    pub terms_version: String,
    /// URL of the complete terms of service.
    pub terms_url: Option<String>,
    /// URL where higher tiers are available.
    pub upgrade_url: Option<String>,
    /// E-mail address of the operator.
    pub contact_email: Option<String>,
    /// Whether the service has a status page.
    pub has_status_page: bool,
    /// The address of an endpoint, for the example with curl.
    pub example_url: String,
    /// Maximum number of applications of an account.
    pub applications_per_account: u32,
}

impl AccountSite {
    /// The form for an e-mail address, for signing up and signing in.
    pub fn sign_in(&self, form: &SignInForm<'_>) -> String {
        sign_in::form(self, form)
    }

    /// The page after that form.
    pub fn link_sent(&self, email: &str) -> String {
        sign_in::link_sent(self, email)
    }

    /// The page of a link.
    pub fn link(&self, form: &LinkForm<'_>) -> String {
        sign_in::link(self, form)
    }

    /// The page of an account.
    pub fn account(&self, view: &AccountView<'_>) -> String {
        overview::page(self, view)
    }

    /// The page of an application.
    pub fn application(&self, view: &OwnedApplicationView<'_>) -> String {
        application::page(self, view)
    }

    /// The page with a new key.
    pub fn issued_key(&self, view: &IssuedKeyView<'_>) -> String {
        keys::issued(self, view)
    }

    /// The page that asks to sign in again before a step that cannot be undone.
    pub fn sign_in_again(&self, signed_in: &SignedIn<'_>) -> String {
        sign_in::again(self, signed_in)
    }

    /// A message.
    pub fn message(&self, page: &MessagePage<'_>) -> String {
        frame::message(self, page)
    }
}

/// `Content-Security-Policy` of the pages: browsers show them and send their forms to this service, and nothing else.
/// Computes a hash: for callers that store it.
pub fn content_security_policy() -> String {
    AllowedContent { style: STYLE, script: None, has_forms: true }.policy()
}

/// The policy of the page of a new key, which has a script.
pub fn policy_with_script() -> String {
    AllowedContent { style: STYLE, script: Some(COPY_SCRIPT), has_forms: true }.policy()
}

#[cfg(test)]
mod tests;
