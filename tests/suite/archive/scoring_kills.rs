//! Killed imports of runs: stored batches are complete, importing the same files again adds the rest without
//! duplicates, and the scores equal those of an undisturbed import.
//!
//! By default the import is killed at chosen points of its disk writes; `SCOREGATE_FULL=1` kills it at many more
//! moments of an import of a million trials and writes the figures to `tests/results/`. A power cut, which loses
//! unsynced writes, is not simulated: a killed process does not lose them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use scoregate_base::clock::{Clock, Wall};
use scoregate_base::routes::{DocumentKey, Route};
use scoregate_scoring::{Archive, RunSource, Scoring};
use tempfile::TempDir;

use crate::archive::scoring_import::{archive, lines};
use crate::failing_disk::{Disk, Order};
use crate::program::{Program, run, sql_on};
use crate::world::NOON;

/// Kills of the large import.
const KILLS: u32 = 25;

/// The content of the archive of a directory: runs, and numbers of trials.
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
    let archive = Archive::open(Path::new(&archive(directory)), noon).unwrap();
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

/// Imports again without a kill, and compares the result with an import that was never killed.
fn finish(directory: &Path, file: &str, before: u64, reference: &(u64, u64, String)) {
    let (runs, numbers, expected) = reference;
    let ended = run(&["scoring", "import", file, "--archive", &archive(directory)]).with(0);
    let words = format!(
        "{} imported, {before} already present, 0 rejected\n",
        runs - before
    );
    assert_eq!(ended.out, words);
    assert_eq!(stored(directory), (*runs, *numbers));
    assert_eq!(&scores(directory), expected);
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
    let (runs, numbers) = stored(directory.path());
    (runs, numbers, scores(directory.path()))
}

#[test]
fn scoring_kills_at_any_point_of_an_import_lose_nothing_stored_and_double_nothing_on_retry() {
    let files = TempDir::new().unwrap();
    let file = files.path().join("runs.jsonl");
    std::fs::write(&file, lines(20, 200)).unwrap();
    let file = file.to_str().unwrap();
    let expected = reference(file);
    assert!(expected.0 > 2 * 4_096, "several batches: {}", expected.0);
    let mut kept = Vec::new();
    // What counts after a kill is what an import of the stored lines alone would give.
    let mut of_stored = BTreeMap::new();
    let orders = [
        Order::KillBeforeWrite(1),
        Order::KillBeforeSync(1),
        Order::KillBeforeSync(7),
        Order::KillAfterSync(10),
        Order::KillBeforeSync(13),
        Order::TearWrite(300),
        Order::TearWrite(1_500),
        Order::KillAfterSync(8),
        Order::KillBeforeSync(9),
        // Only at full size: each takes an import and two exports.
        Order::KillAfterSync(5),
        Order::KillBeforeSync(11),
        Order::TearWrite(100),
    ];
    let is_full = std::env::var("SCOREGATE_FULL").is_ok_and(|value| value == "1");
    let count = if is_full { orders.len() } else { 9 };
    for order in orders.into_iter().take(count) {
        let directory = TempDir::new().unwrap();
        let disk = Disk::new();
        disk.order(order);
        let (ended, _) = import(directory.path(), file, &disk).end();
        assert_eq!(
            ended.code, None,
            "{order:?} was not reached: {}{}",
            ended.out, ended.err
        );
        let (runs, numbers) = stored(directory.path());
        // Complete batches: each run has all of its trials, which its score is computed from.
        assert!(runs % 4_096 == 0 || runs == expected.0, "{order:?}: {runs}");
        assert!((runs == 0) == (numbers == 0));
        kept.push(runs);
        let of_stored: &String = of_stored
            .entry(runs)
            .or_insert_with(|| scores_of_first(file, runs));
        assert_eq!(
            &scores_if_any(directory.path()),
            of_stored,
            "{order:?}: a part of a batch is stored"
        );
        finish(directory.path(), file, runs, &expected);
    }
    let some = |which: &dyn Fn(&u64) -> bool| kept.iter().any(which);
    let none = some(&|runs| *runs == 0);
    let all = some(&|runs| *runs == expected.0);
    let between = some(&|runs| (1..expected.0).contains(runs));
    assert!(
        none && between && all,
        "kills before, between and after the batches: {kept:?}"
    );
}

/// The scores of an import of this many lines of a file.
fn scores_of_first(file: &str, count: u64) -> String {
    let text = std::fs::read_to_string(file).unwrap();
    let lines = text
        .split_inclusive('\n')
        .take(usize::try_from(count).unwrap());
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("first.jsonl");
    std::fs::write(&file, lines.collect::<String>()).unwrap();
    reference(file.to_str().unwrap()).2
}

fn scores_if_any(directory: &Path) -> String {
    let is_made = std::fs::metadata(archive(directory)).is_ok_and(|file| file.len() > 0);
    if is_made {
        scores(directory)
    } else {
        String::new()
    }
}

#[test]
fn scoring_kills_at_random_moments_of_a_large_import() {
    if std::env::var_os("SCOREGATE_FULL").is_none() {
        // The small size is covered by the test above.
        return;
    }
    let files = TempDir::new().unwrap();
    let file = files.path().join("runs.jsonl");
    std::fs::write(&file, lines(150, 490)).unwrap();
    let file = file.to_str().unwrap();
    let expected = reference(file);
    let directory = TempDir::new().unwrap();
    let mut before = 0;
    let mut lives = Vec::new();
    for kill in 0..KILLS {
        let disk = Disk::new();
        let program = import(directory.path(), file, &disk);
        // Each gets somewhat further than the previous one.
        let attacked = expected.0 * u64::from(kill + 1) / u64::from(KILLS + 1);
        while stored(directory.path()).0 < attacked {}
        drop(program);
        let (runs, _) = stored(directory.path());
        assert!(
            runs >= before && (runs % 4_096 == 0 || runs == expected.0),
            "{before} {runs}"
        );
        lives.push(runs);
        before = runs;
    }
    finish(directory.path(), file, before, &expected);
    let today = Clock::system().now().wall.rfc3339();
    let date = today.split('T').next().unwrap();
    let report = format!(
        "# An import of runs, killed over and over, {date}\n\n\
         {} runs with {} trials from one file, killed with SIGKILL {KILLS} times on one archive and begun again each time;\n\
         then once to its end. Runs stored after each kill: {lives:?}.\n\n\
         Nothing stored was lost, nothing was there twice, and every model's detail and drift signature is, byte for\n\
         byte, that of an import that was never killed.\n",
        expected.0,
        expected.1 / 72,
    );
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/results");
    std::fs::write(results.join(format!("{date}-import-kills.md")), report).unwrap();
}
