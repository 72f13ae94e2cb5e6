//! Renders mail as HTML. Mail programs support little CSS.

use super::escape::escape;

/// The message as HTML, with its paragraphs and links.
pub(crate) fn mail_html(subject: &str, message: &str) -> String {
    let paragraphs = message.split("\n\n").filter(|text| !text.trim().is_empty());
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>{}</title></head>\n<body>\n",
        escape(subject)
    );
    for text in paragraphs {
        let words = text.trim_matches('\n').split_inclusive([' ', '\n']);
        let text: String = words.map(word_html).collect();
        html.push_str("<p>");
        html.push_str(&text.replace('\n', "<br>\n"));
        html.push_str("</p>\n");
    }
    html.push_str("</body>\n</html>\n");
    html
}

/// Renders a word of a message. A URL becomes a link, because mail programs do not turn URLs in HTML into links.
fn word_html(word: &str) -> String {
    if !word.starts_with("https://") && !word.starts_with("http://") {
        return escape(word);
    }
    let length = word.trim_end().trim_end_matches(['.', ',']).len();
    let (address, end) = word.split_at(length);
    let address = escape(address);
    format!("<a href=\"{address}\">{address}</a>{}", escape(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_becomes_escaped_paragraphs_with_links() {
        let message = "Hello <you>,\nand \"all\".\n\n\n\nSee https://api.example/?a=1&b=2.\nBye";
        let page = mail_html("A & B", message);
        assert!(page.contains("<title>A &amp; B</title>"), "{page}");
        let body = "<p>Hello &lt;you&gt;,<br>\nand &quot;all&quot;.</p>\n\
                    <p>See <a href=\"https://api.example/?a=1&amp;b=2\">https://api.example/?a=1&amp;b=2</a>.<br>\nBye</p>\n</body>";
        assert!(page.contains(body), "{page}");
    }
}
