//! Addresses that refusals name: where a caller without a key can sign up, and where larger plans are available.

use http::{HeaderValue, StatusCode};

use scoregate_base::limits::LimitRule;
use scoregate_base::routes::bodies::{SIGN_UP, UPGRADE};

use crate::gateway::refusal::Refusal;

/// The addresses, as far as they are configured.
#[derive(Clone, Debug, Default)]
pub struct RemedyLinks {
    root: String,
    sign_up: Option<RemedyLink>,
    upgrade: Option<RemedyLink>,
}

/// An address with the member of the body that states it.
#[derive(Clone, Debug)]
pub(in crate::gateway) struct RemedyLink {
    pub(in crate::gateway) member: &'static str,
    pub(in crate::gateway) url: String,
    /// The value of `Link`, that of the deprecation included.
    pub(in crate::gateway) header: HeaderValue,
}

impl RemedyLinks {
    /// The public address of the service without a path, empty if it is unknown; then those of sign-up and larger plans,
    /// and the link that every response has.
    pub fn new(
        root: &str,
        sign_up: Option<String>,
        upgrade: Option<String>,
        of_every_response: Option<&HeaderValue>,
    ) -> Self {
        let other = of_every_response.and_then(|link| link.to_str().ok());
        let other = other.map(|link| format!(", {link}")).unwrap_or_default();
        let link = |member, url: Option<String>, relation: &str| {
            let url = url?;
            let header =
                HeaderValue::try_from(format!("<{url}>; rel=\"{relation}\"{other}")).ok()?;
            Some(RemedyLink {
                member,
                url,
                header,
            })
        };
        Self {
            root: root.to_owned(),
            sign_up: link(SIGN_UP, sign_up, "help"),
            upgrade: link(UPGRADE, upgrade, "payment"),
        }
    }

    /// The public address of the service without a path; empty if it is unknown.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// The address for a caller with this refusal.
    pub(in crate::gateway) fn of(&self, refusal: &Refusal) -> Option<&RemedyLink> {
        let status = refusal.code().row().status;
        if status == StatusCode::UNAUTHORIZED {
            return self.sign_up.as_ref();
        }
        let lacks_a_plan = status == StatusCode::FORBIDDEN
            || matches!(
                refusal,
                Refusal::Limited(LimitRule::Day | LimitRule::Minute)
            );
        self.upgrade.as_ref().filter(|_| lacks_a_plan)
    }
}
