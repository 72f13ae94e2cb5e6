//! The use of an application at present, as text and as meters.

use super::CurrentUsage;
use super::frame::bdi;
use crate::pages::html::{capitalized, escape, grouped, time};

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
    let month = usage.month.map(|month| {
        let until = format!("Resets at {}.", time(month.ends_at));
        let label = format!("Requests by {name} this month");
        quota("This month", &label, (month.used, month.limit), &until)
    });
    let month = month.unwrap_or_default();
    format!("<dl class=\"quotas\">\n{today}{month}{last_minute}</dl>\n")
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
