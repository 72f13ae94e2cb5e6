//! The density of the source: tokens of a function, statements in one `let`, and paths that count folders.
//!
//! Tokens are names, numbers and single characters of punctuation, so that formatting does not change them. A text counts
//! as one token.

#![expect(
    clippy::indexing_slicing,
    reason = "every position was found in the same tokens"
)]

use crate::{
    File, found, none,
    source::{code, is_product},
    tree,
};

const MOST_TOKENS: usize = 350;

/// Functions that are tables, each with the reason. They may be long.
const TABLES: [(&str, &str); 2] = [
    ("src/gateway/refusal.rs traits", "one row for each refusal"),
    (
        "src/site/site_refusal.rs row",
        "one row for each refusal of a page",
    ),
];

/// A violation: the rule, the file and the function.
type Place = String;

/// The code with each text replaced by one character, so that no bracket or name is part of a text.
fn without_texts(code: &str) -> String {
    let mut kept = String::new();
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let length = text_length(rest, kept.chars().next_back());
        let (taken, after) = rest.split_at(length.unwrap_or(first.len_utf8()));
        kept.push_str(if length.is_some() { "\"" } else { taken });
        rest = after;
    }
    kept
}

/// The length of the text or character that `code` starts with, if it starts with one.
fn text_length(code: &str, previous: Option<char>) -> Option<usize> {
    let is_in_name = previous.is_some_and(|last| last.is_alphanumeric() || last == '_');
    let raw = code.strip_prefix('b').unwrap_or(code);
    if let Some(raw) = raw.strip_prefix('r')
        && !is_in_name
    {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        let (hashes, quoted) = raw.split_at(hashes);
        if let Some(inner) = quoted.strip_prefix('"') {
            let closing = format!("\"{hashes}");
            let end = inner.find(&closing)? + closing.len();
            return Some(code.len() - inner.len() + end);
        }
    }
    if let Some(inner) = code.strip_prefix('"') {
        return Some(1 + unescaped(inner, '"')?);
    }
    let inner = code.strip_prefix('\'')?;
    let end = unescaped(inner, '\'')?;
    let is_character = inner.starts_with('\\') || inner.chars().nth(1) == Some('\'');
    is_character.then_some(1 + end)
}

/// The length up to and with the first `closing` that no backslash precedes.
fn unescaped(text: &str, closing: char) -> Option<usize> {
    let mut is_escaped = false;
    for (at, found) in text.char_indices() {
        if found == closing && !is_escaped {
            return Some(at + 1);
        }
        is_escaped = found == '\\' && !is_escaped;
    }
    None
}

fn tokens(code: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let end = match rest.find(|c| !is_word(c)) {
            Some(0) => first.len_utf8(),
            Some(end) => end,
            None => rest.len(),
        };
        let (token, after) = rest.split_at(end);
        tokens.push(token);
        rest = after.trim_start();
    }
    tokens
}

/// The index after the bracket that closes the one at `opened`.
fn closed(tokens: &[&str], opened: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(opened) {
        match *token {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

/// A function: its name, its parameters and its body.
struct Function<'t> {
    name: &'t str,
    parameters: &'t [&'t str],
    body: &'t [&'t str],
}

fn functions<'t>(tokens: &'t [&'t str]) -> Vec<Function<'t>> {
    let mut functions = Vec::new();
    for (at, pair) in tokens.windows(2).enumerate() {
        let ["fn", name] = *pair else { continue };
        let Some(opened) = position(tokens, at, &["("]) else {
            continue;
        };
        let signature = closed(tokens, opened);
        let Some(body) = position(tokens, signature, &["{", ";"]) else {
            continue;
        };
        if tokens[body] == "{" {
            functions.push(Function {
                name,
                parameters: &tokens[opened + 1..signature - 1],
                body: &tokens[body..closed(tokens, body)],
            });
        }
    }
    functions
}

/// The first of these tokens from `start` that is in no bracket opened after it.
fn position(tokens: &[&str], start: usize, wanted: &[&str]) -> Option<usize> {
    let mut at = start;
    while at < tokens.len() {
        if wanted.contains(&tokens[at]) {
            return Some(at);
        }
        at = if ["(", "["].contains(&tokens[at]) {
            closed(tokens, at)
        } else {
            at + 1
        };
    }
    None
}

/// Whether the tokens are names, with `mut` or not, separated by commas.
fn are_names(tokens: &[&str]) -> bool {
    let mut names = tokens
        .split(|token| *token == ",")
        .filter(|part| !part.is_empty());
    let is_name = |part: &[&str]| {
        let part = part.strip_prefix(&["mut"]).unwrap_or(part);
        let [name] = part else { return false };
        name.starts_with(|first: char| first.is_lowercase() || first == '_')
    };
    names.all(is_name)
}

/// Statements that bind names to the parts of a tuple that they write down. A statement that swaps uses a name of its left
/// side on its right side.
fn tuple_statements(body: &[&str]) -> usize {
    let starts = body
        .windows(2)
        .enumerate()
        .filter(|(_, pair)| *pair == ["let", "("]);
    let binds = |at: usize| {
        let end = closed(body, at + 1);
        let names = &body[at + 2..end - 1];
        let is_bound = body[end..].starts_with(&["=", "("]);
        let after = closed(body, end + usize::from(is_bound));
        let right = &body[end..after.max(end)];
        let swaps = names
            .iter()
            .any(|name| *name != "," && *name != "mut" && right.contains(name));
        is_bound && are_names(names) && body.get(after) == Some(&";") && !swaps
    };
    starts.filter(|(at, _)| binds(*at)).count()
}

/// Parameters that are tuples of names, such as `(a, b): (u8, u8)`.
fn tuple_parameters(parameters: &[&str]) -> bool {
    let mut at = 0;
    while at < parameters.len() {
        let end = match parameters[at] {
            "(" | "[" => closed(parameters, at),
            _ => at + 1,
        };
        let is_typed = parameters.get(end) == Some(&":") && parameters.get(end + 1) != Some(&":");
        if parameters[at] == "(" && is_typed && are_names(&parameters[at + 1..end - 1]) {
            return true;
        }
        at = end;
    }
    false
}

/// Whether only tests compile the file.
fn is_test(file: &File) -> bool {
    let marks = [
        "/tests/",
        "/tests.rs",
        "/tests_of_",
        "/conformance/",
        "schedules.rs",
    ];
    marks.iter().any(|mark| file.path.contains(mark))
}

fn dense_places(all: &[File]) -> Vec<Place> {
    let mut places = Vec::new();
    for file in all.iter().filter(|file| is_product(file) && !is_test(file)) {
        let path = &file.path;
        let code = without_texts(&code(&file.text));
        let tokens = tokens(&code);
        for Function {
            name,
            parameters,
            body,
        } in functions(&tokens)
        {
            let place = format!("{path} {name}");
            let is_table = TABLES.iter().any(|(table, _)| *table == place);
            if body.len() > MOST_TOKENS && !is_table {
                places.push(format!("long function: {path} {name}"));
            }
            if tuple_statements(body) > 0 {
                places.push(format!("statement of a tuple: {path} {name}"));
            }
            if tuple_parameters(parameters) {
                places.push(format!("parameter of a tuple: {path} {name}"));
            }
        }
        if code.contains("super::super::") {
            places.push(format!("super::super: {path}"));
        }
    }
    places
}

#[test]
fn functions_are_light_and_statements_bind_one_name() {
    none(&dense_places(&tree()));
}

#[test]
fn each_rule_of_density_finds_what_is_planted() {
    let calls = |count: usize| format!("fn f() {{\n{}}}\n", "    a();\n".repeat(count));
    let planted = [
        ("long function", calls(88)),
        (
            "statement of a tuple",
            "fn f() {\n    let (a, mut b) = (c(), \"(\");\n}\n".into(),
        ),
        (
            "parameter of a tuple",
            "fn f(&self, (a, b): (u8, u8)) {}\n".into(),
        ),
        ("super::super", "use super::super::a;\n".into()),
    ];
    for (rule, text) in planted {
        found(&dense_places(&[File::planted("src/a.rs", &text)]), 1, rule);
    }
    let allowed = [
        calls(87),
        "fn f() {\n    let (a, b) = (b, a);\n    let (a, b) = c((d, e));\n}\n".into(),
        "fn f() {\n    let (Some(a), b) = (c, d) else { return };\n}\n".into(),
        "fn f(pair: (u8, u8), g: impl Fn(u8)) {}\n".into(),
        "fn f() {\n    let a = \"super::super let (a, b) = (c, d);\";\n}\n".into(),
    ];
    for text in allowed {
        none(&dense_places(&[File::planted("src/a.rs", &text)]));
    }
}
