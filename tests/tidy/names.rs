//! Type names: each is unique in the crate, so that a name in a review, a backtrace or a search means one type.

use std::collections::BTreeMap;

use crate::{
    File, found, none,
    source::{code, is_product},
    tree,
};

/// Names that several types may have, each with its reason.
const SHARED: &[(&str, &str)] = &[];

/// The types that a file defines at the top level.
fn types_of(file: &File) -> Vec<String> {
    let code = code(&file.text);
    let names = code
        .lines()
        .filter(|line| !line.starts_with(char::is_whitespace))
        .filter_map(|line| {
            let item = ["pub(crate) ", "pub(super) ", "pub "]
                .iter()
                .find_map(|vis| line.strip_prefix(vis));
            let mut words = item.unwrap_or(line).split_whitespace();
            let is_type = ["struct", "enum", "trait", "type", "union"].contains(&words.next()?);
            let name = words.next().filter(|_| is_type)?;
            name.split(|c: char| !c.is_alphanumeric())
                .next()
                .map(str::to_owned)
        });
    names.collect()
}

/// The files that define each type.
fn definitions(all: &[File]) -> BTreeMap<String, Vec<&str>> {
    let mut by_name: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for file in all.iter().filter(|file| is_product(file)) {
        for name in types_of(file) {
            by_name.entry(name).or_default().push(&file.path);
        }
    }
    by_name
}

fn shared_names(all: &[File]) -> Vec<String> {
    let is_allowed = |name: &str| SHARED.iter().any(|(allowed, _)| *allowed == name);
    let shared = definitions(all)
        .into_iter()
        .filter(|(name, files)| files.len() > 1 && !is_allowed(name));
    shared
        .map(|(name, files)| format!("`{name}` names a type in {}", files.join(", ")))
        .collect()
}

#[test]
fn no_two_types_share_a_name() {
    let files = tree();
    assert!(definitions(&files).len() > 300, "the types are not found");
    none(&shared_names(&files));
}

#[test]
fn the_type_name_test_fails_when_two_modules_define_the_same_name() {
    let one = File::planted("src/a.rs", "pub(crate) struct Line<'a>(&'a str);\n");
    let other = File::planted("src/b/c.rs", "/// A line.\nenum Line {\n}\n");
    found(
        &shared_names(&[one, other]),
        1,
        "`Line` names a type in src/a.rs, src/b/c.rs",
    );
    let in_a_test = File::planted(
        "src/b.rs",
        "#[cfg(test)]\nmod tests {\n    struct Line;\n}\nimpl Line {}\n",
    );
    none(&shared_names(&[
        File::planted("src/a.rs", "type Line = u8;\n"),
        in_a_test,
    ]));
}
