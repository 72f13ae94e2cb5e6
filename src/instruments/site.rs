//! Metric handles for the site.

use http::StatusCode;
use metrics::Counter;

use super::{labels::StatusClass, metric_handles::metric_handles};
use scoregate_observe::telemetry::metrics::{MetricFamily, metric_label};

metric_handles! {
    /// Metric handles for the site.
    pub struct SiteInstruments;
    pub fn new(registry);

    requests: MetricFamily<Counter, StatusClass> = counters "scoregate_site_requests_total",
    pub(crate) links: MetricFamily<Counter, LinkRequest> = counters "scoregate_sign_in_links_total",
    pub(crate) sign_ins: MetricFamily<Counter, SignInEnd> = counters "scoregate_sign_ins_total",
    pub(crate) changes: MetricFamily<Counter, AccountStep> = counters "scoregate_account_changes_total",
    pub(crate) panics: Counter = counter "scoregate_panics_total",
}

metric_label! {
    /// The result of a request for a link.
    pub(crate) enum LinkRequest: "result" {
        /// The email was queued.
        Queued = "queued",
        /// The mailbox has used up its links.
        MailboxLimit = "mailbox_limit",
        /// The network has reached its link limit.
        NetworkLimit = "network_limit",
        /// The links that remain for all networks together are reserved for networks with fewer requests.
        Reserved = "reserved",
        /// All networks together have reached their link limit.
        TotalLimit = "total_limit",
        /// The operator does not accept the domain.
        Domain = "domain",
    }
}

metric_label! {
    /// The result of using a link.
    pub(crate) enum SignInEnd: "result" {
        /// The owner of an existing account signed in.
        SignedIn = "signed_in",
        /// A new account was created.
        SignedUp = "signed_up",
        /// The link is not valid.
        InvalidLink = "invalid_link",
        /// The account is suspended.
        Suspended = "suspended",
        /// The network has reached its limit of new accounts with this mail domain.
        AccountLimit = "account_limit",
    }
}

metric_label! {
    /// A change that an owner made.
    pub(crate) enum AccountStep: "change" {
        /// Created an application.
        Create = "create",
        /// Changed the description of an application.
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
    pub(crate) fn answered(&self, status: StatusCode) {
        self.requests.count(StatusClass::of(status));
    }
}
