//! Rules about the source, as tests: allowed imports, maximum sizes, and references of the documents.
//!
//! Each rule is a pure function from text to findings. A test next to it plants a violation, so that a rule that no
//! longer detects anything fails. Rules that clippy can check are in `clippy.toml`.

#[path = "tidy/circles.rs"]
mod circles;
#[path = "tidy/image.rs"]
mod image;
#[path = "tidy/layers.rs"]
mod layers;
#[path = "tidy/links.rs"]
mod links;
#[path = "tidy/measured.rs"]
mod measured;
#[path = "tidy/names.rs"]
mod names;
#[path = "tidy/pages.rs"]
mod pages;
#[path = "tidy/programs.rs"]
mod programs;
#[path = "tidy/readme.rs"]
mod readme;
#[path = "tidy/retired.rs"]
mod retired;
#[path = "tidy/shape.rs"]
mod shape;
#[path = "tidy/source.rs"]
mod source;
#[path = "tidy/tokens.rs"]
mod tokens;
#[path = "tidy/words.rs"]
mod words;

use std::path::{Path, PathBuf};

/// A text file of the tree.
pub(crate) struct File {
    /// Its path from the root, with forward slashes.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    /// A file that a test plants.
    pub(crate) fn planted(path: &str, text: &str) -> Self {
        Self {
            path: path.into(),
            text: text.into(),
        }
    }

    /// Whether it is Rust.
    pub(crate) fn is_rust(&self) -> bool {
        Path::new(&self.path)
            .extension()
            .is_some_and(|extension| extension == "rs")
    }
}

/// Every text file of the tree, but for what git keeps and what it is told to ignore.
pub(crate) fn tree() -> Vec<File> {
    let root = root();
    let ignored = std::fs::read_to_string(root.join(".gitignore")).expect("there is a .gitignore");
    let ignored: Vec<&str> = ignored
        .lines()
        .filter_map(|line| line.strip_prefix('/'))
        .collect();
    let mut files = Vec::new();
    let mut left = vec![root.clone()];
    while let Some(directory) = left.pop() {
        for entry in std::fs::read_dir(directory).expect("the tree can be read") {
            let path = entry.expect("the tree can be read").path();
            let name = path
                .file_name()
                .expect("an entry has a name")
                .to_string_lossy()
                .into_owned();
            if path.is_dir() {
                if name != ".git" && !ignored.contains(&name.as_str()) {
                    left.push(path);
                }
            } else if let Ok(text) = std::fs::read_to_string(&path) {
                let path = path.strip_prefix(&root).expect("all lies below the root");
                // In a linked checkout `.git` is a file, and git's own.
                if path != Path::new(".git") {
                    files.push(File {
                        path: path.to_string_lossy().into_owned(),
                        text,
                    });
                }
            }
        }
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    assert!(
        files.iter().any(|file| file.path == "src/lib.rs"),
        "this is not the tree"
    );
    files
}

pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Fails with all findings.
pub(crate) fn none(findings: &[String]) {
    assert!(findings.is_empty(), "\n{}\n", findings.join("\n"));
}

/// Fails unless exactly this many things were found, and one of them says this.
pub(crate) fn found(findings: &[String], count: usize, words: &str) {
    assert!(
        findings.len() == count && findings.iter().any(|finding| finding.contains(words)),
        "{findings:#?}"
    );
}
