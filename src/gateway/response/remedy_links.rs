//! Addresses that refusals name: where a caller without a key can sign up, and where larger plans are available.

use http::{HeaderValue, StatusCode};

use crate::gateway::Refusal;
use scoregate_base::limits::LimitRule;
use scoregate_base::routes::bodies::{SIGN_UP, UPGRADE};

/// The addresses, as far as they are configured.
#[derive(Clone, Debug, Default)]
pub struct RemedyLinks {
    root: String,
    sign_up: Option<RemedyLink>,
    upgrade: Option<RemedyLink>,
}

/// An address with the member of the body that states it.
#[derive(Clone, Debug)]
pub(crate) struct RemedyLink {
    pub(crate) member: &'static str,
    pub(crate) url: String,
    /// The value of `Link`, including the link of the deprecation.
    pub(crate) header: HeaderValue,
}

impl RemedyLink {
    /// `None` if the address is not a valid header value.
    fn new(member: &'static str, url: String, relation: &str, other: &str) -> Option<Self> {
        let header = HeaderValue::try_from(format!("<{url}>; rel=\"{relation}\"{other}")).ok()?;
        Some(Self {
            member,
            url,
            header,
        })
    }
}

impl RemedyLinks {
    /// Creates the links from the public address of the service without a path (empty if it is unknown), the addresses
    /// of sign-up and larger plans, and the link that every response has.
    pub fn new(
        root: &str,
        sign_up: Option<String>,
        upgrade: Option<String>,
        of_every_response: Option<&HeaderValue>,
    ) -> Self {
        let other = match of_every_response.and_then(|link| link.to_str().ok()) {
            Some(link) => format!(", {link}"),
            None => String::new(),
        };
        Self {
            root: root.to_owned(),
            sign_up: sign_up.and_then(|url| RemedyLink::new(SIGN_UP, url, "help", &other)),
            upgrade: upgrade.and_then(|url| RemedyLink::new(UPGRADE, url, "payment", &other)),
        }
    }

    /// The public address of the service without a path; empty if it is unknown.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// The address for a caller with this refusal.
    pub(crate) fn of(&self, refusal: &Refusal) -> Option<&RemedyLink> {
        let status = refusal.code().row().status;
        if status == StatusCode::UNAUTHORIZED {
            return self.sign_up.as_ref();
        }
        let lacks_a_plan = status == StatusCode::FORBIDDEN
            || matches!(refusal, Refusal::Limited(rule) if *rule != LimitRule::Guard);
        self.upgrade.as_ref().filter(|_| lacks_a_plan)
    }
}
