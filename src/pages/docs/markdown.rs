//! Converts the docs page to Markdown, for programs. Both have the same content. Only the elements that the template
//! and `html` use are supported. A test finds unconverted elements.

use crate::pages::escape::push;

/// The contents of the element `main` as Markdown.
pub fn markdown(page: &str) -> String {
    let main = page
        .split_once("<main")
        .and_then(|(_, rest)| rest.split_once("</main>"))
        .map_or("", |main| main.0);
    let mut converter = MarkdownConverter::default();
    // The first part is the rest of the opening tag.
    for part in main.split('<').skip(1) {
        let (tag, text) = part.split_once('>').unwrap_or(("", part));
        converter.tag(tag);
        converter.text(text);
    }
    let lines: Vec<&str> = converter.written.lines().map(str::trim_end).collect();
    let mut text = lines.join("\n");
    while text.contains("\n\n\n") {
        text = text.replace("\n\n\n", "\n\n");
    }
    text.trim().to_owned() + "\n"
}

#[derive(Default, PartialEq)]
enum CodeContext {
    #[default]
    Outside,
    Span,
    /// Preformatted text.
    Block,
}

#[derive(Default)]
struct MarkdownConverter {
    written: String,
    code: CodeContext,
    /// Number of cells read so far in the first row of a table. `None` outside the first row.
    heads: Option<usize>,
    is_row: bool,
    is_ordered: bool,
    /// The address of the current link, if it leads to another page.
    link: Option<String>,
}

/// The markup of a tag if it does not depend on the context.
fn fixed_markup(name: &str) -> &'static str {
    match name {
        "h1" => "\n\n# ",
        "h2" => "\n\n## ",
        "h3" => "\n\n### ",
        "h4" => "\n\n#### ",
        "p" | "/p" | "/h1" | "/h2" | "/h3" | "/h4" | "/ul" | "/ol" | "/dl" | "/table"
        | "/details" => "\n\n",
        "dt" => "\n- **",
        "/dt" => "**: ",
        "summary" => "\n\n**",
        "/summary" => "**\n\n",
        "th" | "td" => " ",
        _ => "",
    }
}

impl MarkdownConverter {
    fn tag(&mut self, tag: &str) {
        let name = tag.split_whitespace().next().unwrap_or(tag);
        match name {
            "ol" | "ul" => self.is_ordered = name == "ol",
            "li" => self
                .written
                .push_str(if self.is_ordered { "\n1. " } else { "\n- " }),
            "pre" => {
                self.code = CodeContext::Block;
                self.written.push_str("\n\n```\n");
            }
            "/pre" => {
                self.code = CodeContext::Outside;
                self.written.push_str("\n```\n\n");
            }
            "code" | "/code" if self.code != CodeContext::Block => {
                self.code = if name == "code" {
                    CodeContext::Span
                } else {
                    CodeContext::Outside
                };
                self.written.push('`');
            }
            "a" => self.begin_link(tag),
            "/a" => {
                if let Some(address) = self.link.take() {
                    push(&mut self.written, format_args!("]({address})"));
                }
            }
            "thead" => self.heads = Some(0),
            "tr" => {
                self.is_row = true;
                self.written.push_str("\n|");
            }
            "/tr" => self.is_row = false,
            "/th" | "/td" => {
                self.written.push_str(" |");
                self.heads = self.heads.map(|heads| heads + 1);
            }
            "/thead" => self.end_heads(),
            _ => self.written.push_str(fixed_markup(name)),
        }
    }

    /// Starts a link, unless the target is on the same page.
    fn begin_link(&mut self, tag: &str) {
        let address = tag
            .split_once("href=\"")
            .and_then(|(_, rest)| rest.split_once('"'));
        self.link = address
            .map(|(address, _)| plain(address))
            .filter(|to| !to.starts_with('#'));
        if self.link.is_some() {
            self.written.push('[');
        }
    }

    /// Writes the line below the headings of a table.
    fn end_heads(&mut self) {
        let heads = self.heads.take().unwrap_or_default();
        push(
            &mut self.written,
            format_args!("\n|{}", "---|".repeat(heads)),
        );
    }

    fn text(&mut self, text: &str) {
        let text = plain(text);
        if self.code == CodeContext::Block {
            self.written.push_str(&text);
            return;
        }
        let is_prose = self.code == CodeContext::Outside;
        let mut chars = text.chars().peekable();
        while let Some(char) = chars.next() {
            let is_markup = match char {
                '|' => self.is_row,
                '\\' | '[' | ']' | '*' | '_' | '`' => is_prose,
                '<' => {
                    is_prose
                        && chars
                            .peek()
                            .is_none_or(|next| next.is_ascii_alphabetic() || *next == '/')
                }
                _ => false,
            };
            self.written.push_str(if is_markup { "\\" } else { "" });
            if !char.is_ascii_whitespace() {
                self.written.push(char);
            } else if !self.written.ends_with(char::is_whitespace) {
                self.written.push(' ');
            }
        }
    }
}

/// Text without escapes.
fn plain(text: &str) -> String {
    let escapes = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&amp;", "&"),
    ];
    escapes
        .iter()
        .fold(text.to_owned(), |text, (escaped, plain)| {
            text.replace(escaped, plain)
        })
}

#[cfg(test)]
mod tests {
    use crate::pages::PagesConfig;

    use super::*;

    #[test]
    fn elements_of_the_page_become_markdown() {
        let page = "<p>outside</p><main id=\"content\"><h1>Title <span class=\"version\">1</span></h1>\n<p>A &lt;b&gt; &amp; \
            [c](d)</p><p>See <a href=\"#x\"><code>x</code></a> and <a\nhref=\"/other\">another\npage</a>, if a &lt; b.</p>\n<ol>\n<li>one</li>\n\
            <li>two</li>\n</ol><dl><dt>Term</dt><dd>Text</dd></dl>\n<table><thead><tr><th scope=\"col\">A</th><th \
            scope=\"col\">B</th></tr></thead><tbody>\n<tr><th scope=\"row\">1|3</th><td>2</td></tr>\n</tbody></table>\n\
            <pre tabindex=\"0\"><code>a <span class=\"s\">&quot;b&quot;</span>\n  c</code></pre></main><p>outside</p>";
        assert_eq!(
            markdown(page),
            "# Title 1\n\nA \\<b> & \\[c\\](d)\n\nSee `x` and [another page](/other), if a < b.\n\n1. one\n1. two\n\n- \
             **Term**: Text\n\n| A | B |\n|---|---|\n| 1\\|3 | 2 |\n\n```\na \"b\"\n  c\n```\n"
        );
    }

    #[test]
    fn the_page_has_every_endpoint_field_and_code_and_no_element_is_left() {
        let config = PagesConfig::default();
        let page = crate::pages::docs::page(&config);
        assert!(page.contains("<link rel=\"alternate\" type=\"text/markdown\" href=\"/docs.md\">"));
        let text = markdown(&page);
        for element in ["</", "<p>", "<p ", "<a ", "<div", "&lt;", "&amp;", "{{"] {
            assert!(!text.contains(element), "{element} in {text}");
        }
        for row in config.endpoints.iter() {
            let path = row.documented_path().replace("{id}", ":id");
            assert!(
                text.contains(&format!("### GET `{path}`")),
                "{path} in {text}"
            );
            for field in row.item {
                assert!(
                    text.contains(&format!("\n| `{}`", field.name)),
                    "{} in {text}",
                    field.name
                );
            }
        }
        for code in &scoregate_base::routes::codes::CODES {
            assert!(
                text.contains(&format!("### `{}`", code.word)),
                "{} in {text}",
                code.word
            );
        }
    }
}
