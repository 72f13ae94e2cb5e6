//! What the built-in backend takes: bringing runs in, opening an archive, a whole refresh, and memory.
//!
//! `cargo bench --bench scoring` is small; `SCOREGATE_FULL=1` takes 150 models over 35 days for the refresh, a year for
//! the opening, and a million trials for the import by the real program. Not for: how soon a change is found (`detection`).

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a bench prints what it measured, reads the machine's clock and may end where something is not as it should be"
)]

use std::path::Path;
use std::time::{Duration, Instant};

use scoregate::clock::Wall;
use scoregate::scoring::{Archive, Scoring, Source, simulated_records};

const BATCH: usize = 4_096;
const SEED: u64 = 7;
const ROUNDS: u32 = 11;

fn main() {
    let is_full = std::env::var_os("SCOREGATE_FULL").is_some();
    let (models, days) = if is_full { (150, 35) } else { (20, 7) };
    refreshes(models, days);
}

fn now() -> Wall {
    Wall::parse_rfc3339("2026-11-21T12:34:00Z").unwrap()
}

fn fill(path: &Path, models: usize, hours: u64) -> (u64, Duration) {
    let archive = Archive::open(path, now()).unwrap();
    archive.make_room().unwrap();
    let (mut runs, mut spent) = (0_u64, Duration::ZERO);
    let mut records = simulated_records(SEED, models, now(), hours).peekable();
    while records.peek().is_some() {
        let batch: Vec<_> = records.by_ref().take(BATCH).collect();
        let began = Instant::now();
        archive.take(&batch).unwrap();
        spent += began.elapsed();
        runs += batch.len() as u64;
    }
    let began = Instant::now();
    archive.sum_up(now()).unwrap();
    (runs, spent + began.elapsed())
}

fn refreshes(models: usize, days: u64) {
    let place = tempfile::TempDir::new().unwrap();
    let path = place.path().join("runs.db");
    let (runs, spent) = fill(&path, models, days * 24);
    println!("{models} models, {days} days, {runs} runs: stored and summed up in {spent:.1?}");
    let before = resident();
    let began = Instant::now();
    let archive = Archive::open(&path, now()).unwrap();
    let opened = began.elapsed();
    let scoring = Scoring::open(Source::Archive(archive), now()).unwrap();
    println!("opened in {opened:.1?}, first snapshot after {:.1?}", began.elapsed());
    let mut took: Vec<(Duration, Duration)> = (1..=ROUNDS)
        .map(|hour| {
            let later = now().plus(Duration::from_hours(1) * hour);
            let (began, worked) = (Instant::now(), on_cpu());
            assert!(scoring.refresh(later).unwrap());
            (on_cpu() - worked, began.elapsed())
        })
        .collect();
    took.sort_unstable();
    let ((median, by_clock), (worst, _)) = (took.get(took.len() / 2).unwrap(), took.last().unwrap());
    println!(
        "refresh, median of {ROUNDS}: {median:.1?} of one core ({by_clock:.1?} by the clock), worst {worst:.1?}"
    );
    println!("resident memory: {before} MiB before it was opened, {} MiB after", resident());
}

/// How long this thread has been on a core: unlike the clock, it does not count what others do meanwhile.
fn on_cpu() -> Duration {
    let schedule = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(schedule.split_whitespace().next().unwrap().parse().unwrap())
}

/// Resident memory of this process, in MiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}
