//! The service that the account pages describe, and the style sheet and policy of the pages.

use crate::pages::content_policy::AllowedContent;

/// The style sheet of the pages, which is the text of their only `style` element.
pub const STYLE: &str = concat!(
    include_str!("../docs/page.css"),
    include_str!("account.css")
);

/// The only script. It is on the page that shows a new key.
pub const COPY_SCRIPT: &str = include_str!("copy.js");

/// The service that the pages describe. All strings are escaped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountSite {
    /// The name of the service.
    pub service: String,
    /// The terms of use, one sentence each.
    pub terms: Vec<String>,
    /// The version of the terms.
    pub terms_version: String,
    /// URL of the complete terms of service.
    pub terms_url: Option<String>,
    /// URL where higher tiers are available.
    pub upgrade_url: Option<String>,
    /// Tiers, each with the URL where it can be bought.
    pub plans: Vec<(String, String)>,
    /// Email address of the operator.
    pub contact_email: Option<String>,
    /// Whether the service has a status page.
    pub has_status_page: bool,
    /// The address of an endpoint, for the example with curl.
    pub example_url: String,
    /// Maximum number of applications of an account.
    pub applications_per_account: u32,
}

/// `Content-Security-Policy` of the pages. Allows browsers only to show the pages and to send forms to this service.
/// Computes a hash, so callers should store the result.
pub fn content_security_policy() -> String {
    AllowedContent {
        style: STYLE,
        script: None,
    }
    .policy()
}

/// The policy of the page that shows a new key. This page has a script.
pub fn policy_with_script() -> String {
    AllowedContent {
        style: STYLE,
        script: Some(COPY_SCRIPT),
    }
    .policy()
}
