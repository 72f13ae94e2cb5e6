//! Mail as HTML. Mail programs support little CSS.

use super::escape::escape;

/// The message as HTML, with its paragraphs. Addresses of the site at `root` become links, because mail programs do not turn
/// addresses in HTML into links. Other addresses stay text, because anyone may have written them.
pub fn mail_html(subject: &str, message: &str, root: &str) -> String {
    let paragraphs = message.split("\n\n").filter(|text| !text.trim().is_empty());
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>{}</title></head>\n<body>\n",
        escape(subject)
    );
    for text in paragraphs {
        let words = text.trim_matches('\n').split_inclusive([' ', '\n']);
        let text: String = words.map(|word| word_html(word, root)).collect();
        html.push_str("<p>");
        html.push_str(&text.replace('\n', "<br>\n"));
        html.push_str("</p>\n");
    }
    html.push_str("</body>\n</html>\n");
    html
}

fn word_html(word: &str, root: &str) -> String {
    let path = word.strip_prefix(root).filter(|_| !root.is_empty());
    if !path.is_some_and(|path| path.starts_with('/')) {
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
    fn a_message_becomes_escaped_paragraphs_with_links_to_the_site() {
        let root = "https://api.example";
        let message = "Hello <you>,\nand \"all\".\n\n\n\nSee https://api.example/?a=1&b=2.\nhttps://api.example.org/";
        let page = mail_html("A & B", message, root);
        assert!(page.contains("<title>A &amp; B</title>"), "{page}");
        let body = "<p>Hello &lt;you&gt;,<br>\nand &quot;all&quot;.</p>\n\
                    <p>See <a href=\"https://api.example/?a=1&amp;b=2\">https://api.example/?a=1&amp;b=2</a>.<br>\n\
                    https://api.example.org/</p>\n</body>";
        assert!(page.contains(body), "{page}");
    }
}
