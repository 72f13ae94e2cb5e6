//! References in the documents must exist: files by path, types by name.

use std::collections::HashSet;

use crate::{File, found, none, source::code, tree};

/// The documents about the source tree, besides those in `docs/`.
const DOCUMENTS: [&str; 6] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    ".github/SECURITY.md",
    "deploy/README.md",
];

/// Endings of file names.
const ENDINGS: [&str; 11] = [
    ".rs", ".md", ".toml", ".sh", ".html", ".css", ".yml", ".yaml", ".json", ".lock", ".py",
];

/// Files that the reader creates.
const CREATED_BY_READERS: [&str; 1] = ["scoregate.toml"];

/// Texts in backquotes outside fenced blocks, and the targets of links.
pub fn pointers(text: &str) -> Vec<String> {
    let mut pointers = Vec::new();
    let mut is_fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        } else if !is_fenced {
            pointers.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
            let links = line
                .split("](")
                .skip(1)
                .filter_map(|rest| rest.split(')').next());
            pointers.extend(links.map(|link| link.split('#').next().unwrap_or(link).to_owned()));
        }
    }
    pointers
}

fn is_file_name(word: &str) -> bool {
    let plain = !word.starts_with('/')
        && !word.contains("://")
        && !word.contains([' ', '*', '<', '{', '$']);
    let ends_like_one = ENDINGS
        .iter()
        .any(|ending| word.ends_with(ending) && word.len() > ending.len());
    plain && (ends_like_one || (word.ends_with('/') && word.len() > 1) || word.starts_with(".ci/"))
}

fn missing_files(all: &[File]) -> Vec<String> {
    let is_there = |name: &str| {
        let name = name.trim_start_matches("../");
        let beside = ["docs", "docs/design"].map(|folder| format!("{folder}/{name}"));
        let matches = |path: &str| {
            path == name
                || beside.iter().any(|beside| path == beside)
                || (name.ends_with('/') && path.starts_with(name))
        };
        all.iter().any(|file| {
            matches(&file.path)
                || file
                    .path
                    .split_once("src/")
                    .is_some_and(|(_, inner)| matches(inner))
        })
    };
    let is_document = |path: &str| DOCUMENTS.contains(&path) || path.starts_with("docs/");
    let mut findings = Vec::new();
    for document in all.iter().filter(|file| is_document(&file.path)) {
        let names = pointers(&document.text)
            .into_iter()
            .filter(|word| is_file_name(word));
        let lost =
            names.filter(|name| !CREATED_BY_READERS.contains(&name.as_str()) && !is_there(name));
        findings.extend(lost.map(|name| format!("{}: there is no `{name}`", document.path)));
    }
    findings
}

/// A type name in the form that documents use: `Refusal`, or `Gateway::handle`.
fn is_symbol(word: &str) -> bool {
    let head = word.split("::").next().unwrap_or(word);
    head.starts_with(|c: char| c.is_ascii_uppercase())
        && head.contains(|c: char| c.is_ascii_lowercase())
        && word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == ':' || c == '_')
}

fn missing_symbols(all: &[File]) -> Vec<String> {
    let mut words = HashSet::new();
    for file in all
        .iter()
        .filter(|file| file.is_rust() && file.path.contains("src/"))
    {
        let code = code(&file.text);
        words.extend(
            code.split(|c: char| !(c.is_alphanumeric() || c == '_'))
                .map(str::to_owned),
        );
    }
    let mut findings = Vec::new();
    let is_map = |path: &str| path == "ARCHITECTURE.md" || path.starts_with("docs/design/");
    for document in all.iter().filter(|file| is_map(&file.path)) {
        for symbol in pointers(&document.text)
            .into_iter()
            .filter(|word| is_symbol(word))
        {
            if symbol
                .split("::")
                .any(|part| !part.is_empty() && !words.contains(part))
            {
                findings.push(format!("{}: the source has no `{symbol}`", document.path));
            }
        }
    }
    findings
}

#[test]
fn the_documents_name_only_files_that_exist() {
    let files = tree();
    assert!(
        files.iter().any(|file| file.path == "README.md"),
        "there is no README"
    );
    none(&missing_files(&files));
}

#[test]
fn the_map_names_only_types_that_exist() {
    none(&missing_symbols(&tree()));
}

#[test]
fn the_pointer_test_fails_when_a_document_names_a_file_that_is_not_there() {
    let there = || File::planted("src/gateway/mod.rs", "");
    for good in [
        "`gateway/mod.rs`",
        "[line](src/gateway/mod.rs#x)",
        "`src/gateway/`",
        "`/docs`",
        "`a/b`",
    ] {
        none(&missing_files(&[File::planted("README.md", good), there()]));
    }
    for bad in [
        "`gateway/line.rs`",
        "[map](MAP.md)",
        "`benches/`",
        "`.ci/nothing`",
    ] {
        found(
            &missing_files(&[File::planted("README.md", bad), there()]),
            1,
            "there is no",
        );
    }
    none(&missing_files(&[File::planted(
        "README.md",
        "```\n`a.rs`\n```\n",
    )]));
}

#[test]
fn the_symbol_test_fails_when_the_map_names_a_type_that_is_not_there() {
    let there = || {
        File::planted(
            "src/gateway/mod.rs",
            "pub struct Gateway;\nfn handle() {} // Ghost",
        )
    };
    none(&missing_symbols(&[
        File::planted("ARCHITECTURE.md", "`Gateway::handle` `GET`"),
        there(),
    ]));
    found(
        &missing_symbols(&[File::planted("ARCHITECTURE.md", "`Ghost`"), there()]),
        1,
        "Ghost",
    );
    found(
        &missing_symbols(&[File::planted("ARCHITECTURE.md", "`Gateway::spin`"), there()]),
        1,
        "spin",
    );
}
