//! Escapes text for HTML. All text that is not a template passes through this module.

use std::fmt::Write as _;

/// Escapes text for an element or for an attribute in double quotes.
pub fn escape(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            other => html.push(other),
        }
    }
    html
}

/// Appends formatted text.
pub fn push(html: &mut String, more: std::fmt::Arguments<'_>) {
    html.write_fmt(more)
        .expect("writing to a string cannot fail");
}
