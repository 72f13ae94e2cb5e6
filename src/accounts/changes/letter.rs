//! Mail to owners as plain text and as HTML.

use std::time::Duration;

use crate::pages::escape;
use scoregate_base::clock::Wall;
use scoregate_store::{MailKind, NewMail};

/// Mails that were not sent until then are of no use any more.
const LIFETIME: Duration = Duration::from_hours(72);

/// A mail without its recipient.
pub(super) struct Letter {
    subject: String,
    text: String,
    html: String,
    /// The part of message ids that is unique to this letter.
    id: String,
    domain: String,
    pub(super) created_at: Wall,
}

impl Letter {
    pub(super) fn new(
        subject: String,
        message: String,
        domain: &str,
        created_at: Wall,
    ) -> Result<Self, getrandom::Error> {
        let mut id = [0; 16];
        getrandom::fill(&mut id)?;
        Ok(Self::with_id(data_encoding::HEXLOWER.encode(&id), subject, message, domain, created_at))
    }

    pub(super) fn with_id(
        id: String,
        subject: String,
        message: String,
        domain: &str,
        created_at: Wall,
    ) -> Self {
        let (html, text) = (html(&subject, &message), message + "\n");
        Self { subject, text, html, id, domain: domain.to_owned(), created_at }
    }

    /// The only mail of this letter. The recipient is unknown here.
    pub(super) fn notice(self, kind: MailKind) -> NewMail {
        NewMail { kind, message_id: format!("{}@{}", self.id, self.domain), ..self.mail(0, "") }
    }

    pub(super) fn mail(&self, number: usize, recipient: &str) -> NewMail {
        NewMail {
            kind: MailKind::Notice,
            recipient: recipient.to_owned(),
            subject: self.subject.clone(),
            text: self.text.clone(),
            html: self.html.clone(),
            webhook: String::new(),
            message_id: format!("{}.{number}@{}", self.id, self.domain),
            created_at: self.created_at,
            expires_at: self.created_at.plus(LIFETIME),
        }
    }
}

/// The message with a paragraph for each of its own.
fn html(subject: &str, message: &str) -> String {
    let paragraphs = message.split("\n\n").filter(|text| !text.trim().is_empty());
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>{}</title></head>\n<body>\n",
        escape(subject)
    );
    for text in paragraphs {
        html.push_str("<p>");
        html.push_str(&escape(text.trim_matches('\n')).replace('\n', "<br>\n"));
        html.push_str("</p>\n");
    }
    html.push_str("</body>\n</html>\n");
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_becomes_escaped_paragraphs() {
        let page = html("A & B", "Hello <you>,\nand \"all\".\n\n\n\nBye");
        assert!(page.contains("<title>A &amp; B</title>"), "{page}");
        let body = "<p>Hello &lt;you&gt;,<br>\nand &quot;all&quot;.</p>\n<p>Bye</p>\n</body>";
        assert!(page.contains(body), "{page}");
    }
}
