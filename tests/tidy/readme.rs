//! The README matches the program: tiers, settings, steps of the check.

use scoregate::config::SETTINGS;
use scoregate_base::plans::standard_tiers;

use crate::{found, none, pages::pointers, tree};

fn text_of(path: &str) -> String {
    let file = tree().into_iter().find(|file| file.path == path);
    file.unwrap_or_else(|| panic!("there is no {path}")).text
}

/// Formats `10000` as `10,000`.
fn grouped(number: u32) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn missing_tiers(readme: &str) -> Vec<String> {
    let row = |tier: &scoregate_base::plans::Tier| {
        let day = grouped(tier.limits.day);
        let minute = grouped(tier.limits.minute);
        let is_paid = if tier.rights.is_paid() { "yes" } else { "no" };
        format!("| {} | {day} | {minute} | {is_paid} |", tier.name)
    };
    let rows = standard_tiers().iter().map(row).collect::<Vec<_>>();
    rows.into_iter()
        .filter(|row| !readme.contains(row))
        .map(|row| format!("no row {row}"))
        .collect()
}

/// Words such as `server.shutdown_timeout` that look like a setting but do not exist.
fn unknown_settings(readme: &str) -> Vec<String> {
    let tables: Vec<&str> = SETTINGS
        .iter()
        .filter_map(|row| row.path.split_once('.'))
        .map(|(t, _)| t)
        .collect();
    let words = pointers(readme);
    let looks_like_one = |word: &&String| {
        word.split_once('.')
            .is_some_and(|(table, name)| tables.contains(&table) && name != "md")
    };
    let unknown = words
        .iter()
        .filter(looks_like_one)
        .filter(|word| !SETTINGS.iter().any(|row| row.path == **word));
    unknown
        .map(|word| format!("there is no setting {word}"))
        .collect()
}

/// The words of the first list between these two delimiters.
fn list(text: &str, opening: &str, closing: char) -> Vec<String> {
    let inside = text
        .split(opening)
        .nth(1)
        .and_then(|rest| rest.split(closing).next())
        .unwrap_or("");
    inside
        .split([' ', ','])
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_readme_s_tiers_are_the_program_s() {
    none(&missing_tiers(&text_of("README.md")));
    found(
        &missing_tiers(&text_of("README.md").replace("| pro | 10,000", "| pro | 11,000")),
        1,
        "pro",
    );
}

#[test]
fn the_readmes_name_only_settings_that_exist() {
    for document in [
        "README.md",
        "deploy/README.md",
        "docs/configure.md",
        "docs/operate.md",
        "docs/guarantees.md",
        "docs/backends.md",
    ] {
        none(&unknown_settings(&text_of(document)));
    }
    found(
        &unknown_settings("`server.shutdown_timeout` and `server.speed`"),
        1,
        "server.speed",
    );
}

#[test]
fn the_check_the_readme_and_the_workflow_have_the_same_steps() {
    let check = text_of(".ci/check");
    let short = list(&check, "short=(", ')');
    let long = list(&check, "long=(", ')');
    assert!(short.len() > 4 && long.len() > 4, "{short:?} {long:?}");
    let readme = text_of("README.md");
    for steps in [&short, &long] {
        assert!(readme.contains(&steps.join(", ")), "{steps:?}");
    }
    let workflow = text_of(".github/workflows/ci.yml");
    let mut jobs: Vec<String> = workflow
        .lines()
        .flat_map(|line| {
            [
                list(line, "run: .ci/check ", '$'),
                list(line, "step: [", ']'),
            ]
            .concat()
        })
        .collect();
    let mut steps = [short, long].concat();
    jobs.sort();
    steps.sort();
    assert_eq!(jobs, steps);
}
