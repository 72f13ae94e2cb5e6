//! Killed imports of runs: nothing or everything is stored, importing the same file again completes the import without
//! duplicates, and the scores equal the scores of an uninterrupted import.
//!
//! The import is killed at chosen points of its disk writes. A power cut, which loses unsynced writes, is not simulated: a
//! killed process does not lose them.

use std::{fmt::Write as _, path::Path};

use scoregate_base::{
    clock::Wall,
    routes::{DocumentKey, Route},
};
use scoregate_scoring::{Archive, RunSource, Scoring};
use tempfile::TempDir;

use crate::{
    archive::scoring_import::{archive, lines},
    failing_disk::{Disk, Order},
    program::{Program, run, sql_on},
    world::NOON,
};

/// The content of the archive of a directory: runs, and bytes of their trials.
fn stored(directory: &Path) -> (u64, u64) {
    let request = "SELECT count(*), coalesce(sum(length(trials)), 0) FROM run";
    // A killed program may not have created its tables yet.
    let text = sql_on(Path::new(&archive(directory)), request).unwrap_or_default();
    let Some((runs, bytes)) = text.trim().split_once('|') else {
        return (0, 0);
    };
    (runs.parse().unwrap(), bytes.parse().unwrap())
}

/// Every time-independent document of an archive, as text.
fn scores(directory: &Path) -> String {
    let noon = Wall::parse_rfc3339(NOON).unwrap();
    let archive = Archive::open(Path::new(&archive(directory))).unwrap();
    let scoring = Scoring::open(RunSource::Archive(archive), noon).unwrap();
    let mut text = String::new();
    for id in scoring.model_ids() {
        for document in [
            DocumentKey::of_model(Route::Model, id.clone()),
            DocumentKey::of_model(Route::Drift, id.clone()),
        ] {
            writeln!(text, "{:?}", scoring.answer(&document).unwrap().data).unwrap();
        }
    }
    text
}

fn import(directory: &Path, file: &str, disk: &Disk) -> Program {
    Program::start(
        &["scoring", "import", file, "--archive", &archive(directory)],
        &disk.environment(),
    )
}

/// Imports again without a kill, and compares the result with an import that was never killed: the runs, and optionally
/// the scores, which take longer than the import.
fn finish(
    directory: &Path,
    file: &str,
    before: u64,
    with_scores: bool,
    reference: &(u64, u64, String),
) {
    let (runs, bytes, expected) = reference;
    let ended = run(&["scoring", "import", file, "--archive", &archive(directory)]).with(0);
    let words = format!(
        "{} imported, {before} already present, 0 rejected\n",
        runs - before
    );
    assert_eq!(ended.out, words);
    assert_eq!(stored(directory), (*runs, *bytes));
    if with_scores {
        assert_eq!(&scores(directory), expected);
    }
}

fn reference(file: &str) -> (u64, u64, String) {
    let directory = TempDir::new().unwrap();
    run(&[
        "scoring",
        "import",
        file,
        "--archive",
        &archive(directory.path()),
    ])
    .with(0);
    let (runs, bytes) = stored(directory.path());
    (runs, bytes, scores(directory.path()))
}

/// The runs that an import has stored when it is killed; `None` if it ends earlier. Importing the file again completes
/// it.
fn kept(file: &str, order: Order, expected: &(u64, u64, String)) -> Option<u64> {
    let directory = TempDir::new().unwrap();
    let disk = Disk::new();
    disk.order(order);
    let (ended, _) = import(directory.path(), file, &disk).end();
    if ended.code == Some(0) {
        return None;
    }
    assert_eq!(ended.code, None, "{order:?}: {}{}", ended.out, ended.err);
    let found = stored(directory.path());
    assert!(
        found == (0, 0) || found == (expected.0, expected.1),
        "{order:?}: {found:?}"
    );
    let with_scores = matches!(order, Order::KillBeforeSync(_));
    finish(directory.path(), file, found.0, with_scores, expected);
    Some(found.0)
}

#[test]
fn scoring_kills_at_any_point_of_an_import_leave_nothing_or_all_of_it() {
    let files = TempDir::new().unwrap();
    let file = files.path().join("runs.jsonl");
    std::fs::write(&file, lines(20, 300)).unwrap();
    let file = file.to_str().unwrap();
    let expected = reference(file);
    assert!(expected.0 > 16_384, "several batches: {}", expected.0);
    let syncs = (1..).map_while(|number| kept(file, Order::KillBeforeSync(number), &expected));
    let writes = (1..).step_by(2_000);
    let writes = writes.map_while(|number| kept(file, Order::TearWrite(number), &expected));
    let found: Vec<u64> = syncs.chain(writes).collect();
    assert!(
        found.contains(&0) && found.contains(&expected.0),
        "kills before and after the commit: {found:?}"
    );
}
