//! The figures of a full run as a dated page. They are judged before.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use scoregate::clock::Clock;

use super::{CRASH_POINTS, End, KillRecord, Size};

/// Writes the page to `tests/results/`.
pub(super) fn record(story: &KillRecord, lost: &[Vec<u32>], size: &Size) {
    let day = Clock::system().now().wall.day();
    let name = format!("tests/results/{day}-kill-loops.md");
    let page = page(story, lost, size, &day.to_string());
    std::fs::write(Path::new(env!("CARGO_MANIFEST_DIR")).join(name), page).unwrap();
}

fn page(story: &KillRecord, lost: &[Vec<u32>], size: &Size, day: &str) -> String {
    let cores = std::thread::available_parallelism().unwrap();
    let build = if cfg!(debug_assertions) { "debug" } else { "release" };
    let before = story.lives.iter().filter(|life| life.left.is_empty()).count();
    let mut page = format!(
        "# Kill loops, {day}\n\n\
         `SCOREGATE_FULL=1 cargo test --release --test suite kills::`: the {build} build of the program on one data \
         directory, {cores} cores shared with its callers, {} keys. {} lives ended by SIGKILL after 1 to {} answers \
         (seed {}), {} at a point of what they did to their disk, {before} of these before they served; a last one spent \
         what was left and was stopped in order.\n\n",
        size.strangers as usize + story.load_clients.len(),
        size.kills,
        size.latest,
        story.seed,
        CRASH_POINTS.len(),
    );
    starts(&mut page, story);
    load_clients(&mut page, story, lost);
    lives(&mut page, story, lost);
    page
}

fn starts(page: &mut String, story: &KillRecord) {
    let mut starts: Vec<Duration> = story.lives.iter().filter_map(|life| life.start).collect();
    starts.sort_unstable();
    let millis = |start: Option<&Duration>| start.map_or(0, Duration::as_millis);
    let (middle, last) = (millis(starts.get(starts.len() / 2)), millis(starts.last()));
    writeln!(
        page,
        "From the start of the process until it said that it serves: {middle} ms in the middle, {last} ms at most.\n"
    )
    .unwrap();
}

fn load_clients(page: &mut String, story: &KillRecord, lost: &[Vec<u32>]) {
    page.push_str("| Day's quota | One lease | 200s | Never heard of | Lost | Most lost in a life |\n|---:|---:|---:|---:|---:|---:|\n");
    for (at, load_client) in story.load_clients.iter().enumerate() {
        let (delivered, unconfirmed) = story.totals_of_all_runs(at);
        let most = lost.iter().map(|of_each| of_each[at]).max().unwrap_or(0);
        let (quota, lease, gone) =
            (load_client.quota, load_client.lease(load_client.quota), load_client.quota - delivered);
        writeln!(page, "| {quota} | {lease} | {delivered} | {unconfirmed} | {gone} | {most} |").unwrap();
    }
    page.push('\n');
}

fn lives(page: &mut String, story: &KillRecord, lost: &[Vec<u32>]) {
    let quotas: Vec<u32> =
        story.load_clients.iter().rev().take(2).map(|load_client| load_client.quota).collect();
    writeln!(page, "| End | Start | 200s | Unheard | Lost of {} | Lost of {} |", quotas[1], quotas[0])
        .unwrap();
    page.push_str("|---|---:|---:|---:|---:|---:|\n");
    let mut lost = lost.iter();
    for life in story.lives.iter().filter(|life| life.end != End::After(u32::MAX)) {
        let Some(start) = life.start else {
            writeln!(page, "| {} | | | | | |", words(life.end)).unwrap();
            continue;
        };
        let of_each = lost.next().unwrap();
        let [small, large] = of_each[of_each.len() - 2..] else { continue };
        let delivered: u32 = life.tallies.iter().map(|tally| tally.delivered).sum();
        let unconfirmed: u32 = life.tallies.iter().map(|tally| tally.unconfirmed()).sum();
        let (end, start) = (words(life.end), start.as_millis());
        writeln!(page, "| {end} | {start} ms | {delivered} | {unconfirmed} | {small} | {large} |").unwrap();
    }
}

fn words(end: End) -> String {
    match end {
        End::After(moment) => format!("SIGKILL after {moment} answers"),
        End::Starting(order) => format!("{order:?} from the start on"),
        End::Serving(order) => format!("{order:?} while serving"),
    }
}
