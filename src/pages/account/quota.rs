//! The current usage of an application, as text and as meters.

use super::frame::bdi;
use crate::pages::html::{capitalized, escape, grouped, time};
use scoregate_base::limits::{LimitStatus, Scope};

/// The current usage of the application with this name.
pub fn current(name: &str, usage: Option<&[LimitStatus]>) -> String {
    let Some(statuses) = usage else {
        return "<p>Usage is temporarily unavailable. Reload the page in a minute.</p>\n".into();
    };
    let mut statuses: Vec<_> = statuses.iter().collect();
    // The minute limit matters least, so it comes last.
    statuses.sort_by_key(|status| !status.rule.row().period.is_calendar());
    let quotas: String = statuses
        .into_iter()
        .map(|status| quota(name, status))
        .collect();
    format!("<dl class=\"quotas\">\n{quotas}</dl>\n")
}

fn quota(name: &str, status: &LimitStatus) -> String {
    let row = status.rule.row();
    let when = row.period.present();
    let whose = match row.scope {
        Scope::Application => name,
        Scope::Owner => "all applications",
    };
    let term = match row.scope {
        Scope::Application => capitalized(when),
        Scope::Owner => format!("All applications {when}"),
    };
    let mut note = String::new();
    if row.period.is_calendar() {
        note = format!("Resets at {}.", time(status.reset));
    }
    let limit = status.limit;
    let used = limit - status.remaining;
    let is_used_up = used >= limit;
    let state = if is_used_up {
        " <span class=\"badge\">used up</span>"
    } else {
        ""
    };
    // From 80 % on, the meter has another colour.
    let most = limit.max(1);
    let high = u64::from(limit) * 4 / 5;
    format!(
        "<dt>{term}</dt>\n<dd><span class=\"amount\">{} of {} requests{state}</span>\n\
             <meter aria-label=\"{}\" min=\"0\" max=\"{most}\" low=\"{high}\" high=\"{most}\" optimum=\"0\" value=\"{used}\">\
             {used} of {limit}</meter>\n<span class=\"hint\">{note}</span></dd>\n",
        grouped(used),
        grouped(limit),
        escape(&format!("Requests by {whose} {when}"))
    )
}

/// The tier of an application or an account.
pub fn tier(name: &str) -> String {
    format!("<span class=\"tier\">{}</span>", bdi(&capitalized(name)))
}
