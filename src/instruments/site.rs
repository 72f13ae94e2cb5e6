//! Metric handles for the site.

use http::StatusCode;
use metrics::Counter;

use super::labels::StatusClass;
use scoregate_observe::telemetry::metrics::{MetricFamily, MetricsRegistry, metric_label};

/// Metric handles for the site.
pub struct SiteInstruments {
    requests: MetricFamily<Counter, StatusClass>,
    pub(crate) links: MetricFamily<Counter, LinkRequest>,
    pub(crate) sign_ins: MetricFamily<Counter, SignInEnd>,
    pub(crate) changes: MetricFamily<Counter, AccountStep>,
    pub(crate) panics: Counter,
}

metric_label! {
    /// The result of a request for a link.
    pub(crate) enum LinkRequest: "result" {
        /// The mail is queued.
        Queued = "queued",
        /// The mailbox has had its links.
        MailboxLimit = "mailbox_limit",
        /// The network has had its links.
        NetworkLimit = "network_limit",
        /// The remaining links of all networks are reserved for those that have asked for less.
        Reserved = "reserved",
        /// All networks together have had their links.
        TotalLimit = "total_limit",
        /// The operator does not accept the domain.
        Domain = "domain",
    }
}

metric_label! {
    /// The result of a use of a link.
    pub(crate) enum SignInEnd: "result" {
        /// The owner of an account.
        SignedIn = "signed_in",
        /// A new account.
        SignedUp = "signed_up",
        /// The link is not valid.
        InvalidLink = "invalid_link",
        /// The account is suspended.
        Suspended = "suspended",
        /// The network has created its accounts with the mail domain.
        AccountLimit = "account_limit",
    }
}

metric_label! {
    /// A change that an owner made.
    pub(crate) enum AccountStep: "change" {
        /// Created an application.
        Create = "create",
        /// Described an application.
        Describe = "describe",
        /// Added a key to an application.
        AddKey = "add_key",
        /// Replaced the keys of an application.
        Rotate = "rotate",
        /// Cancelled the expiry of a key.
        KeepKey = "keep_key",
        /// Revoked a key.
        Revoke = "revoke",
        /// Chose notices.
        ChooseNotices = "choose_notices",
        /// Added, removed or changed a webhook.
        ChangeWebhook = "change_webhook",
        /// Closed an application.
        Close = "close",
        /// Deleted the account.
        Delete = "delete",
    }
}

impl SiteInstruments {
    /// Creates all handles.
    pub fn new(registry: &MetricsRegistry) -> Self {
        Self {
            requests: registry.counters("scoregate_site_requests_total"),
            links: registry.counters("scoregate_sign_in_links_total"),
            sign_ins: registry.counters("scoregate_sign_ins_total"),
            changes: registry.counters("scoregate_account_changes_total"),
            panics: registry.counter("scoregate_panics_total"),
        }
    }

    pub(crate) fn answered(&self, status: StatusCode) {
        self.requests.count(StatusClass::of(status));
    }
}
