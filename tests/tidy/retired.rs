//! Plain words: terms that were replaced by standard ones are not used again, and no message or help text opens with a
//! headless relative clause.

use std::path::Path;

use crate::{File, found, none, source::is_product, tree};

/// Terms that are not used anywhere, and their replacements.
const EVERYWHERE: &[(&str, &str)] = &[
    ("larder", "documents"),
    ("keepsake", "disk mirror"),
    ("keepsakes", "disk mirror"),
    ("errand", "fetch task"),
    ("errands", "fetch tasks"),
    ("jar", "record"),
    ("jars", "records"),
    ("shelf", "disk mirror"),
    ("roster", "key directory"),
    ("stocktaking", "inventory"),
    ("passenger", "waiter"),
    ("passengers", "waiters"),
    ("is let rest", "circuit breaker open"),
    ("on trial", "half-open"),
    ("heaviest", "top callers"),
    ("rewound", "prefixed"),
    ("crowded", "queue full"),
];

/// Terms that are not used outside tests, and their replacements.
const OUTSIDE_TESTS: &[(&str, &str)] = &[
    ("told", "logged, reported"),
    ("stranger", "unauthenticated client"),
    ("strangers", "unauthenticated clients"),
    ("whoever", "the caller, the operator"),
    ("whomever", "the caller, the operator"),
    ("believed", "trusted"),
    ("sake", "fetch priority"),
    ("at hand", "cached"),
    ("so long an", "how long"),
    ("resting", "circuit breaker open"),
    ("of our own accord", "without a request"),
    ("goes on", "continues"),
];

/// Words that open a headless relative clause.
const HEADLESS: [&str; 7] = ["Who", "Whom", "Whose", "Whoever", "What", "Whatever", "So"];

/// Files whose texts are records, foreign, or about these terms.
const EXEMPT: [&str; 4] = [
    "Cargo.lock",
    "benches/runs/",
    "tests/results/",
    "tests/tidy/retired.rs",
];

/// Whether a line contains a term as whole words.
fn uses(line: &str, term: &str) -> bool {
    let is_inner = |c: char| c.is_alphanumeric();
    line.match_indices(term).any(|(at, _)| {
        let before = line.get(..at).and_then(|text| text.chars().next_back());
        let after = line
            .get(at + term.len()..)
            .and_then(|text| text.chars().next());
        !before.is_some_and(is_inner) && !after.is_some_and(is_inner)
    })
}

fn retired_terms(all: &[File]) -> Vec<String> {
    let mut findings = Vec::new();
    for file in all
        .iter()
        .filter(|file| !EXEMPT.iter().any(|exempt| file.path.starts_with(exempt)))
    {
        if Path::new(&file.path)
            .extension()
            .is_some_and(|end| end == "svg")
        {
            continue;
        }
        let is_test = file.path.starts_with("tests/") || file.path.starts_with("benches/");
        let terms = EVERYWHERE
            .iter()
            .chain(if is_test { &[][..] } else { OUTSIDE_TESTS });
        let terms: Vec<_> = terms.collect();
        for (number, line) in file.text.lines().enumerate() {
            let lower = line.to_lowercase();
            for (term, instead) in terms.iter().filter(|(term, _)| uses(&lower, term)) {
                findings.push(format!(
                    "{}:{}: `{term}` is retired: {instead}",
                    file.path,
                    number + 1
                ));
            }
        }
    }
    findings
}

/// Texts of a line for readers: literals of at least two words, and doc comments, which are also the help of the command
/// line.
fn texts(line: &str) -> Vec<&str> {
    let doc = line
        .trim_start()
        .strip_prefix("/// ")
        .or_else(|| line.trim_start().strip_prefix("//! "));
    let literals = line
        .split('"')
        .skip(1)
        .step_by(2)
        .filter(|text| text.contains(' '));
    doc.into_iter().chain(literals).collect()
}

fn headless_clauses(all: &[File]) -> Vec<String> {
    let mut findings = Vec::new();
    for file in all.iter().filter(|file| is_product(file)) {
        let mut was_doc = false;
        for (number, line) in file.text.lines().enumerate() {
            let is_doc = line.trim_start().starts_with("//");
            for text in texts(line) {
                let opens = text
                    .split(' ')
                    .next()
                    .is_some_and(|word| HEADLESS.contains(&word));
                // Questions are allowed, and a wrapped sentence of a comment may break anywhere.
                if opens && !text.ends_with('?') && !(is_doc && was_doc) {
                    findings.push(format!("{}:{}: headless: {text}", file.path, number + 1));
                }
            }
            was_doc = is_doc;
        }
    }
    findings
}

#[test]
fn retired_terms_are_not_used() {
    none(&retired_terms(&tree()));
}

#[test]
fn no_text_opens_with_a_headless_clause() {
    none(&headless_clauses(&tree()));
}

#[test]
fn the_term_test_fails_when_a_retired_term_is_planted() {
    let (term, _) = EVERYWHERE[0];
    let line = format!("the {}_of documents\nlarders\n", term.to_uppercase());
    found(
        &retired_terms(&[File::planted("tests/suite/a.rs", &line)]),
        1,
        "tests/suite/a.rs:1",
    );
    let (term, _) = OUTSIDE_TESTS[0];
    found(
        &retired_terms(&[File::planted("README.md", term)]),
        1,
        "README.md:1",
    );
    none(&retired_terms(&[
        File::planted("tests/suite/a.rs", term),
        File::planted("tests/results/a.md", term),
    ]));
}

#[test]
fn the_clause_test_fails_when_a_help_text_opens_with_one() {
    let planted = |text: &str| headless_clauses(&[File::planted("src/a.rs", text)]);
    found(&planted("/// Who is trusted.\nx: u8,\n"), 1, "src/a.rs:1");
    found(
        &planted("error(\"What is wrong with it\")\n"),
        1,
        "What is wrong",
    );
    none(&planted(
        "/// Proxies that are trusted.\n/// Who asks is not.\nf(\"So\", \"What is this?\");\n",
    ));
}
