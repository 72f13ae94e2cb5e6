//! Mail to owners as plain text and as HTML.

use std::time::Duration;

use crate::pages::escape;
use scoregate_base::clock::Wall;
use scoregate_store::{MailKind, NewMail};

/// Time after which an unsent mail is useless.
const LIFETIME: Duration = Duration::from_hours(72);

/// An email without its recipient. It ends with the page of accounts at `root`, if there is one.
pub(crate) fn letter(
    kind: MailKind,
    message_id: String,
    subject: String,
    message: String,
    root: &str,
    created_at: Wall,
) -> NewMail {
    let message = if root.is_empty() {
        message
    } else {
        format!(
            "{message}\n\nChoose your notices at {root}/account. If you have no account, you can request a link there to \
             stop all mail."
        )
    };
    NewMail {
        kind,
        recipient: String::new(),
        html: html(&subject, &message),
        text: message + "\n",
        subject,
        webhook: String::new(),
        message_id,
        created_at,
        expires_at: created_at.plus(LIFETIME),
    }
}

pub(crate) fn random_id() -> Result<String, getrandom::Error> {
    let mut id = [0; 16];
    getrandom::fill(&mut id)?;
    Ok(data_encoding::HEXLOWER.encode(&id))
}

/// The message as HTML, with its paragraphs.
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
    use crate::registry::letter::*;

    #[test]
    fn a_message_becomes_escaped_paragraphs() {
        let page = html("A & B", "Hello <you>,\nand \"all\".\n\n\n\nBye");
        assert!(page.contains("<title>A &amp; B</title>"), "{page}");
        let body = "<p>Hello &lt;you&gt;,<br>\nand &quot;all&quot;.</p>\n<p>Bye</p>\n</body>";
        assert!(page.contains(body), "{page}");
    }
}
