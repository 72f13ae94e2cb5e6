//! Metric handles for the site.

use http::StatusCode;
use metrics::Counter;

use super::labels::StatusClass;
use crate::telemetry::metrics::{MetricFamily, MetricLabel, MetricsRegistry};

/// Metric handles for the site.
pub struct SiteInstruments {
    requests: MetricFamily<Counter, StatusClass>,
    links: MetricFamily<Counter, LinkRequest>,
    sign_ins: MetricFamily<Counter, SignInEnd>,
    changes: MetricFamily<Counter, AccountStep>,
    panics: Counter,
}

/// The result of a request for a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkRequest {
    /// The mail is queued.
    Queued,
    /// The mailbox has had its links.
    MailboxLimit,
    /// The network has had its links.
    NetworkLimit,
    /// The remaining links of all networks are reserved for those that have asked for less.
    Reserved,
    /// All networks together have had their links.
    TotalLimit,
    /// The operator does not accept the domain.
    Domain,
}

/// The result of a use of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignInEnd {
    /// The owner of an account.
    SignedIn,
    /// A new account.
    SignedUp,
    /// The link is not valid.
    InvalidLink,
    /// The account is suspended.
    Suspended,
    /// The network has created its accounts with the mail domain.
    AccountLimit,
}

/// A change that an owner made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccountStep {
    /// Created an application.
    Create,
    /// Described an application.
    Describe,
    /// Added a key to an application.
    AddKey,
    /// Replaced the keys of an application.
    Rotate,
    /// Cancelled the expiry of a key.
    KeepKey,
    /// Revoked a key.
    Revoke,
    /// Closed an application.
    Close,
    /// Deleted the account.
    Delete,
}

impl SiteInstruments {
    /// Creates all handles.
    pub fn new(registry: &MetricsRegistry) -> Self {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        Self {
            requests: registry
                .counters("scoregate_site_requests_total", &words(&["2xx", "3xx", "4xx", "5xx"])),
            links: registry.counters(
                "scoregate_sign_in_links_total",
                &words(&["queued", "mailbox_limit", "network_limit", "reserved", "total_limit", "domain"]),
            ),
            sign_ins: registry.counters(
                "scoregate_sign_ins_total",
                &words(&["signed_in", "signed_up", "invalid_link", "suspended", "account_limit"]),
            ),
            changes: registry.counters(
                "scoregate_account_changes_total",
                &words(&["create", "describe", "add_key", "rotate", "keep_key", "revoke", "close", "delete"]),
            ),
            panics: registry.counter("scoregate_panics_total"),
        }
    }

    pub(crate) fn answered(&self, status: StatusCode) {
        self.requests.count(StatusClass::of(status));
    }

    pub(crate) fn link_requested(&self, result: LinkRequest) {
        self.links.count(result);
    }

    pub(crate) fn signed_in(&self, result: SignInEnd) {
        self.sign_ins.count(result);
    }

    pub(crate) fn changed(&self, step: AccountStep) {
        self.changes.count(step);
    }

    pub(crate) fn panicked(&self) {
        self.panics.increment(1);
    }
}

impl MetricLabel for LinkRequest {
    const NAME: &'static str = "result";
    fn index(self) -> usize {
        self as usize
    }
}

impl MetricLabel for SignInEnd {
    const NAME: &'static str = "result";
    fn index(self) -> usize {
        self as usize
    }
}

impl MetricLabel for AccountStep {
    const NAME: &'static str = "change";
    fn index(self) -> usize {
        self as usize
    }
}
