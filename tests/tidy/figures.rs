//! Figures of the source tree, to compare two versions of it.
//!
//! `cargo test --test tidy figures -- --nocapture` prints them for this tree, and with `SCOREGATE_TREE=DIR` for the
//! checkout in `DIR`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use crate::circles::{circles, imports_within};
use crate::names::definitions;
use crate::source::{is_product, module_of};
use crate::{File, tree_of};

/// Files and lines of a module.
#[derive(Default)]
struct ModuleSize {
    files: usize,
    lines: usize,
}

/// The share of types that have the name of another type.
struct TypeNames {
    types: usize,
    shared: usize,
}

/// Files and lines without tests of each top-level module.
fn sizes(all: &[File]) -> BTreeMap<String, ModuleSize> {
    let mut by_module: BTreeMap<String, ModuleSize> = BTreeMap::new();
    for file in all.iter().filter(|file| is_product(file)) {
        if file.path.contains("/tests") || file.path.contains("/conformance") {
            continue;
        }
        let module = module_of(&file.path)
            .into_iter()
            .next()
            .unwrap_or_else(|| file.path.clone());
        let size = by_module.entry(module).or_default();
        size.files += 1;
        size.lines += lines_without_tests(&file.text);
    }
    by_module
}

/// Lines before the tests of a file, including comments.
fn lines_without_tests(text: &str) -> usize {
    let before = text
        .split("\n#[cfg(test)]\nmod tests")
        .next()
        .unwrap_or(text);
    before.trim_end().lines().count()
}

fn type_names(all: &[File]) -> TypeNames {
    let definitions = definitions(all);
    let counts = definitions.values().map(Vec::len);
    TypeNames {
        types: counts.clone().sum(),
        shared: counts.filter(|count| *count > 1).sum(),
    }
}

/// Words of a page and of its median paragraph. Code, tables and headings are not paragraphs.
fn words(page: &str) -> (usize, usize) {
    let count = |text: &str| text.split_whitespace().count();
    let prose: Vec<&str> = page.split("```").step_by(2).collect();
    let prose = prose.join("\n\n");
    let paragraphs = prose
        .split("\n\n")
        .map(str::trim)
        .filter(|text| !text.is_empty());
    let paragraphs = paragraphs.filter(|text| !text.starts_with(['#', '|', '<', '!']));
    let mut counts: Vec<usize> = paragraphs.map(count).collect();
    counts.sort_unstable();
    (
        count(page),
        counts.get(counts.len() / 2).copied().unwrap_or(0),
    )
}

fn report(all: &[File]) -> String {
    let mut text = String::from("module          files   lines without tests\n");
    let sizes = sizes(all);
    for (module, size) in &sizes {
        writeln!(text, "{module:<14} {:>6} {:>8}", size.files, size.lines)
            .expect("writing to a string cannot fail");
    }
    let files: usize = sizes.values().map(|size| size.files).sum();
    let lines: usize = sizes.values().map(|size| size.lines).sum();
    let names = type_names(all);
    let readme = all
        .iter()
        .find(|file| file.path == "README.md")
        .map_or("", |file| &file.text);
    let (all_words, median) = words(readme);
    let share = 100.0 * ratio(names.shared, names.types);
    writeln!(
        text,
        "total          {files:>6} {lines:>8}\nimports between files of gateway/: {}\nfiles in import cycles: {}\n\
         types: {}, of which {} ({share:.0} %) share their name\nREADME: {} lines, {all_words} words, median paragraph {median} words",
        imports_within(all, "gateway"),
        circles(all).len(),
        names.types,
        names.shared,
        readme.lines().count(),
    )
    .expect("writing to a string cannot fail");
    text
}

#[expect(clippy::cast_precision_loss, reason = "no tree has 2^53 types")]
fn ratio(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}

#[test]
#[expect(
    clippy::print_stdout,
    reason = "the figures are the purpose of this test"
)]
fn figures_of_the_tree_are_printed() {
    let root = std::env::var_os("SCOREGATE_TREE").map_or_else(crate::root, PathBuf::from);
    let report = report(&tree_of(&root));
    println!("{report}");
    assert!(
        report.contains("gateway") && report.contains("README"),
        "{report}"
    );
}

#[test]
fn figures_count_what_they_name() {
    let files = [
        File::planted(
            "src/a.rs",
            "struct A;\n\n#[cfg(test)]\nmod tests {\n    struct B;\n}\n",
        ),
        File::planted("src/b/mod.rs", "mod c;\nstruct A;\nstruct D;\n"),
        File::planted("src/b/tests/mod.rs", "struct E;\n"),
    ];
    let names = type_names(&files);
    assert_eq!((names.types, names.shared), (4, 2));
    let sizes = sizes(&files);
    assert_eq!(
        (sizes["a"].lines, sizes["b"].files, sizes["b"].lines),
        (1, 1, 3)
    );
    assert_eq!(
        words("# A\n\none two three\n\n```sh\nx y\n```\n\n| a |\n\nfour\n"),
        (13, 3)
    );
}
