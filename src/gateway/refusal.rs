//! Every reason to refuse a request, in one closed enum, with the error code, the message, the responsible party,
//! whether it costs a guard token, and whether it closes the connection. The enum is matched without `_`, so a new
//! reason does not compile until every property is decided.
//!
//! `respond` builds the headers and bodies.

use std::time::Duration;

use crate::accounts::{KeyFault, Shortage};
use scoregate_base::{
    limits::{LimitRow, LimitRule, LimitStatus, Period, Scope},
    plans::{PeriodSet, Tier},
    routes::{AllowedValues, BadParam, Param, codes::ErrorCode},
};
use scoregate_store::RequestOutcome;

use super::plan_gap::{PlanGap, allowed};

/// The reason why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The request violates HTTP.
    BadRequest(HttpViolation),
    /// The target is too long.
    UriTooLong,
    /// The head is too large.
    HeadersTooLarge,
    /// The method is not supported.
    MethodNotAllowed,
    /// A CONNECT request. The bytes that follow are not a request.
    TunnelRefused,
    /// No key was sent where keys are expected.
    KeyMissing(MisplacedKey),
    /// The key is not valid. The response does not state the reason.
    KeyInvalid(KeyFault),
    /// There is no endpoint with this path.
    NotFound,
    /// The value of a parameter is not allowed. The set contains the periods that the caller may use.
    BadParam(BadParam, PeriodSet),
    /// The caller's tier lacks a right.
    PlanRequired(PlanGap),
    /// A limit is exhausted.
    Limited(LimitRule),
    /// The guard is exhausted.
    TooManyRefusals,
    /// The address has downloaded too many bytes of pages.
    TooManyPages {
        /// Time until the page can be sent.
        retry_after: Duration,
    },
    /// The model does not exist.
    ModelNotFound,
    /// The model is not in the list of models, and must not be requested from the backend yet.
    ModelUnlisted {
        /// Time until the backend may be queried again.
        retry_after: Duration,
    },
    /// The backend's response is invalid, and no document is stored.
    UpstreamInvalid,
    /// The backend is unreachable or returned an error, and no document is stored.
    UpstreamUnavailable {
        /// The backend's `Retry-After`.
        retry_after: Option<Duration>,
    },
    /// The backend is too slow, and no document is stored.
    UpstreamTimeout,
    /// The ledger is unreachable, and this gateway has no unit or no token for the request.
    LedgerUnavailable {
        /// Time until the next token, if only a token is missing.
        token_in: Option<Duration>,
    },
    /// The store is unreachable, and keys may have been revoked.
    KeysOutdated,
    /// A concurrency limit is reached.
    Overloaded,
    /// An internal error.
    Internal,
}

/// A violation of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpViolation {
    /// The request does not have exactly one valid Host.
    Host,
    /// The target is not a path on this server.
    Target,
    /// The request has a body, or framing that could hide one.
    Body,
}

/// A place other than the two key headers where a key may have been sent. The key itself is never read from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MisplacedKey {
    /// No sign of a misplaced key was found.
    Nowhere,
    /// The query string, because a parameter has a name that other APIs use for keys.
    Query,
    /// The Authorization header, because its scheme is not Bearer.
    Scheme,
}

/// The party that has to act after a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Responsibility {
    /// The caller.
    Caller,
    /// The operator of the backend.
    Upstream,
    /// The operator of the gateway.
    Us,
}

/// Suggested wait for a backend without `Retry-After`.
const UPSTREAM_RETRY: Duration = Duration::from_secs(5);

/// Suggested wait when a concurrency limit is reached. Most slots are free again much sooner.
const OVERLOAD_RETRY: Duration = Duration::from_secs(1);

/// The instruction to send a key.
const SEND_KEY_AS: &str = "Send the key as `Authorization: Bearer KEY` or `X-API-Key: KEY`.";

/// The properties of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RefusalTraits {
    code: ErrorCode,
    fault: Responsibility,
    /// Whether the refusal costs a guard token, and becomes [`Refusal::TooManyRefusals`] if there is none.
    costs_guard_token: bool,
    /// Whether the refusal closes the connection.
    closes: bool,
}

impl RefusalTraits {
    const fn new(
        code: ErrorCode,
        fault: Responsibility,
        costs_guard_token: bool,
        closes: bool,
    ) -> Self {
        Self {
            code,
            fault,
            costs_guard_token,
            closes,
        }
    }
}

impl Refusal {
    /// The table of refusals. The traits of a new kind of refusal are defined only here.
    #[rustfmt::skip]
    fn traits(&self) -> RefusalTraits {
        // code                    responsible      guard  closes
        match self {
            Self::BadRequest(_)              => RefusalTraits::new(ErrorCode::BadRequest,          Responsibility::Caller,   true,  true),
            Self::UriTooLong                 => RefusalTraits::new(ErrorCode::UriTooLong,          Responsibility::Caller,   true,  true),
            Self::HeadersTooLarge            => RefusalTraits::new(ErrorCode::HeadersTooLarge,     Responsibility::Caller,   true,  true),
            Self::MethodNotAllowed           => RefusalTraits::new(ErrorCode::MethodNotAllowed,    Responsibility::Caller,   true,  false),
            Self::TunnelRefused              => RefusalTraits::new(ErrorCode::MethodNotAllowed,    Responsibility::Caller,   true,  true),
            Self::KeyMissing(_)              => RefusalTraits::new(ErrorCode::ApiKeyRequired,      Responsibility::Caller,   true,  false),
            Self::KeyInvalid(_)              => RefusalTraits::new(ErrorCode::InvalidApiKey,       Responsibility::Caller,   true,  false),
            Self::NotFound                   => RefusalTraits::new(ErrorCode::NotFound,            Responsibility::Caller,   true,  false),
            Self::BadParam(bad, _)           => RefusalTraits::new(bad.param.code(),          Responsibility::Caller,   true,  false),
            Self::PlanRequired(gap)          => RefusalTraits::new(gap.code(),                Responsibility::Caller,   true,  false),
            Self::Limited(rule)              => match rule.row().period {
                Period::Calendar(_)          => RefusalTraits::new(ErrorCode::QuotaExceeded,       Responsibility::Caller,   false, false),
                Period::Minute               => RefusalTraits::new(ErrorCode::RateLimitExceeded,   Responsibility::Caller,   false, false),
                Period::Guard                => Self::TooManyRefusals.traits(),
            },
            Self::TooManyRefusals            => RefusalTraits::new(ErrorCode::TooManyRefusals,     Responsibility::Caller,   false, true),
            Self::TooManyPages { .. }        => RefusalTraits::new(ErrorCode::TooManyRefusals,     Responsibility::Caller,   false, false),
            Self::ModelNotFound
            | Self::ModelUnlisted { .. }     => RefusalTraits::new(ErrorCode::ModelNotFound,       Responsibility::Caller,   false, false),
            Self::UpstreamInvalid            => RefusalTraits::new(ErrorCode::UpstreamInvalid,     Responsibility::Upstream, false, false),
            Self::UpstreamUnavailable { .. } => RefusalTraits::new(ErrorCode::UpstreamUnavailable, Responsibility::Upstream, false, false),
            Self::UpstreamTimeout            => RefusalTraits::new(ErrorCode::UpstreamTimeout,     Responsibility::Upstream, false, false),
            Self::LedgerUnavailable { .. }
            | Self::KeysOutdated
            | Self::Overloaded               => RefusalTraits::new(ErrorCode::Overloaded,          Responsibility::Us,       false, false),
            Self::Internal                   => RefusalTraits::new(ErrorCode::InternalError,       Responsibility::Us,       false, false),
        }
    }

    /// The error code, which determines the status and the title.
    pub fn code(&self) -> ErrorCode {
        self.traits().code
    }

    /// The party that has to act.
    pub fn responsibility(&self) -> Responsibility {
        self.traits().fault
    }

    /// The outcome of the request, as counted for its application.
    pub(super) fn outcome(&self) -> RequestOutcome {
        match (self.rule(), self.responsibility()) {
            (Some(rule), _) => RequestOutcome::of_limit(rule),
            (None, Responsibility::Caller) => RequestOutcome::ClientError,
            (None, Responsibility::Upstream | Responsibility::Us) => RequestOutcome::ServerError,
        }
    }

    /// The reason why the key is refused, if it is.
    pub(super) fn key_fault(&self) -> Option<KeyFault> {
        if let Self::KeyInvalid(fault) = self {
            return Some(*fault);
        }
        None
    }

    /// Whether the refusal costs a guard token, and becomes [`Refusal::TooManyRefusals`] if there is none.
    pub fn costs_guard_token(&self) -> bool {
        self.traits().costs_guard_token
    }

    /// Whether the refusal closes the connection: if the end of the request is uncertain, or if the client keeps
    /// sending requests that are refused.
    pub fn closes(&self) -> bool {
        self.traits().closes
    }

    /// The exhausted rule of a 429. A refused page has no rule, because its limit counts bytes.
    pub fn rule(&self) -> Option<LimitRule> {
        if let Self::Limited(rule) = self {
            return Some(*rule);
        }
        matches!(self, Self::TooManyRefusals).then_some(LimitRule::Guard)
    }

    /// Whether the minute token of an admitted request is returned with this refusal, because no work was done for the
    /// request.
    pub(super) fn returns_the_token(&self) -> bool {
        matches!(
            self,
            Self::ModelUnlisted { .. }
                | Self::KeyMissing(_)
                | Self::KeyInvalid(_)
                | Self::PlanRequired(_)
        )
    }

    /// `Retry-After` of a refusal that was not caused by a limit. For a 503: the time that the backend requested, but at
    /// least the time until the caller's next token, because a token was spent. For an unlisted model: the time until
    /// the backend may be queried again.
    pub fn retry_after(&self, next_token: Duration) -> Option<Duration> {
        if let Self::UpstreamUnavailable { retry_after } = self {
            return Some(retry_after.unwrap_or(UPSTREAM_RETRY).max(next_token));
        }
        if matches!(self, Self::Overloaded) {
            return Some(OVERLOAD_RETRY);
        }
        if let Self::ModelUnlisted { retry_after } | Self::TooManyPages { retry_after } = self {
            return Some(*retry_after);
        }
        if let Self::LedgerUnavailable { token_in } = self {
            return Some(token_in.unwrap_or(UPSTREAM_RETRY));
        }
        matches!(self, Self::KeysOutdated).then_some(UPSTREAM_RETRY)
    }

    /// The refused parameter, and the values that this caller may use.
    pub fn param(&self) -> Option<(Param, AllowedValues)> {
        if let Self::BadParam(bad, periods) = self {
            return Some((bad.param, allowed(bad.param, *periods)));
        }
        if let Self::PlanRequired(gap) = self {
            gap.param()
        } else {
            None
        }
    }

    /// The message for the caller. It does not repeat anything that the caller sent, and discloses no internals.
    pub fn message(&self, limit_status: &LimitStatus, tiers: &[Tier]) -> String {
        match self {
            Self::BadRequest(doubt) => doubt.message().into(),
            Self::BadParam(bad, periods) => bad.message(&allowed(bad.param, *periods)),
            Self::PlanRequired(gap) => gap.message(tiers),
            Self::KeyMissing(misplaced) => misplaced.message(),
            Self::Limited(rule) => {
                let row = rule.row();
                if row.period.is_calendar() {
                    quota_is_spent(limit_status, row)
                } else if row.period == Period::Minute {
                    used_up(limit_status, " request")
                } else {
                    used_up(limit_status, " refused request")
                }
            }
            Self::TooManyRefusals => used_up(limit_status, " refused request"),
            Self::TooManyPages { retry_after } => {
                let wait = whole_seconds(*retry_after);
                format!(
                    "Wait {wait} s. This address has downloaded too many pages. The data API is not affected."
                )
            }
            Self::ModelUnlisted { retry_after } => {
                let wait = whole_seconds(*retry_after);
                format!(
                    "Wait {wait} s. This id is not in the list of models, and cannot be looked up right now."
                )
            }
            Self::UriTooLong
            | Self::HeadersTooLarge
            | Self::MethodNotAllowed
            | Self::TunnelRefused
            | Self::KeyInvalid(_)
            | Self::NotFound
            | Self::ModelNotFound
            | Self::UpstreamInvalid
            | Self::UpstreamUnavailable { .. }
            | Self::UpstreamTimeout
            | Self::LedgerUnavailable { .. }
            | Self::KeysOutdated
            | Self::Overloaded
            | Self::Internal => self.code().row().message(),
        }
    }
}

impl From<Shortage> for Refusal {
    fn from(shortage: Shortage) -> Self {
        match shortage {
            Shortage::Limit(rule) => Self::Limited(rule),
            Shortage::Units => Self::LedgerUnavailable { token_in: None },
            Shortage::Token { wait } => Self::LedgerUnavailable {
                token_in: Some(wait),
            },
        }
    }
}

impl MisplacedKey {
    fn message(self) -> String {
        match self {
            Self::Nowhere => ErrorCode::ApiKeyRequired.row().message(),
            Self::Query => format!(
                "{SEND_KEY_AS} A key in the query string is never read. Rotate a key that was sent in a URL: proxies and \
                 servers log URLs."
            ),
            Self::Scheme => {
                format!("{SEND_KEY_AS} The Authorization header does not use the Bearer scheme.")
            }
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

/// The text is concatenated: such refusals are frequent during an attack, and formatting would cost several times as
/// much.
fn used_up(limit_status: &LimitStatus, noun: &str) -> String {
    [
        "Wait ",
        itoa::Buffer::new().format(whole_seconds(limit_status.wait)),
        " s. The limit of ",
        itoa::Buffer::new().format(limit_status.limit),
        noun,
        plural(limit_status.limit),
        " a minute is used up.",
    ]
    .concat()
}

/// The text is concatenated, for the same reason as in `used_up`.
fn quota_is_spent(limit_status: &LimitStatus, row: LimitRow) -> String {
    let whose = match row.scope {
        Scope::Application => "",
        Scope::Owner => " for all applications of the account",
    };
    [
        "Wait until ",
        &limit_status.reset.rfc3339(),
        ". The ",
        row.period.adjective(),
        " quota of ",
        itoa::Buffer::new().format(limit_status.limit),
        " request",
        plural(limit_status.limit),
        whose,
        " is spent.",
    ]
    .concat()
}

/// The plural ending of a noun: `1 request`, `2 requests`.
const fn plural(number: u32) -> &'static str {
    if number == 1 { "" } else { "s" }
}

/// A wait in whole seconds, rounded up, and at least one second, so that a client that waits this long is never too
/// early.
pub fn whole_seconds(wait: Duration) -> u64 {
    (wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(1)
}
