//! The use of an application at present, as text and as meters.

use super::CurrentUsage;
use super::frame::bdi;
use crate::pages::html::{capitalized, escape, grouped, push, time};

/// The use of the application with this name.
pub(super) fn current(name: &str, usage: Option<CurrentUsage>) -> String {
    let Some(usage) = usage else {
        return "<p>Usage is temporarily unavailable. Reload the page in a minute.</p>\n".into();
    };
    let mut html = String::from("<dl class=\"quotas\">\n");
    let day = (usage.day_used, usage.day_limit);
    let until = format!("Resets at {}.", time(usage.day_ends_at));
    quota(&mut html, "Today", &format!("Requests by {name} today"), day, &until);
    let minute = (usage.minute_used, usage.minute_limit);
    quota(&mut html, "Last minute", &format!("Requests by {name} in the last minute"), minute, "");
    html.push_str("</dl>\n");
    html
}

fn quota(html: &mut String, term: &str, name: &str, (used, limit): (u32, u32), note: &str) {
    let is_used_up = used >= limit;
    let state = if is_used_up { " <span class=\"badge\">used up</span>" } else { "" };
    // From four fifths on, the meter has another colour.
    let (most, high) = (limit.max(1), u64::from(limit) * 4 / 5);
    push(
        html,
        format_args!(
            "<dt>{term}</dt>\n<dd><span class=\"amount\">{} of {} requests{state}</span>\n\
             <meter aria-label=\"{}\" min=\"0\" max=\"{most}\" low=\"{high}\" high=\"{most}\" optimum=\"0\" value=\"{used}\">\
             {used} of {limit}</meter>\n<span class=\"hint\">{note}</span></dd>\n",
            grouped(used),
            grouped(limit),
            escape(name)
        ),
    );
}

/// The tier of an application or an account.
pub(super) fn tier(name: &str) -> String {
    format!("<span class=\"tier\">{}</span>", bdi(&capitalized(name)))
}
