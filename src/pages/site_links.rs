//! Contacts of the operator, and links to external documents.

/// The terms of the service, in a section of the docs page.
pub const TERMS: &str = "/docs#terms";

/// The operator's contacts and links to external documents. They are checked when the settings are read. URLs are
/// absolute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteLinks {
    /// Name of the contact.
    pub contact_name: Option<String>,
    /// Email address of the contact.
    pub contact_email: Option<String>,
    /// URL of the contact.
    pub contact_url: Option<String>,
    /// URL of the terms of service.
    pub terms_url: Option<String>,
    /// URL of further documentation.
    pub docs_url: Option<String>,
    /// URL where higher tiers are available.
    pub upgrade_url: Option<String>,
    /// Tiers, each with the URL where it can be bought.
    pub plans: Vec<(String, String)>,
    /// URL for vulnerability reports: `https:` or `mailto:`.
    pub security_contact: Option<String>,
    /// URL of the policy for vulnerability reports.
    pub security_policy_url: Option<String>,
}

impl SiteLinks {
    /// URL of the terms of service. It is relative if they are on the docs page.
    pub(super) fn terms(&self) -> &str {
        self.terms_url.as_deref().unwrap_or(TERMS)
    }
}
