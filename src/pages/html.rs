//! Minimal HTML generation: templates, tables, code. All text that is not a template is escaped. No page is built from
//! a request.

pub use super::escape::{escape, push};
use super::paths::{ACCOUNT, ACCOUNT_SIGN_IN, DOCS, OPENAPI, STATUS};
use scoregate_base::clock::Wall;

/// The search form. It opens the docs page, whose script shows the results. If scripts are disabled, the style sheet
/// hides the form.
const SEARCH: &str = "<form class=\"search\" role=\"search\" action=\"/docs\"><label class=\"unseen\" for=\"search\">Search the documentation</label>\
    <input type=\"search\" id=\"search\" name=\"search\" placeholder=\"Search docs\" autocomplete=\"off\"></form>\n";

#[derive(Clone, Copy)]
pub enum AccountLink {
    /// There is no link, because callers cannot sign up.
    Absent,
    /// The reader is unknown or not signed in.
    SignIn,
    /// The reader is signed in.
    Account,
}

impl AccountLink {
    /// The account link on pages that are the same for all readers.
    pub fn for_all(sign_up: bool) -> Self {
        if sign_up { Self::SignIn } else { Self::Absent }
    }
}

/// The header of every page, with the same links and the same search in the same places. The link to `current`, which
/// is the page itself or the page to which it belongs, is marked.
pub fn site_header(
    service: &str,
    has_status_page: bool,
    account: AccountLink,
    current: &str,
) -> String {
    let account = match account {
        AccountLink::Absent => None,
        AccountLink::SignIn => Some((ACCOUNT_SIGN_IN, "Sign in")),
        AccountLink::Account => Some((ACCOUNT, "Account")),
    };
    let status = has_status_page.then_some((STATUS, "Status"));
    let links = [
        Some((DOCS, "Documentation")),
        Some((OPENAPI, "OpenAPI")),
        status,
        account,
    ];
    let links = links.into_iter().flatten();
    let links: String = links
        .map(|(path, text)| header_link(path, text, current))
        .collect();
    let brand = header_link("/", &escape(service), current);
    format!(
        "<header>\n<p class=\"brand\">{brand}</p>\n<nav aria-label=\"Service\">\n{links}</nav>\n{SEARCH}</header>\n"
    )
}

fn header_link(path: &str, text: &str, current: &str) -> String {
    let mark = if path == current {
        " aria-current=\"page\""
    } else {
        ""
    };
    format!("<a href=\"{path}\"{mark}>{text}</a>\n")
}

/// A sentence from the tables as HTML. Text between backticks is code.
pub fn prose(text: &str) -> String {
    let mut html = String::with_capacity(text.len() + 16);
    for (at, part) in text.split('`').enumerate() {
        html.push_str(&if at % 2 == 1 {
            code(part)
        } else {
            escape(part)
        });
    }
    html
}

/// Replaces the placeholders `{{name}}` of a template in one pass, so a value that looks like a placeholder is not
/// replaced. A placeholder without a value stays in the text, where a test finds it.
pub fn fill(template: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let mut html = String::with_capacity(template.len() * 2);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        html.push_str(before);
        let Some((name, after)) = after.split_once("}}") else {
            html.push_str("{{");
            rest = after;
            continue;
        };
        html.push_str(&value(name).unwrap_or_else(|| format!("{{{{{name}}}}}")));
        rest = after;
    }
    html.push_str(rest);
    html
}

/// A table with a heading for each column. The cells are HTML. On narrow screens the table scrolls, so it can be
/// focused by keyboard and has a name.
pub fn table(name: &str, heads: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    table_of("scroll", name, heads, rows, false)
}

/// A table of text. On narrow screens the cells of a row are stacked.
pub fn stacking_table(
    name: &str,
    heads: &[&str],
    rows: impl IntoIterator<Item = Vec<String>>,
) -> String {
    table_of("scroll stack", name, heads, rows, false)
}

/// A table of numbers. On narrow screens a row is a card in which each cell has the heading of its column.
pub fn card_table(
    name: &str,
    heads: &[&str],
    rows: impl IntoIterator<Item = Vec<String>>,
) -> String {
    table_of("scroll stack cards", name, heads, rows, true)
}

fn table_of(
    class: &str,
    name: &str,
    heads: &[&str],
    rows: impl IntoIterator<Item = Vec<String>>,
    is_labelled: bool,
) -> String {
    let name = escape(name);
    let mut html = format!(
        "<div class=\"{class}\" role=\"group\" aria-label=\"{name}\" tabindex=\"0\"><table><thead><tr>"
    );
    for head in heads {
        push(
            &mut html,
            format_args!("<th scope=\"col\">{}</th>", escape(head)),
        );
    }
    html.push_str("</tr></thead><tbody>\n");
    for row in rows {
        html.push_str("<tr>");
        for (column, cell) in row.into_iter().enumerate() {
            let head = heads.get(column).filter(|_| is_labelled);
            let label = head.map_or_else(String::new, |head| {
                format!(" data-label=\"{}\"", escape(head))
            });
            let (open, close) = if column == 0 {
                ("<th scope=\"row\"", "</th>")
            } else {
                ("<td", "</td>")
            };
            push(&mut html, format_args!("{open}{label}>{cell}{close}"));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table></div>\n");
    html
}

/// A named block of code. The block scrolls, so it can be focused by keyboard.
pub fn code_block(name: &str, code: &str) -> String {
    let name = escape(name);
    let code = escape(code);
    format!("<pre tabindex=\"0\" role=\"group\" aria-label=\"{name}\"><code>{code}</code></pre>\n")
}

/// Inline code.
pub fn code(word: &str) -> String {
    format!("<code>{}</code>", escape(word))
}

/// Formats a time to the minute.
pub fn time(at: Wall) -> String {
    let exact = Wall::from_seconds(at.seconds() / 60 * 60).rfc3339();
    let words = exact.replace('T', " ").replace(":00Z", " UTC");
    format!("<time datetime=\"{exact}\">{words}</time>")
}

/// Formats the day of a time.
pub fn date(at: Wall) -> String {
    format!("<time datetime=\"{0}\">{0}</time>", at.day())
}

/// Formats a number with thousands separators, such as `250,000`.
pub fn grouped(number: impl Into<u128>) -> String {
    let digits = number.into().to_string();
    let lead = digits.len() % 3;
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && at % 3 == lead {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A link. Neither the address nor the text is HTML.
pub fn link(href: &str, text: &str) -> String {
    format!("<a href=\"{}\">{}</a>", escape(href), escape(text))
}

/// A name with a capital first letter.
pub fn capitalized(name: &str) -> String {
    let mut chars = name.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(chars).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        assert_eq!(
            escape("<a href='x' b=\"y\">&"),
            "&lt;a href=&#39;x&#39; b=&quot;y&quot;&gt;&amp;"
        );
        assert_eq!(prose("say `a<b` now"), "say <code>a&lt;b</code> now");
    }

    #[test]
    fn the_header_links_what_exists_and_marks_the_page() {
        let header = |has_status_page, account, current| {
            site_header("<S>", has_status_page, account, current)
        };
        let plain = header(false, AccountLink::for_all(false), DOCS);
        assert!(plain.contains("<a href=\"/\">&lt;S&gt;</a>"));
        assert!(
            header(false, AccountLink::Absent, "/")
                .contains("<a href=\"/\" aria-current=\"page\">&lt;S&gt;</a>")
        );
        assert!(plain.contains("<a href=\"/docs\" aria-current=\"page\">Documentation</a>"));
        assert!(!plain.contains(STATUS) && !plain.contains(ACCOUNT));
        let whole = header(true, AccountLink::for_all(true), STATUS);
        assert!(whole.contains("<a href=\"/status\" aria-current=\"page\">Status</a>"));
        assert!(whole.contains("<a href=\"/account/sign-in\">Sign in</a>"));
        assert!(
            header(true, AccountLink::Account, "").contains("<a href=\"/account\">Account</a>")
        );
    }

    #[test]
    fn a_value_that_looks_like_a_placeholder_is_text() {
        let value = |name: &str| (name == "a").then(|| String::from("{{b}}"));
        assert_eq!(fill("x {{a}} y {{b}} {{", value), "x {{b}} y {{b}} {{");
    }

    #[test]
    fn numbers_are_grouped_by_thousands() {
        for (number, text) in [
            (7_u64, "7"),
            (999, "999"),
            (1_000, "1,000"),
            (25_000, "25,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(grouped(number), text);
        }
        assert_eq!(grouped(u64::MAX), "18,446,744,073,709,551,615");
    }
}
