//! Settings of the site.

use std::net::SocketAddr;

use crate::pages::account::AccountSite;
use scoregate_base::address::Proxies;

use super::mailbox::MailDomains;

/// Settings of the site.
#[derive(Clone, Debug, Default)]
pub struct SiteConfig {
    /// The public address, without a trailing slash. Email links begin with it. If it is empty, the address of the port
    /// is used.
    pub root: String,
    /// The tier of new applications.
    pub tier: String,
    /// Maximum number of applications per account.
    pub applications_per_account: u32,
    /// Maximum number of email links that a network can request in an hour.
    pub links_per_hour: u32,
    /// Maximum number of new accounts per mail domain that a network can create in a day.
    pub accounts_per_day: u32,
    /// Maximum number of email links per minute for all networks together.
    pub links_per_minute: u32,
    /// The accepted mail domains.
    pub domains: MailDomains,
    /// Whether owners can have webhooks.
    pub webhooks: bool,
    /// Whether the operator gets a message about each new account.
    pub tells_operator: bool,
    /// Trusted proxies.
    pub proxies: Proxies,
    /// The content of the pages.
    pub pages: AccountSite,
}

impl SiteConfig {
    /// Sets the public address to the address of the port if none is configured.
    #[must_use]
    pub fn at(mut self, port: SocketAddr) -> Self {
        if self.root.is_empty() {
            self.root = format!("http://{port}");
            self.pages.example_url.insert_str(0, &self.root);
        }
        self
    }

    /// Whether clients use HTTPS.
    pub(super) fn is_https(&self) -> bool {
        self.root.starts_with("https://")
    }
}
