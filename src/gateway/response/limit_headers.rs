//! The limit headers of a response. One function writes them for all responses.

use std::time::Duration;

use http::HeaderValue;

use crate::{
    accounts::{Account, Terms},
    gateway::Refusal,
};
use scoregate_base::limits::{LimitRule, LimitStatus};

use super::{
    header_values::{HeaderValueWriter, NumberField},
    reply::Answered,
    response_context::ResponseContext,
    response_head::{HeadWriter, HeaderField, HeaderFieldSet},
};

/// The fields.
pub const LIMITS: HeaderFieldSet = HeaderFieldSet::of(&[
    HeaderField::Limit,
    HeaderField::Remaining,
    HeaderField::Reset,
    HeaderField::Resource,
    HeaderField::Standing,
    HeaderField::Policy,
]);

/// The limit headers of a response.
pub struct LimitHeaders {
    /// The rule named in `X-RateLimit-Resource`.
    pub(crate) reported: LimitStatus,
    /// Time until the next minute token of the caller.
    pub(crate) next_token: Duration,
    scope: LimitScope,
}

/// The owner of the limits.
enum LimitScope {
    /// An application: the status of its minute limit and its daily quota, and its policy header.
    Application([LimitStatus; 2], HeaderValue),
    /// An application with other calendar limits: the status of all its limits, shortest first, and its policy header.
    Windows(Vec<LimitStatus>, HeaderValue),
    /// An address: the status of its guard.
    Address,
}

impl LimitHeaders {
    /// Reports the rule that refused the request, if any; else the day of a known application; else the guard of the
    /// address.
    pub(crate) fn new(at: &ResponseContext<'_>, answered: Answered<'_>) -> Self {
        let hit = answered.err().and_then(Refusal::rule);
        let Some(caller) = at.caller else {
            let mut reported = at.guard.limit_status(at.peer.address, at.now);
            if hit.is_some() {
                reported = reported.as_hit(at.started, at.now);
            }
            return Self {
                reported,
                next_token: Duration::ZERO,
                scope: LimitScope::Address,
            };
        };
        // The current terms are used instead of the caller's copy, because the headers describe the status at the time
        // of sending.
        let terms = caller.account.terms();
        if !terms.limits.calendar.is_empty() {
            return Self::with_windows(&caller.account, &terms, hit, at);
        }
        if let Some([minute, day]) = charged_statuses(answered, at) {
            return Self {
                reported: *day,
                next_token: minute.wait,
                scope: LimitScope::Application([*minute, *day], terms.policy.clone()),
            };
        }
        let rule = hit.unwrap_or(LimitRule::Day);
        let statuses = caller.account.limit_statuses(rule, &terms.limits, at.now);
        let [mut minute, mut day, mut reported] = statuses;
        if let Some(rule) = hit {
            reported = reported.as_hit(at.started, at.now);
            for status in [&mut minute, &mut day] {
                if status.rule == rule {
                    *status = reported;
                }
            }
        }
        Self {
            reported,
            next_token: minute.wait,
            scope: LimitScope::Application([minute, day], terms.policy.clone()),
        }
    }

    /// The headers for an application that has calendar limits other than the daily limit.
    fn with_windows(
        account: &Account,
        terms: &Terms,
        hit: Option<LimitRule>,
        at: &ResponseContext<'_>,
    ) -> Self {
        let rule = hit.unwrap_or(LimitRule::Day);
        let limits = &terms.limits;
        let [minute, day, mut reported] = account.limit_statuses(rule, limits, at.now);
        if hit.is_some() {
            reported = reported.as_hit(at.started, at.now);
        }
        let windows = account.window_statuses(limits, at.now);
        let policy = terms.policy_on(at.now.wall.day(), &windows);
        let mut statuses = vec![minute, day];
        statuses.extend(windows);
        for status in &mut statuses {
            if hit == Some(status.rule) {
                *status = reported;
            }
        }
        Self {
            reported,
            next_token: minute.wait,
            scope: LimitScope::Windows(statuses, policy),
        }
    }

    /// Sets the fields.
    pub(crate) fn write(self, head: &mut HeadWriter<'_>, values: &mut HeaderValueWriter) {
        head.put(
            HeaderField::Limit,
            NumberField::Plain.value(self.reported.limit.into()),
        );
        head.put(
            HeaderField::Remaining,
            values.number(self.reported.remaining).value(),
        );
        head.put(
            HeaderField::Reset,
            NumberField::Plain.value(self.reported.reset.seconds()),
        );
        if self.reported.rule == LimitRule::Day {
            head.keep(HeaderField::Resource);
        } else {
            let name = self.reported.rule.name();
            head.put(HeaderField::Resource, HeaderValue::from_static(name));
        }
        let policy = match self.scope {
            LimitScope::Application([minute, day], policy) => {
                part(values, &minute);
                part(values.text(", "), &day);
                head.put(HeaderField::Standing, values.value());
                policy
            }
            LimitScope::Windows(statuses, policy) => {
                head.put(HeaderField::Standing, standing(&statuses));
                policy
            }
            LimitScope::Address => {
                part(values, &self.reported);
                head.put(HeaderField::Standing, values.value());
                values
                    .text("\"guard\";q=")
                    .number(self.reported.limit)
                    .text(";w=60")
                    .value()
            }
        };
        head.put(HeaderField::Policy, policy);
    }
}

/// The status of the minute and the day, if `charge` read it on the day of sending. Headers describe the
/// status at the time of sending.
fn charged_statuses<'a>(
    answered: Answered<'a>,
    at: &ResponseContext<'_>,
) -> Option<&'a [LimitStatus; 2]> {
    let document = answered.ok()?.document()?;
    if at.now.wall.day() != at.started.wall.day() {
        return None;
    }
    document.limit_statuses.as_ref()
}

/// Writes, for example, `"minute";r=59;t=1`: the remaining allowance, and the seconds until it is full again.
fn part(values: &mut HeaderValueWriter, limit_status: &LimitStatus) {
    values
        .text("\"")
        .text(limit_status.rule.name())
        .text("\";r=")
        .number(limit_status.remaining)
        .text(";t=")
        .number(seconds_until_full(limit_status));
}

/// The parts of all limits as one value, which may be too long for the writer.
fn standing(statuses: &[LimitStatus]) -> HeaderValue {
    let parts: Vec<String> = statuses
        .iter()
        .map(|status| {
            let seconds = seconds_until_full(status);
            format!(
                "\"{}\";r={};t={seconds}",
                status.rule.name(),
                status.remaining
            )
        })
        .collect();
    HeaderValue::try_from(parts.join(", ")).expect("rule names and numbers are visible ASCII")
}

fn seconds_until_full(limit_status: &LimitStatus) -> u64 {
    limit_status.full_in.as_secs() + u64::from(limit_status.full_in.subsec_nanos() > 0)
}
