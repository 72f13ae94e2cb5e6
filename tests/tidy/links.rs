//! Links of the documents lead to files, folders and headings that exist, from the folder of the document.

use std::path::Path;

use crate::{File, found, none, tree};

/// The lines of a document that are not in fenced blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_fenced = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        !is_fenced && !is_fence
    })
}

/// The targets of links in the tree, in text and in HTML.
fn targets(text: &str) -> Vec<&str> {
    let ends = [("](", ')'), ("src=\"", '"'), ("href=\"", '"')];
    let of = |line| ends.map(|(from, to)| line_targets(line, from, to)).concat();
    let targets = prose(text).flat_map(of);
    targets
        .filter(|target| !target.contains(':') && !target.is_empty())
        .collect()
}

fn line_targets<'l>(line: &'l str, from: &str, to: char) -> Vec<&'l str> {
    line.split(from)
        .skip(1)
        .filter_map(|rest| rest.split(to).next())
        .collect()
}

/// The path from the root of a link in the document at `from`.
fn resolved(from: &str, link: &str) -> String {
    let folder = Path::new(from).parent().unwrap_or(Path::new(""));
    let mut parts: Vec<&str> = folder.iter().filter_map(|part| part.to_str()).collect();
    for part in link
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
    {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.join("/")
}

/// The anchors of a document's headings, as Git servers make them.
fn anchors(text: &str) -> Vec<String> {
    let headings = prose(text).filter_map(|line| line.strip_prefix('#'));
    let anchor = |heading: &str| {
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = heading
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

fn has_extension(path: &str, extension: &str) -> bool {
    Path::new(path)
        .extension()
        .is_some_and(|end| end == extension)
}

/// Links without a target. Pictures are binary files and not in the tree that is checked.
fn broken_links(all: &[File]) -> Vec<String> {
    let mut findings = Vec::new();
    for document in all.iter().filter(|file| has_extension(&file.path, "md")) {
        for target in targets(&document.text)
            .into_iter()
            .filter(|target| !has_extension(target, "png"))
        {
            let (link, anchor) = target
                .split_once('#')
                .map_or((target, None), |(link, anchor)| (link, Some(anchor)));
            let path = if link.is_empty() {
                document.path.clone()
            } else {
                resolved(&document.path, link)
            };
            let file = all.iter().find(|file| file.path == path);
            let is_folder = || {
                all.iter()
                    .any(|file| Path::new(&file.path).starts_with(&path))
            };
            let is_wrong = match (file, anchor) {
                (Some(file), Some(anchor)) => {
                    !anchors(&file.text).iter().any(|known| known == anchor)
                }
                (None, None) => !is_folder(),
                (Some(_), None) => false,
                (None, Some(_)) => true,
            };
            if is_wrong {
                findings.push(format!(
                    "{}: the link `{target}` leads nowhere",
                    document.path
                ));
            }
        }
    }
    findings
}

#[test]
fn every_link_of_a_document_leads_somewhere() {
    let files = tree();
    assert!(
        files
            .iter()
            .any(|file| targets(&file.text).contains(&"src/gateway/")),
        "no link is found"
    );
    none(&broken_links(&files));
}

#[test]
fn the_link_test_fails_when_a_link_without_a_target_is_planted() {
    let there = || {
        File::planted(
            "docs/design/a.md",
            "# A b, `c`\n[up](../../src/x/) [self](#a-b-c)\n",
        )
    };
    let code = || File::planted("src/x/y.rs", "");
    for good in [
        "[a](design/a.md#a-b-c)",
        "[web](https://x.example/)",
        "```\n[a](b.md)\n```",
        "[x](../src/x/y.rs)",
    ] {
        none(&broken_links(&[
            File::planted("docs/b.md", good),
            there(),
            code(),
        ]));
    }
    for bad in [
        "[a](a.md)",
        "[a](design/a.md#other)",
        "[x](src/x/)",
        "<img src=\"a.svg\">",
        "[b](#b)",
    ] {
        found(
            &broken_links(&[File::planted("docs/b.md", bad), there(), code()]),
            1,
            "leads nowhere",
        );
    }
}
