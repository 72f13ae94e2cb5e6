//! The use of an application at present, as text and as meters.

use super::frame::bdi;
use super::{CurrentUsage, WindowUsage};
use crate::pages::html::{capitalized, escape, grouped, time};
use scoregate_base::limits::{LimitRule, Period, Scope};

/// The use of the application with this name.
pub(super) fn current(name: &str, usage: Option<CurrentUsage>) -> String {
    let Some(usage) = usage else {
        return "<p>Usage is temporarily unavailable. Reload the page in a minute.</p>\n".into();
    };
    let day = (usage.day_used, usage.day_limit);
    let until = format!("Resets at {}.", time(usage.day_ends_at));
    let today = quota("Today", &format!("Requests by {name} today"), day, &until);
    let minute = (usage.minute_used, usage.minute_limit);
    let last_minute = quota(
        "Last minute",
        &format!("Requests by {name} in the last minute"),
        minute,
        "",
    );
    let windows: String = LimitRule::WINDOWS
        .into_iter()
        .zip(usage.windows)
        .filter_map(|(rule, usage)| Some(window(rule, name, usage?)))
        .collect();
    format!("<dl class=\"quotas\">\n{today}{windows}{last_minute}</dl>\n")
}

/// The use of a calendar limit besides the day.
fn window(rule: LimitRule, name: &str, usage: WindowUsage) -> String {
    let row = rule.row();
    let when = match row.period {
        Period::Day => "today",
        Period::Month => "this month",
        Period::Minute | Period::Guard => "this minute",
    };
    let whose = match row.scope {
        Scope::Application => name,
        Scope::Owner => "all applications",
    };
    let term = match row.scope {
        Scope::Application => capitalized(when),
        Scope::Owner => format!("All applications {when}"),
    };
    let until = format!("Resets at {}.", time(usage.ends_at));
    let label = format!("Requests by {whose} {when}");
    quota(&term, &label, (usage.used, usage.limit), &until)
}

fn quota(term: &str, name: &str, (used, limit): (u32, u32), note: &str) -> String {
    let is_used_up = used >= limit;
    let state = if is_used_up {
        " <span class=\"badge\">used up</span>"
    } else {
        ""
    };
    // From four fifths on, the meter has another colour.
    let most = limit.max(1);
    let high = u64::from(limit) * 4 / 5;
    format!(
        "<dt>{term}</dt>\n<dd><span class=\"amount\">{} of {} requests{state}</span>\n\
             <meter aria-label=\"{}\" min=\"0\" max=\"{most}\" low=\"{high}\" high=\"{most}\" optimum=\"0\" value=\"{used}\">\
             {used} of {limit}</meter>\n<span class=\"hint\">{note}</span></dd>\n",
        grouped(used),
        grouped(limit),
        escape(name)
    )
}

/// The tier of an application or an account.
pub(super) fn tier(name: &str) -> String {
    format!("<span class=\"tier\">{}</span>", bdi(&capitalized(name)))
}
