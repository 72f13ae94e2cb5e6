//! Every reason not to serve, in one closed enum: its code, its words for the caller, whose fault it is, whether the
//! guard is asked, whether the connection ends. Matched without `_`, so a new reason does not compile until every
//! place has decided.
//!
//! Not for: headers and bodies (`respond`), which are made from what stands here.

use std::time::Duration;

use crate::limits::{Rule, Standing};
use crate::routes::BadParam;
use crate::routes::codes::Code;

/// Why a request is not served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It breaks a rule of HTTP.
    BadRequest(Doubt),
    /// Its target is too long.
    UriTooLong,
    /// Its head is too large.
    HeadersTooLarge,
    /// Its method is none of ours.
    MethodNotAllowed,
    /// It carries no key.
    KeyMissing,
    /// Its key is not in force. The caller is told no more.
    KeyInvalid,
    /// Its path is none of ours.
    NotFound,
    /// A parameter's value is not allowed.
    BadParam(BadParam),
    /// A Free key asked for the period `latest`.
    LatestRequiresPlan,
    /// A limit is used up.
    Limited(Rule),
    /// The guard is used up.
    TooManyRefusals,
    /// The model does not exist.
    ModelNotFound,
    /// The backend's answer cannot be used, and there is no older one.
    UpstreamInvalid,
    /// The backend cannot be reached or refuses, and there is no older answer.
    UpstreamUnavailable {
        /// How long it asked to be left alone.
        retry_after: Option<Duration>,
    },
    /// The backend is too slow, and there is no older answer.
    UpstreamTimeout,
    /// The ledger cannot be reached, and no leased unit is left.
    LedgerUnavailable,
    /// We failed.
    Internal,
}

/// The rule of HTTP that was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// Not exactly one valid Host.
    Host,
    /// A target that is not a path on this server.
    Target,
    /// A body, or framing that could hide one.
    Body,
}

/// Whose fault it is: who has to act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The caller's.
    Caller,
    /// The backend's.
    Upstream,
    /// Ours.
    Us,
}

/// How long a client is asked to wait for a backend that did not say.
const TRY_AGAIN: Duration = Duration::from_secs(5);

impl Refusal {
    /// The code in the body, with its status and title.
    pub fn code(&self) -> Code {
        match self {
            Self::BadRequest(_) => Code::BadRequest,
            Self::UriTooLong => Code::UriTooLong,
            Self::HeadersTooLarge => Code::HeadersTooLarge,
            Self::MethodNotAllowed => Code::MethodNotAllowed,
            Self::KeyMissing => Code::ApiKeyRequired,
            Self::KeyInvalid => Code::InvalidApiKey,
            Self::NotFound => Code::NotFound,
            Self::BadParam(bad) => bad.param.code(),
            Self::LatestRequiresPlan => Code::LatestRequiresPlan,
            Self::Limited(Rule::Day) => Code::QuotaExceeded,
            Self::Limited(Rule::Minute) => Code::RateLimitExceeded,
            Self::Limited(Rule::Guard) | Self::TooManyRefusals => Code::TooManyRefusals,
            Self::ModelNotFound => Code::ModelNotFound,
            Self::UpstreamInvalid => Code::UpstreamInvalid,
            Self::UpstreamUnavailable { .. } => Code::UpstreamUnavailable,
            Self::UpstreamTimeout => Code::UpstreamTimeout,
            Self::LedgerUnavailable => Code::Overloaded,
            Self::Internal => Code::InternalError,
        }
    }

    /// Whose fault it is.
    pub fn fault(&self) -> Fault {
        match self {
            Self::BadRequest(_)
            | Self::UriTooLong
            | Self::HeadersTooLarge
            | Self::MethodNotAllowed
            | Self::KeyMissing
            | Self::KeyInvalid
            | Self::NotFound
            | Self::BadParam(_)
            | Self::LatestRequiresPlan
            | Self::Limited(_)
            | Self::TooManyRefusals
            | Self::ModelNotFound => Fault::Caller,
            Self::UpstreamInvalid | Self::UpstreamUnavailable { .. } | Self::UpstreamTimeout => {
                Fault::Upstream
            }
            Self::LedgerUnavailable | Self::Internal => Fault::Us,
        }
    }

    /// Whether it costs a token of the guard, and becomes [`Refusal::TooManyRefusals`] if there is none.
    pub fn asks_the_guard(&self) -> bool {
        match self {
            Self::BadRequest(_)
            | Self::UriTooLong
            | Self::HeadersTooLarge
            | Self::MethodNotAllowed
            | Self::KeyMissing
            | Self::KeyInvalid
            | Self::NotFound
            | Self::BadParam(_)
            | Self::LatestRequiresPlan => true,
            Self::Limited(_)
            | Self::TooManyRefusals
            | Self::ModelNotFound
            | Self::UpstreamInvalid
            | Self::UpstreamUnavailable { .. }
            | Self::UpstreamTimeout
            | Self::LedgerUnavailable
            | Self::Internal => false,
        }
    }

    /// Whether the connection ends with it: after any doubt about where a request ends, and for those who go on
    /// sending what is refused.
    pub fn closes(&self) -> bool {
        match self {
            Self::BadRequest(_) | Self::UriTooLong | Self::HeadersTooLarge | Self::TooManyRefusals => true,
            Self::MethodNotAllowed
            | Self::KeyMissing
            | Self::KeyInvalid
            | Self::NotFound
            | Self::BadParam(_)
            | Self::LatestRequiresPlan
            | Self::Limited(_)
            | Self::ModelNotFound
            | Self::UpstreamInvalid
            | Self::UpstreamUnavailable { .. }
            | Self::UpstreamTimeout
            | Self::LedgerUnavailable
            | Self::Internal => false,
        }
    }

    /// The rule that was hit, on a 429.
    pub fn rule(&self) -> Option<Rule> {
        match self {
            Self::Limited(rule) => Some(*rule),
            Self::TooManyRefusals => Some(Rule::Guard),
            Self::BadRequest(_)
            | Self::UriTooLong
            | Self::HeadersTooLarge
            | Self::MethodNotAllowed
            | Self::KeyMissing
            | Self::KeyInvalid
            | Self::NotFound
            | Self::BadParam(_)
            | Self::LatestRequiresPlan
            | Self::ModelNotFound
            | Self::UpstreamInvalid
            | Self::UpstreamUnavailable { .. }
            | Self::UpstreamTimeout
            | Self::LedgerUnavailable
            | Self::Internal => None,
        }
    }

    /// How long to wait before a 503 is tried again: as long as the backend asked for, and never less than the
    /// caller's own next token, since that one was spent.
    pub fn retry_after(&self, next_token: Duration) -> Option<Duration> {
        match self {
            Self::UpstreamUnavailable { retry_after } => {
                Some(retry_after.unwrap_or(TRY_AGAIN).max(next_token))
            }
            Self::LedgerUnavailable => Some(TRY_AGAIN),
            Self::BadRequest(_)
            | Self::UriTooLong
            | Self::HeadersTooLarge
            | Self::MethodNotAllowed
            | Self::KeyMissing
            | Self::KeyInvalid
            | Self::NotFound
            | Self::BadParam(_)
            | Self::LatestRequiresPlan
            | Self::Limited(_)
            | Self::TooManyRefusals
            | Self::ModelNotFound
            | Self::UpstreamInvalid
            | Self::UpstreamTimeout
            | Self::Internal => None,
        }
    }

    /// What the caller is told. Says nothing that the caller sent, and nothing of the inside.
    pub fn message(&self, standing: &Standing) -> String {
        match self {
            Self::BadRequest(doubt) => doubt.message().into(),
            Self::BadParam(bad) => {
                format!(
                    "`{}` {}. Allowed: {}.",
                    bad.param.name(),
                    bad.problem,
                    bad.param.allowed().join(", ")
                )
            }
            Self::Limited(Rule::Day) => {
                let (quota, reset) = (standing.limit, standing.reset.rfc3339());
                format!("The daily quota of {quota} requests is spent. It resets at {reset}.")
            }
            Self::Limited(Rule::Minute) => {
                let (limit, wait) = (standing.limit, whole_seconds(standing.wait));
                format!("All {limit} requests of this minute are used. The next is possible in {wait} s.")
            }
            Self::Limited(Rule::Guard) | Self::TooManyRefusals => {
                let (limit, wait) = (standing.limit, whole_seconds(standing.wait));
                format!(
                    "More than {limit} requests a minute were refused. The next is looked at in {wait} s."
                )
            }
            Self::UriTooLong
            | Self::HeadersTooLarge
            | Self::MethodNotAllowed
            | Self::KeyMissing
            | Self::KeyInvalid
            | Self::NotFound
            | Self::LatestRequiresPlan
            | Self::ModelNotFound
            | Self::UpstreamInvalid
            | Self::UpstreamUnavailable { .. }
            | Self::UpstreamTimeout
            | Self::LedgerUnavailable
            | Self::Internal => {
                let row = self.code().row();
                format!("{} {}", row.condition, row.remedy)
            }
        }
    }
}

impl Doubt {
    const fn message(self) -> &'static str {
        match self {
            Self::Host => "The request needs exactly one valid Host. The connection is closed.",
            Self::Target => {
                "The request target has to be a path on this server, in ASCII. The connection is closed."
            }
            Self::Body => {
                "Requests have no body here: leave out Transfer-Encoding, and Content-Length unless it is 0. The connection is closed."
            }
        }
    }
}

/// A wait in whole seconds, rounded up, at least one: a client that obeys is never too early.
pub(super) fn whole_seconds(wait: Duration) -> u64 {
    (wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(1)
}
