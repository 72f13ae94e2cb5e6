//! Every reason not to serve, in one closed enum: its code, its words for the caller, whose fault it is, whether the
//! guard is asked, whether the connection ends. Matched without `_`, so a new reason does not compile until every
//! place has decided.
//!
//! Not for: headers and bodies (`respond`), which are made from what stands here.

use std::time::Duration;

use crate::keys::Rights;
use crate::limits::{LimitRule, LimitStatus};
use crate::routes::codes::ErrorCode;
use crate::routes::{AllowedValues, BadParam, Param, Period};

/// Why a request is not served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It breaks a rule of HTTP.
    BadRequest(HttpViolation),
    /// Its target is too long.
    UriTooLong,
    /// Its head is too large.
    HeadersTooLarge,
    /// Its method is none of ours.
    MethodNotAllowed,
    /// It asks for a tunnel: what its client sends behind it, without waiting, is no request.
    TunnelRefused,
    /// It carries no key where keys belong.
    KeyMissing(MisplacedKey),
    /// Its key is not in force. The caller is told no more.
    KeyInvalid,
    /// Its path is none of ours.
    NotFound,
    /// A parameter's value is not allowed for a caller with these rights.
    BadParam(BadParam, Rights),
    /// A Free key asked for the period `latest`.
    LatestRequiresPlan,
    /// A limit is used up.
    Limited(LimitRule),
    /// The guard is used up.
    TooManyRefusals,
    /// The model does not exist.
    ModelNotFound,
    /// The model is in no list, and the backend may not be asked about it yet.
    ModelUnlisted {
        /// When it may be asked about such a model again.
        retry_after: Duration,
    },
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
    /// More runs at once than there is room for.
    Overloaded,
    /// We failed.
    Internal,
}

/// The rule of HTTP that was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpViolation {
    /// Not exactly one valid Host.
    Host,
    /// A target that is not a path on this server.
    Target,
    /// A body, or framing that could hide one.
    Body,
}

/// Where a key may have been sent instead of one of the two headers. The key itself is never read from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MisplacedKey {
    /// Nowhere: no sign of a key.
    Nowhere,
    /// In the query string: a parameter has a name that keys are given elsewhere.
    Query,
    /// In the Authorization header, with another scheme than Bearer.
    Scheme,
}

/// Whose fault it is: who has to act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Responsibility {
    /// The caller's.
    Caller,
    /// The backend's.
    Upstream,
    /// Ours.
    Us,
}

/// How long a client is asked to wait for a backend that did not say.
const TRY_AGAIN: Duration = Duration::from_secs(5);

/// How long a client is asked to wait where there is no room: most places are free again in far less.
const ROOM_AGAIN: Duration = Duration::from_secs(1);

/// Where a key is read from.
const BELONGS: &str = "Send the key as `Authorization: Bearer KEY` or `X-API-Key: KEY`.";

/// What a reason means for everybody who has to act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RefusalTraits {
    code: ErrorCode,
    fault: Responsibility,
    /// Whether it costs a token of the guard, and becomes [`Refusal::TooManyRefusals`] if there is none.
    asks_the_guard: bool,
    /// Whether the connection ends with it.
    closes: bool,
}

impl Refusal {
    /// THE table of refusals: the one place that decides about a new reason.
    #[rustfmt::skip]
    fn nature(&self) -> RefusalTraits {
        let nature = |code, fault, asks_the_guard, closes| RefusalTraits { code, fault, asks_the_guard, closes };
        //                                            code                    whose fault      guard  closes
        match self {
            Self::BadRequest(_)              => nature(ErrorCode::BadRequest,          Responsibility::Caller,   true,  true),
            Self::UriTooLong                 => nature(ErrorCode::UriTooLong,          Responsibility::Caller,   true,  true),
            Self::HeadersTooLarge            => nature(ErrorCode::HeadersTooLarge,     Responsibility::Caller,   true,  true),
            Self::MethodNotAllowed           => nature(ErrorCode::MethodNotAllowed,    Responsibility::Caller,   true,  false),
            Self::TunnelRefused              => nature(ErrorCode::MethodNotAllowed,    Responsibility::Caller,   true,  true),
            Self::KeyMissing(_)              => nature(ErrorCode::ApiKeyRequired,      Responsibility::Caller,   true,  false),
            Self::KeyInvalid                 => nature(ErrorCode::InvalidApiKey,       Responsibility::Caller,   true,  false),
            Self::NotFound                   => nature(ErrorCode::NotFound,            Responsibility::Caller,   true,  false),
            Self::BadParam(bad, _)           => nature(bad.param.code(),          Responsibility::Caller,   true,  false),
            Self::LatestRequiresPlan         => nature(ErrorCode::LatestRequiresPlan,  Responsibility::Caller,   true,  false),
            Self::Limited(LimitRule::Day)         => nature(ErrorCode::QuotaExceeded,       Responsibility::Caller,   false, false),
            Self::Limited(LimitRule::Minute)      => nature(ErrorCode::RateLimitExceeded,   Responsibility::Caller,   false, false),
            Self::Limited(LimitRule::Guard)
            | Self::TooManyRefusals          => nature(ErrorCode::TooManyRefusals,     Responsibility::Caller,   false, true),
            Self::ModelNotFound
            | Self::ModelUnlisted { .. }     => nature(ErrorCode::ModelNotFound,       Responsibility::Caller,   false, false),
            Self::UpstreamInvalid            => nature(ErrorCode::UpstreamInvalid,     Responsibility::Upstream, false, false),
            Self::UpstreamUnavailable { .. } => nature(ErrorCode::UpstreamUnavailable, Responsibility::Upstream, false, false),
            Self::UpstreamTimeout            => nature(ErrorCode::UpstreamTimeout,     Responsibility::Upstream, false, false),
            Self::LedgerUnavailable
            | Self::Overloaded               => nature(ErrorCode::Overloaded,          Responsibility::Us,       false, false),
            Self::Internal                   => nature(ErrorCode::InternalError,       Responsibility::Us,       false, false),
        }
    }

    /// The code in the body, with its status and title.
    pub fn code(&self) -> ErrorCode {
        self.nature().code
    }

    /// Whose fault it is.
    pub fn fault(&self) -> Responsibility {
        self.nature().fault
    }

    /// Whether it costs a token of the guard, and becomes [`Refusal::TooManyRefusals`] if there is none.
    pub fn asks_the_guard(&self) -> bool {
        self.nature().asks_the_guard
    }

    /// Whether the connection ends with it: after any doubt about where a request ends, and for those who go on
    /// sending what is refused.
    pub fn closes(&self) -> bool {
        self.nature().closes
    }

    /// The rule that was hit, on a 429.
    pub fn rule(&self) -> Option<LimitRule> {
        if let Self::Limited(rule) = self {
            return Some(*rule);
        }
        (*self == Self::TooManyRefusals).then_some(LimitRule::Guard)
    }

    /// Whether the minute's token is returned, if the request was admitted before it was refused: no work was done for it.
    pub(super) fn returns_the_token(&self) -> bool {
        matches!(
            self,
            Self::ModelUnlisted { .. } | Self::KeyMissing(_) | Self::KeyInvalid | Self::LatestRequiresPlan
        )
    }

    /// How long to wait before a 503 is tried again: as long as the backend asked for, and never less than the
    /// caller's own next token, since that one was spent. An unlisted model can be asked for again when the backend may
    /// be.
    pub fn retry_after(&self, next_token: Duration) -> Option<Duration> {
        if let Self::UpstreamUnavailable { retry_after } = self {
            return Some(retry_after.unwrap_or(TRY_AGAIN).max(next_token));
        }
        if *self == Self::Overloaded {
            return Some(ROOM_AGAIN);
        }
        if let Self::ModelUnlisted { retry_after } = self {
            return Some(*retry_after);
        }
        (*self == Self::LedgerUnavailable).then_some(TRY_AGAIN)
    }

    /// The parameter that was refused, and the values that this caller may use.
    pub fn param(&self) -> Option<(Param, AllowedValues)> {
        if let Self::BadParam(bad, rights) = self {
            return Some((bad.param, allowed(bad.param, *rights)));
        }
        (*self == Self::LatestRequiresPlan).then(|| (Param::Period, allowed(Param::Period, Rights::Free)))
    }

    /// What the caller is told. Says nothing that the caller sent, and nothing of the inside.
    pub fn message(&self, standing: &LimitStatus) -> String {
        match self {
            Self::BadRequest(doubt) => doubt.message().into(),
            Self::BadParam(bad, rights) => bad.message(&allowed(bad.param, *rights)),
            Self::KeyMissing(misplaced) => misplaced.message(),
            Self::Limited(LimitRule::Day) => {
                let (quota, reset) = (standing.limit, standing.reset.rfc3339());
                format!("The daily quota of {} is spent. It resets at {reset}.", counted(quota, "request"))
            }
            Self::Limited(LimitRule::Minute) => {
                let (limit, wait) = (standing.limit, whole_seconds(standing.wait));
                let limit = counted(limit, "request");
                format!("The limit of {limit} a minute is used up. Retry in {wait} s.")
            }
            Self::Limited(LimitRule::Guard) | Self::TooManyRefusals => {
                let (limit, wait) = (standing.limit, whole_seconds(standing.wait));
                let limit = counted(limit, "refused request");
                format!("The limit of {limit} a minute is used up. Retry in {wait} s.")
            }
            Self::UriTooLong
            | Self::HeadersTooLarge
            | Self::MethodNotAllowed
            | Self::TunnelRefused
            | Self::KeyInvalid
            | Self::NotFound
            | Self::LatestRequiresPlan
            | Self::ModelNotFound
            | Self::ModelUnlisted { .. }
            | Self::UpstreamInvalid
            | Self::UpstreamUnavailable { .. }
            | Self::UpstreamTimeout
            | Self::LedgerUnavailable
            | Self::Overloaded
            | Self::Internal => {
                let row = self.code().row();
                format!("{} {}", row.condition, row.remedy)
            }
        }
    }
}

impl MisplacedKey {
    fn message(self) -> String {
        let row = ErrorCode::ApiKeyRequired.row();
        match self {
            Self::Nowhere => format!("{} {}", row.condition, row.remedy),
            Self::Query => format!(
                "A key in the query string is never read. {BELONGS} Rotate a key that was sent in a URL: URLs are logged \
                 on the way."
            ),
            Self::Scheme => format!("The Authorization header does not use the Bearer scheme. {BELONGS}"),
        }
    }
}

impl HttpViolation {
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

/// The values of a parameter that a caller with these rights may use.
fn allowed(param: Param, rights: Rights) -> AllowedValues {
    match rights {
        Rights::Free => param.allowed().without(Period::Latest.word()),
        Rights::Paid(_) => param.allowed(),
    }
}

/// `1 request`, `2 requests`.
fn counted(number: u32, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// A wait in whole seconds, rounded up, at least one: a client that obeys is never too early.
pub(super) fn whole_seconds(wait: Duration) -> u64 {
    (wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(1)
}
