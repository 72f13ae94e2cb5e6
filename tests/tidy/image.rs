//! Consistency of the container's files: the compiler is that of the crate, the started program is among the contents, and
//! the user is not root. `.ci/check deploy` tests that the contents run.

use crate::{File, found, none, tree};

const DOCKERFILE: &str = "deploy/container/Dockerfile";
const CONTENTS: &str = "deploy/container/contents.txt";
const VISIBLE: &str = "deploy/container/Dockerfile.dockerignore";

fn text<'f>(all: &'f [File], path: &str) -> &'f str {
    let file = all.iter().find(|file| file.path == path);
    file.map_or_else(|| panic!("there is no {path}"), |file| file.text.as_str())
}

/// The absolute paths in a line, between quotes or after `=`.
fn paths(line: &str) -> Vec<&str> {
    let words = line.split(['"', '=', ' ', ',']);
    words
        .filter(|word| word.starts_with('/') && word.len() > 1)
        .collect()
}

fn mistakes(all: &[File]) -> Vec<String> {
    let dockerfile = text(all, DOCKERFILE);
    let contents = text(all, CONTENTS);
    let lines: Vec<&str> = dockerfile
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with('#'))
        .collect();
    let mut findings = Vec::new();
    let mut must = |is_so: bool, what: String| {
        if !is_so {
            findings.push(format!("{DOCKERFILE}: {what}"));
        }
    };

    let wanted = text(all, "Cargo.toml")
        .lines()
        .find_map(|line| line.strip_prefix("rust-version = "));
    let wanted = wanted.unwrap_or_default().trim_matches('"');
    must(
        dockerfile.contains(&format!("FROM rust:{wanted}.")),
        format!("the compiler is not {wanted}"),
    );
    must(
        text(all, ".github/workflows/ci.yml").contains(&format!("rust:{wanted}-bookworm")),
        format!("the workflow's compiler is not {wanted}"),
    );

    let stages: Vec<&&str> = lines
        .iter()
        .filter(|line| line.starts_with("FROM "))
        .collect();
    must(
        stages.last().is_some_and(|last| **last == "FROM scratch"),
        "it contains more than its files".into(),
    );
    let users: Vec<&str> = lines
        .iter()
        .filter_map(|line| line.strip_prefix("USER "))
        .collect();
    let is_unprivileged = |user: &&str| {
        user.split(':')
            .all(|id| id.parse::<u32>().is_ok_and(|number| number >= 10_000))
    };
    must(
        users.len() == 1 && users.iter().all(is_unprivileged),
        format!("it runs as {users:?}"),
    );

    let listed: Vec<&str> = contents
        .lines()
        .filter_map(|line| line.split(' ').nth(2))
        .collect();
    let named = [
        "ENTRYPOINT ",
        "CMD ",
        "VOLUME ",
        "WORKDIR /var",
        "ENV ",
        "SCOREGATE_CONFIG=",
    ];
    for line in lines
        .iter()
        .filter(|line| named.iter().any(|name| line.starts_with(name)))
    {
        for path in paths(line) {
            must(
                listed.contains(&path),
                format!("{path} is not in {CONTENTS}"),
            );
        }
    }
    must(
        lines.iter().any(|line| line.starts_with("ENTRYPOINT ")),
        "there is no ENTRYPOINT".into(),
    );

    let visible: Vec<&str> = text(all, VISIBLE)
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    must(
        visible.first() == Some(&"*"),
        "the build context is not restricted".into(),
    );
    for path in visible.iter().filter_map(|line| line.strip_prefix('!')) {
        let is_there =
            |file: &File| file.path == path || file.path.starts_with(&format!("{path}/"));
        must(
            all.iter().any(is_there),
            format!("the build context includes {path}, which does not exist"),
        );
    }
    findings
}

#[test]
fn the_image_s_files_agree_with_each_other_and_with_the_crate() {
    none(&mistakes(&tree()));
}

#[test]
fn the_image_test_fails_when_a_mistake_is_planted() {
    for (from, to, said) in [
        ("FROM rust:", "FROM rust:0.", "the compiler is not"),
        ("FROM scratch", "FROM debian:12.1", "more than its files"),
        ("USER 65532:65532", "USER 0:65532", "it runs as"),
        (
            "ENTRYPOINT [\"/usr/bin/",
            "ENTRYPOINT [\"/bin/",
            "is not in",
        ),
    ] {
        let mut all = tree();
        let file = all
            .iter_mut()
            .find(|file| file.path == DOCKERFILE)
            .expect("there is a Dockerfile");
        assert!(file.text.contains(from), "{from}");
        file.text = file.text.replace(from, to);
        found(&mistakes(&all), 1, said);
    }
}
