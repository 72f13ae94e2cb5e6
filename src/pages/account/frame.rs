//! The frame of every page: head, header, footer and notices. Also renders pages that contain only a message.

use super::{AccountSite, MessagePage, STYLE};
use crate::pages::{
    html::{AccountLink, escape, fill, link, site_header},
    paths::ACCOUNT,
};

const TEMPLATE: &str = include_str!("account.html");

/// A page. Title and heading are text; the body is HTML.
pub struct Frame<'a> {
    pub title: &'a str,
    /// The link that is marked in the header: `ACCOUNT` after signing in, `ACCOUNT_SIGN_IN` before that, none on a
    /// message page.
    pub current: &'a str,
    pub body: &'a str,
}

impl Frame<'_> {
    pub fn html(&self, site: &AccountSite) -> String {
        fill(TEMPLATE, |name| {
            Some(match name {
                "css" => STYLE.to_owned(),
                // The title comes last, so that characters that reverse text affect nothing after it.
                "title" => format!("{}: {}", escape(&site.service), escape(self.title)),
                "header" => self.header(site),
                "body" => self.body.to_owned(),
                "footer" => footer(site),
                _ => return None,
            })
        })
    }

    fn header(&self, site: &AccountSite) -> String {
        let account = if self.current == ACCOUNT {
            AccountLink::Account
        } else {
            AccountLink::SignIn
        };
        site_header(&site.service, site.has_status_page, account, self.current)
    }
}

fn footer(site: &AccountSite) -> String {
    let contact = site
        .contact_email
        .as_deref()
        .map(|email| format!("Contact: {}", mail_link(email)));
    let terms = site
        .terms_url
        .as_deref()
        .map(|url| link(url, "Terms of service"));
    let parts: Vec<_> = contact.into_iter().chain(terms).collect();
    if parts.is_empty() {
        return String::new();
    }
    format!("<footer>\n<p>{}</p>\n</footer>\n", parts.join(" · "))
}

/// A section with its heading. The content is HTML.
pub fn section(id: &str, heading: &str, content: &str) -> String {
    format!(
        "<section aria-labelledby=\"{id}-title\">\n<h2 id=\"{id}-title\">{heading}</h2>\n{content}</section>\n"
    )
}

/// A message about the last change, for the top of a page.
pub fn notice(text: Option<&str>) -> String {
    text.map_or_else(String::new, |text| {
        format!("<p class=\"notice\" role=\"status\">{}</p>\n", bdi(text))
    })
}

pub fn mail_link(email: &str) -> String {
    format!("<a href=\"mailto:{0}\">{0}</a>", escape(email))
}

/// Text that a person entered, isolated so that its direction does not affect the text around it.
pub fn bdi(text: &str) -> String {
    format!("<bdi>{}</bdi>", escape(text))
}

impl AccountSite {
    /// The page that shows a message.
    pub fn message(&self, page: &MessagePage<'_>) -> String {
        let paragraphs = page
            .paragraphs
            .iter()
            .map(|text| format!("<p dir=\"auto\">{}</p>\n", escape(text)));
        let onward = page.link.map_or_else(String::new, |(path, text)| {
            format!(
                "<p><a class=\"button\" href=\"{}\">{}</a></p>\n",
                escape(path),
                escape(text)
            )
        });
        let body = format!(
            "<h1 dir=\"auto\">{}</h1>\n{}{onward}",
            escape(page.title),
            paragraphs.collect::<String>()
        );
        Frame {
            title: page.title,
            current: "",
            body: &body,
        }
        .html(self)
    }
}
