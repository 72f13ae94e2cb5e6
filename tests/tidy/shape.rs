//! The shape of files: opening comment, maximum length, name.

use std::{collections::BTreeMap, path::Path};

use crate::{
    File, found,
    layers::sources,
    none,
    source::{code, indentation, is_product, is_root},
    tree,
};

const LONGEST_FILE: usize = 500;
const LONGEST_FUNCTION: usize = 100;
/// Maximum length of the median file of the source.
const MEDIAN_FILE: usize = 200;

/// Maximum number of Rust files in a folder, without those of its folders.
const MOST_FILES: usize = 25;

/// Files and functions that may be longer, each with its reason.
const TABLES: &[(&str, &str)] = &[
    ("crates/base/src/routes/shapes.rs", TO_SPLIT),
    ("tests/suite/archive/scoring_import.rs", TO_SPLIT),
    ("tests/suite/cli/cli_store.rs", TO_SPLIT),
    ("tests/suite/site/leaked_keys.rs", TO_SPLIT),
    ("tests/suite/telemetry/status_page.rs", TO_SPLIT),
];

/// Places that the default formatting made longer than the limit. Their number only decreases.
const TO_SPLIT: &str = "to be split";

/// Names that do not describe the content.
const EMPTY_NAMES: [&str; 8] = [
    "common", "helper", "helpers", "manager", "misc", "util", "utils", "shared",
];

fn is_table(place: &str) -> bool {
    TABLES.iter().any(|(known, _)| *known == place)
}

fn without_opening(all: &[File]) -> Vec<String> {
    let bare = all
        .iter()
        .filter(|file| file.is_rust() && !file.text.starts_with("//! "));
    bare.map(|file| {
        format!(
            "{}: does not start with a `//!` comment about its purpose",
            file.path
        )
    })
    .collect()
}

fn too_long(all: &[File]) -> Vec<String> {
    let mut findings = Vec::new();
    for file in all.iter().filter(|file| file.is_rust()) {
        let lines = file.text.lines().count();
        if lines > LONGEST_FILE && !is_table(&file.path) {
            findings.push(format!(
                "{}: {lines} lines, maximum {LONGEST_FILE}",
                file.path
            ));
        }
        for (name, lines) in functions(&file.text) {
            if lines > LONGEST_FUNCTION && !is_table(&format!("{} {name}", file.path)) {
                findings.push(format!("{}: `{name}` has {lines} lines", file.path));
            }
        }
    }
    findings
}

fn full_folders(all: &[File]) -> Vec<String> {
    let mut files_of: BTreeMap<&str, usize> = BTreeMap::new();
    for (folder, _) in all
        .iter()
        .filter(|file| file.is_rust())
        .filter_map(|file| file.path.rsplit_once('/'))
    {
        *files_of.entry(folder).or_default() += 1;
    }
    let full = files_of
        .into_iter()
        .filter(|(_, files)| *files > MOST_FILES);
    full.map(|(folder, files)| format!("{folder}: {files} files, maximum {MOST_FILES}"))
        .collect()
}

/// Items in the root of a folder or library, which declares, documents and re-exports.
fn items_of_roots(all: &[File]) -> Vec<String> {
    let mut findings = Vec::new();
    for file in sources(all).filter(|file| is_root(file)) {
        let code = code(&file.text);
        let items = code.lines().filter(|line| {
            let words = line
                .trim_start_matches("pub")
                .trim_start_matches("(crate)")
                .trim_start_matches("(super)");
            let word = words.split_whitespace().next().unwrap_or_default();
            let is_item = [
                "fn", "async", "const", "static", "struct", "enum", "trait", "type", "impl",
            ];
            is_item.contains(&word) || word.starts_with("impl<")
        });
        findings
            .extend(items.map(|line| format!("{}: `{}`", file.path, line.trim_end_matches(" {"))));
    }
    findings
}

/// The functions of a file with bodies, and their lengths. rustfmt closes a body at the indentation of its function.
fn functions(text: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut functions = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else {
            continue;
        };
        let closes = |other: &&str| indentation(other) == indentation(line) && other.trim() == "}";
        let is_one_line = line.trim_end().ends_with(['}', ';']);
        let below = lines.iter().skip(start).position(closes).unwrap_or(0);
        let length = if is_one_line { 1 } else { 1 + below };
        functions.push((name, length));
    }
    functions
}

fn function_name(line: &str) -> Option<String> {
    let mut words = line.trim_start();
    for qualifier in ["pub(crate) ", "pub(super) ", "pub ", "const ", "async "] {
        words = words.strip_prefix(qualifier).unwrap_or(words);
    }
    let rest = words.strip_prefix("fn ")?;
    Some(rest.split(['(', '<']).next().unwrap_or(rest).to_owned())
}

fn median_of_sources(all: &[File]) -> usize {
    let sources = all.iter().filter(|file| is_product(file));
    let mut lengths: Vec<usize> = sources.map(|file| file.text.lines().count()).collect();
    lengths.sort_unstable();
    lengths.get(lengths.len() / 2).copied().unwrap_or(0)
}

fn empty_names(all: &[File]) -> Vec<String> {
    let mut findings = Vec::new();
    for file in all.iter().filter(|file| file.is_rust()) {
        let parts = Path::new(&file.path).with_extension("");
        let says_nothing = |part: &str| EMPTY_NAMES.contains(&part);
        if parts
            .iter()
            .any(|part| part.to_str().is_some_and(says_nothing))
        {
            findings.push(format!(
                "{}: the name does not describe the content",
                file.path
            ));
        }
        let code = code(&file.text);
        for name in EMPTY_NAMES
            .iter()
            .filter(|name| code.contains(&format!("mod {name} {{")))
        {
            findings.push(format!(
                "{}: `mod {name}` does not describe the content",
                file.path
            ));
        }
    }
    findings
}

#[test]
fn every_file_opens_with_what_it_is_for() {
    none(&without_opening(&tree()));
}

#[test]
fn files_and_functions_stay_short() {
    none(&too_long(&tree()));
}

#[test]
fn the_middle_file_of_the_source_fits_on_a_few_screens() {
    let median = median_of_sources(&tree());
    assert!((1..MEDIAN_FILE).contains(&median), "{median}");
}

#[test]
fn folders_stay_small() {
    none(&full_folders(&tree()));
}

#[test]
fn the_folder_test_fails_when_a_file_too_many_is_planted() {
    let planted = |number: usize| File::planted(&format!("src/a/f{number}.rs"), "");
    none(&full_folders(
        &(0..MOST_FILES).map(planted).collect::<Vec<_>>(),
    ));
    found(
        &full_folders(&(0..=MOST_FILES).map(planted).collect::<Vec<_>>()),
        1,
        "src/a: 26 files",
    );
}

#[test]
fn roots_of_folders_only_declare_and_export() {
    none(&items_of_roots(&tree()));
}

#[test]
fn the_root_test_fails_when_an_item_is_planted() {
    for item in [
        "pub struct A;",
        "impl A {\n}",
        "impl<T> A<T> {\n}",
        "fn a() {}",
        "pub(super) const A: u8 = 1;",
    ] {
        found(
            &items_of_roots(&[File::planted("src/a/mod.rs", item)]),
            1,
            "src/a/mod.rs",
        );
    }
    let declares = "//! A.\n\nmod b;\n#[cfg(test)]\nmod tests;\n\npub use b::B;\n";
    none(&items_of_roots(&[File::planted(
        "crates/a/src/lib.rs",
        declares,
    )]));
}

#[test]
fn no_file_has_a_name_that_says_nothing() {
    none(&empty_names(&tree()));
}

#[test]
fn every_exception_is_still_needed() {
    let files = tree();
    for (place, reason) in TABLES {
        let (path, function) = place.split_once(' ').unwrap_or((place, ""));
        let file = files.iter().find(|file| file.path == path);
        let text = &file.unwrap_or_else(|| panic!("{path} does not exist")).text;
        let is_long = match function {
            "" => text.lines().count() > LONGEST_FILE,
            _ => functions(text)
                .iter()
                .any(|(name, lines)| name == function && *lines > LONGEST_FUNCTION),
        };
        assert!(
            is_long && !reason.is_empty(),
            "{place} needs no exception any more"
        );
    }
}

#[test]
fn the_opening_test_fails_when_a_file_starts_without_one() {
    found(
        &without_opening(&[File::planted("src/a.rs", "use std::io;\n")]),
        1,
        "src/a.rs",
    );
    none(&without_opening(&[File::planted(
        "src/a.rs",
        "//! The rate limits.\n",
    )]));
}

#[test]
fn the_length_test_fails_when_a_file_or_a_function_is_too_long() {
    found(
        &too_long(&[File::planted("src/a.rs", &"x;\n".repeat(501))]),
        1,
        "501 lines",
    );
    none(&too_long(&[File::planted("src/a.rs", &"x;\n".repeat(500))]));
    let body = |lines: usize| {
        format!(
            "impl A {{\n    pub(super) async fn b(\n    ) {{\n{}    }}\n}}\n",
            "        x;\n".repeat(lines)
        )
    };
    found(
        &too_long(&[File::planted("src/a.rs", &body(98))]),
        1,
        "`b` has 101 lines",
    );
    none(&too_long(&[File::planted("src/a.rs", &body(97))]));
}

#[test]
fn the_name_test_fails_when_a_module_is_called_utils() {
    found(
        &empty_names(&[File::planted("src/gateway/utils.rs", "")]),
        1,
        "utils",
    );
    found(
        &empty_names(&[File::planted("src/common/mod.rs", "")]),
        1,
        "common",
    );
    let inline = format!("mod {} {{\n}}\n", "helpers");
    found(
        &empty_names(&[File::planted("src/a.rs", &inline)]),
        1,
        "mod helpers",
    );
}

#[test]
fn functions_are_measured_whole_and_declarations_are_not_mistaken_for_them() {
    let text = "trait A {\n    fn a(&self);\n    fn b(&self) {}\n}\nconst fn c() {\n    x\n}\n";
    let measured = functions(text);
    assert_eq!(
        measured,
        [("a".into(), 1), ("b".into(), 1), ("c".into(), 3)]
    );
}
