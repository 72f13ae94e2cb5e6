//! Documentation of errors. Each code has a section with the code as its anchor. The `docs` field of an error links to
//! the section.

use crate::pages::PagesConfig;
use scoregate_base::routes::{
    bodies::{ERROR, ERROR_SOMETIMES, PROBLEM},
    codes::{CODES, CodeRow, ErrorCode},
    prices::PricedEnding,
};

use super::reference;
use crate::pages::{
    html::{code, escape, prose, stacking_table},
    sample,
};

/// Links to all sections, for the navigation.
pub fn links() -> String {
    let items = CODES
        .iter()
        .map(|row| format!("<li><a href=\"#{0}\">{0}</a></li>\n", row.word));
    items.collect()
}

/// All sections.
pub fn all(sign_up: bool) -> String {
    CODES.iter().map(|row| section(row, sign_up)).collect()
}

/// The remedy for an error. Accounts exist only if callers can sign up.
fn remedy(row: &CodeRow, sign_up: bool) -> &'static str {
    if row.code == ErrorCode::InvalidApiKey && !sign_up {
        "Check the key for typing errors. If it is correct, ask the operator for a new one."
    } else {
        row.remedy
    }
}

fn section(row: &CodeRow, sign_up: bool) -> String {
    let price = PricedEnding::Error(row.code).price();
    let costs = [
        (price.minute, "one request of the minute"),
        (price.day, "one of the day"),
        (price.guard, "one of the guard"),
    ];
    let costs: Vec<_> = costs
        .into_iter()
        .filter(|(units, _)| *units > 0)
        .map(|(_, words)| words)
        .collect();
    let costs = if costs.is_empty() {
        "nothing".into()
    } else {
        costs.join(", ")
    };
    let texts = [
        ("When", row.condition),
        ("Remedy", remedy(row, sign_up)),
        ("Costs", &costs),
    ]
    .map(|(term, text)| format!("<dt>{term}</dt><dd>{}</dd>", prose(text)));
    format!(
        "<section class=\"error\" id=\"{0}\" aria-labelledby=\"{0}-title\">\n\
         <h3 id=\"{0}-title\"><a class=\"self\" href=\"#{0}\"><code>{0}</code></a> <span class=\"status\">{1}</span></h3>\n\
         <p class=\"title\">{2}</p>\n<dl>{3}</dl>\n</section>\n",
        row.word,
        row.status.as_u16(),
        escape(row.title),
        texts.concat()
    )
}

/// The table of an error's fields.
pub fn fields() -> String {
    let mut rows = reference::rows("", ERROR);
    for field in ERROR_SOMETIMES {
        rows.extend(reference::rows("", std::slice::from_ref(field)));
    }
    rows.extend(PROBLEM.iter().map(|field| {
        vec![
            code(field.name),
            "string".into(),
            format!(
                "{} In <code>application/problem+json</code> only.",
                prose(field.meaning)
            ),
        ]
    }));
    stacking_table("Fields of an error", &["Field", "Type", "Meaning"], rows)
}

/// The error for an exhausted daily quota.
pub fn example(config: &PagesConfig) -> String {
    let version = sample::text_of(&config.version);
    format!(
        r#"{{
  "success": false,
  "version": {version},
  "status": 429,
  "code": "quota_exceeded",
  "message": "Wait until 2026-11-22T00:00:00Z. The daily quota of 10 requests is spent.",
  "limit": {{
    "name": "day",
    "quota": 10,
    "remaining": 0,
    "window_seconds": 86400,
    "reset_at": "2026-11-22T00:00:00Z",
    "retry_after": 38211
  }},
  "request_id": "01jd6v8k2m3n4p5q",
  "docs": "/docs#quota_exceeded"
}}"#
    )
}
