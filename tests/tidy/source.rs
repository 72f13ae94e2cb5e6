//! Parses Rust as text: code, tests and paths. Supports only source formatted by rustfmt.

use crate::File;

/// The code without comments and test code. Line numbers are kept.
pub fn code(text: &str) -> String {
    let mut kept = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        kept.push(without_comment(line));
        if line.trim() == "#[cfg(test)]" {
            // rustfmt closes an item at its own indentation.
            let indent = indentation(line);
            for line in lines.by_ref() {
                kept.push("");
                let at_level = indentation(line) == indent;
                let trimmed = line.trim();
                let ends = trimmed == "}" || (trimmed.ends_with(';') && !trimmed.ends_with("};"));
                if at_level && (ends || trimmed == "};") {
                    break;
                }
            }
        }
    }
    kept.join("\n")
}

/// The indentation of a line.
pub fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The line up to its comment. A `//` in a string also counts as a comment unless it follows a colon, which does not
/// affect rules about paths.
fn without_comment(line: &str) -> &str {
    let comment = line
        .match_indices("//")
        .find(|(at, _)| !before(line, *at).ends_with([':', '/']));
    comment.map_or(line, |(at, _)| before(line, at))
}

fn before(text: &str, at: usize) -> &str {
    text.get(..at).unwrap_or(text)
}

/// Every path in the code that starts with `root::`, with groups expanded: `a::{b, c::d}` is `b` and `c::d`.
pub fn paths_from(code: &str, root: &str) -> Vec<Vec<String>> {
    let opening = format!("{root}::");
    let starts = code.match_indices(&opening).filter(|(at, _)| {
        let last = before(code, *at).chars().next_back();
        !last.is_some_and(|c| c.is_alphanumeric() || "_$:".contains(c))
    });
    let after = |at: usize| code.get(at + opening.len()..).unwrap_or("");
    starts
        .flat_map(|(at, _)| tree(&mut Tokens(after(at))))
        .collect()
}

struct Tokens<'t>(&'t str);

impl Tokens<'_> {
    fn takes(&mut self, token: &str) -> bool {
        let rest = self.0.trim_start().strip_prefix(token);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn word(&mut self) -> String {
        let text = self.0.trim_start();
        let end = text
            .find(|c: char| !(c.is_alphanumeric() || c == '_'))
            .unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        self.0 = rest;
        word.to_owned()
    }
}

fn tree(tokens: &mut Tokens<'_>) -> Vec<Vec<String>> {
    if tokens.takes("{") {
        let mut all = Vec::new();
        while !tokens.0.trim().is_empty() && !tokens.takes("}") {
            all.extend(tree(tokens));
            if tokens.takes("as ") {
                tokens.word();
            }
            if !tokens.takes(",") && !tokens.0.trim_start().starts_with('}') {
                break; // no list after all
            }
        }
        return all;
    }
    if tokens.takes("*") {
        return vec![vec!["*".into()]];
    }
    let word = tokens.word();
    if !tokens.takes("::") {
        return vec![vec![word]];
    }
    let with_head = |rest: Vec<String>| std::iter::once(word.clone()).chain(rest).collect();
    tree(tokens).into_iter().map(with_head).collect()
}

/// Whether a file is the root of a folder or a library.
pub fn is_root(file: &File) -> bool {
    file.path.ends_with("/mod.rs") || file.path.ends_with("/lib.rs")
}

/// Libraries that are one module of the program, by their name. The modules of the others keep their own names.
const MODULES: [&str; 2] = ["scoring", "store"];

/// The module that is the root of the file's crate, and the path of the file below the crate's `src/`.
fn place_of(path: &str) -> (Option<&str>, &str) {
    let library = path
        .strip_prefix("crates/")
        .and_then(|path| path.split_once("/src/"));
    library.map_or(
        (None, path.trim_start_matches("src/")),
        |(library, inner)| (MODULES.contains(&library).then_some(library), inner),
    )
}

/// Whether a file belongs to the program or to one of its libraries.
pub fn is_product(file: &File) -> bool {
    let is_of_a_crate = |path: &str| {
        path.split_once('/')
            .is_some_and(|(_, inner)| inner.starts_with("src/"))
    };
    file.is_rust()
        && (file.path.starts_with("src/")
            || file.path.strip_prefix("crates/").is_some_and(is_of_a_crate))
}

/// The module that is the root of the file's crate; nothing in the program and in libraries of several modules.
pub fn root_module(path: &str) -> Option<&str> {
    place_of(path).0
}

/// The module path of a file: `src/gateway/admit.rs` is `gateway::admit`, and `crates/store/src/feed.rs` is `store::feed`.
pub fn module_of(path: &str) -> Vec<String> {
    let (root, inner) = place_of(path);
    let parts = inner
        .trim_end_matches(".rs")
        .split('/')
        .filter(|part| !["mod", "lib", "main"].contains(part));
    root.into_iter().chain(parts).map(str::to_owned).collect()
}

#[test]
fn groups_of_imports_are_spelled_out() {
    let named = |code: &str| {
        paths_from(code, "crate")
            .iter()
            .map(|path| path.join("::"))
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(named("use crate::{a::{b, c as d}, e};"), "a::b a::c e");
    assert_eq!(
        named("use crate::a::{self, b::*};\nf(crate::g::h)"),
        "a::self a::b::* g::h"
    );
    assert_eq!(named("$crate::a; mycrate::b; x::crate::c"), "");
}

#[test]
fn comments_and_tests_are_no_code() {
    let text = "use a; // crate::b\nlet url = \"http://c\";\n#[cfg(test)]\nmod tests {\n    d\n}\n#[cfg(test)]\n\
                mod e;\nf\n";
    let code = code(text);
    for (part, is_code) in [
        ("use a;", true),
        ("b", false),
        ("//c", true),
        ("d", false),
        ("mod e", false),
    ] {
        assert_eq!(code.contains(part), is_code, "{part} in {code}");
    }
    assert_eq!(code.lines().count(), text.lines().count());
}
