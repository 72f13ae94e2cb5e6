//! Syntax highlighting on the docs page: strings, numbers, keywords and comments in spans for the style sheet.
//!
//! Done once at start, so it needs no script. Unrecognised code stays plain.

use super::escape::{escape, push};

/// The language of a code block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CodeLanguage {
    /// JSON: names and values have different colours.
    Json,
    /// Shell or Python, whose comments begin with `#`.
    Hash,
    /// JavaScript, whose comments begin with `//`.
    Slashes,
}

impl CodeLanguage {
    fn comment(self) -> Option<&'static str> {
        match self {
            Self::Json => None,
            Self::Hash => Some("#"),
            Self::Slashes => Some("//"),
        }
    }

    fn words(self) -> &'static [&'static str] {
        match self {
            Self::Json => &["true", "false", "null"],
            Self::Hash => &[
                "curl", "export", "import", "with", "for", "in", "as", "print",
            ],
            Self::Slashes => &["const", "await", "if", "throw", "new", "for", "of"],
        }
    }
}

/// Highlights code as HTML.
pub(super) fn coloured(language: CodeLanguage, code: &str) -> String {
    let mut html = String::with_capacity(code.len() * 2);
    let mut rest = code;
    let mut before = '\n';
    while let Some(first) = rest.chars().next() {
        let (class, length) = token(language, before, first, rest);
        let (text, after) = rest.split_at(length);
        match class {
            Some(class) => push(
                &mut html,
                format_args!("<span class=\"{class}\">{}</span>", escape(text)),
            ),
            None => html.push_str(&escape(text)),
        }
        before = text.chars().next_back().unwrap_or(first);
        rest = after;
    }
    html
}

/// The class and the length in bytes of the first token.
fn token(
    language: CodeLanguage,
    before: char,
    first: char,
    rest: &str,
) -> (Option<&'static str>, usize) {
    let begins_a_word = !before.is_alphanumeric() && before != '_';
    let until = |stop: &dyn Fn(char) -> bool| rest.find(stop).unwrap_or(rest.len());
    if language
        .comment()
        .is_some_and(|mark| rest.starts_with(mark))
        && before.is_whitespace()
    {
        return (Some("c"), until(&|char| char == '\n'));
    }
    if matches!(first, '"' | '`') {
        let length = text_length(rest, first);
        let is_name = rest
            .get(length..)
            .is_some_and(|after| after.starts_with(':'));
        return (Some(if is_name { "k" } else { "s" }), length);
    }
    if begins_a_word && first.is_ascii_digit() {
        return (
            Some("n"),
            until(&|char| !char.is_ascii_digit() && char != '.'),
        );
    }
    if begins_a_word && first.is_ascii_alphabetic() {
        let length = until(&|char| !char.is_alphanumeric() && char != '_');
        let is_known = rest
            .get(..length)
            .is_some_and(|word| language.words().contains(&word));
        return (is_known.then_some("w"), length);
    }
    (None, first.len_utf8())
}

/// Length of a quoted string, quotes included.
fn text_length(rest: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, char) in rest.char_indices().skip(1) {
        if char == quote && !is_escaped {
            return at + quote.len_utf8();
        }
        is_escaped = char == '\\' && !is_escaped;
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_coloured_by_kind() {
        for (language, code, html) in [
            (
                CodeLanguage::Json,
                r#"{"a": [1.5, "b:c", null]}"#,
                "{<span class=\"k\">&quot;a&quot;</span>: [<span class=\"n\">1.5</span>, <span class=\"s\">&quot;b:c&quot;</span>, <span class=\"w\">null</span>]}",
            ),
            (
                CodeLanguage::Hash,
                "export A=b   # x",
                "<span class=\"w\">export</span> A=b   <span class=\"c\"># x</span>",
            ),
            (
                CodeLanguage::Slashes,
                "\"https://x\" // y",
                "<span class=\"s\">&quot;https://x&quot;</span> <span class=\"c\">// y</span>",
            ),
            (
                CodeLanguage::Json,
                r#""a\"b" "#,
                "<span class=\"s\">&quot;a\\&quot;b&quot;</span> ",
            ),
        ] {
            assert_eq!(coloured(language, code), html);
        }
    }

    #[test]
    fn removing_the_markup_restores_the_code() {
        for code in [
            "",
            "\"",
            "\\",
            "\"\\",
            "`é`5é \"ü",
            "<b>&'\"</b> 7up x7 // # \u{1f326}",
        ] {
            for language in [
                CodeLanguage::Json,
                CodeLanguage::Hash,
                CodeLanguage::Slashes,
            ] {
                let html = coloured(language, code);
                let bare: String = html
                    .split('<')
                    .enumerate()
                    .map(|(at, part)| {
                        if at == 0 {
                            part
                        } else {
                            part.split_once('>').unwrap().1
                        }
                    })
                    .collect();
                assert_eq!(bare, escape(code), "{language:?}");
            }
        }
    }
}
