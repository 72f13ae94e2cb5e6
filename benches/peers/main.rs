//! The cost of a cached hit: the gateway and those of nginx, nginx with Lua, `HAProxy`, Varnish and Envoy that are
//! installed, plus the bare codec and a bare loop, in one run, interleaved.
//!
//! The job: a key in a header, a minute's and a day's limit, 5.7 KB of stored JSON, header fields with the limits; 64
//! keep-alive connections, servers on one core, the client on another. `cargo bench --bench peers` is small;
//! `SCOREGATE_FULL=1` measures long enough for reliable figures. `-- hyper HAProxy` selects rows by words in their
//! names, besides the gateway; an argument with a slash is the path of another build of the program, to be compared. The
//! last line is JSON. Speed never fails the bench; a contestant that does not do its job does.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::exit,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::disallowed_methods,
    reason = "a bench prints what it measured, reads the machine's clock and may end where something is not as it should be"
)]

mod answer;
mod backend;
mod client;
mod contestants;
mod floor;
mod gateway;
mod growth;
mod job;
mod machine;
mod measure;
mod process;
mod table;

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::answer::{Answer, ask};
use crate::client::CONNECTIONS;
use crate::contestants::Contestant;
use crate::gateway::{GatewayUnderTest, PLAIN};
use crate::job::{APPLICATIONS, Keys};
use crate::machine::Cores;
use crate::measure::{Figures, Row, Size, at_rate, in_turns, middle};

const WITHOUT_ACCESS_LOG: GatewayUnderTest =
    GatewayUnderTest { name: "scoregate, no access log", has_access_log: false, ..PLAIN };
const ONE_OF_TWO: GatewayUnderTest =
    GatewayUnderTest { name: "one worker, free to move", has_two_cores: true, ..PLAIN };
const TWO: GatewayUnderTest = GatewayUnderTest { name: "two workers", workers: 2, ..ONE_OF_TWO };

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if floor::is_played(&arguments) {
        return;
    }
    let is_full = std::env::var("SCOREGATE_FULL").is_ok_and(|value| value == "1");
    let size = size(is_full);
    let (cores, keys) = (Cores::take(), Keys::mint(APPLICATIONS));
    let scores = backend::of_scores();
    let start = |gateway| gateway::start(gateway, &cores, &keys, scores);
    let words = arguments.iter().skip(1).filter(|word| !word.starts_with("--"));
    let (builds, words): (Vec<&String>, Vec<&String>) = words.partition(|word| word.contains('/'));
    let is_selected = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));
    let plain = start(PLAIN);
    let sent = hit(&plain, &keys);
    let (body, head) = (sent.body().len(), sent.bytes.len() - sent.body().len());
    print!("{}; {CONNECTIONS} connections; {} rounds of {:?}; ", cores.output(), size.rounds, size.turn);
    println!("{head} bytes of head and {body} of body");
    let (peers, absent) = contestants::peers(&cores, &keys, backend::of_answer(&sent), &sent);
    let others: Vec<Contestant> = [start(WITHOUT_ACCESS_LOG)]
        .into_iter()
        .chain(contestants::floor(&cores, &sent))
        .chain(peers)
        .collect();
    check_contestants(&plain, &others, &keys, &sent, &absent);
    let others: Vec<Contestant> = others.into_iter().filter(|other| is_selected(other.name)).collect();
    let others: Vec<Contestant> =
        builds.into_iter().map(|path| start(build_at(path))).chain(others).collect();
    let spread: Vec<Contestant> = if is_selected(TWO.name) {
        let of_the_floor = contestants::bare_on_two_cores(&cores, &sent);
        [ONE_OF_TWO, TWO].map(start).into_iter().chain(of_the_floor).collect()
    } else {
        Vec::new()
    };

    let mut rows: Vec<Row<'_>> =
        [&plain].into_iter().chain(&others).map(|contestant| Row::hits(contestant, &keys)).collect();
    let all = rows.len();
    let kinds = [
        ("scoregate, 304", keys.unchanged(&sent)),
        ("scoregate, 401", keys.refused()),
        ("scoregate, 429", keys.limited()),
    ];
    let kinds = kinds.into_iter().filter(|(name, _)| is_selected(name));
    rows.extend(kinds.map(|(name, job)| Row { name: name.to_owned(), contestant: &plain, job }));
    let mut figures = in_turns(&rows, &size);
    let half = middle(&figures[0].rate).unwrap() / 2.0;
    at_rate(&rows[..all], &size, half, &mut figures[..all]);
    let heading = format!(
        "a hit; latencies at {half:.0} requests/s, half of the gateway's maximum, of servers that reach it"
    );
    let hit_rows = print_rows(&rows, &figures, &heading);
    let worker_rows = compare_workers(&spread, &keys, &size);
    let growth_rows =
        if is_selected("many") { measure_growth(&cores, &size, &sent, is_full) } else { Vec::new() };
    println!(
        "\n{}",
        json!({ "cores": cores.output(), "rate": half, "rows": hit_rows, "workers": worker_rows, "growth": growth_rows, "absent": absent })
    );
}

fn size(is_full: bool) -> Size {
    if is_full {
        Size { rounds: 9, warm_up: Duration::from_millis(300), turn: Duration::from_secs(2) }
    } else {
        Size { rounds: 5, warm_up: Duration::from_millis(20), turn: Duration::from_millis(80) }
    }
}

/// Another build of the program, to be measured beside this one.
fn build_at(path: &str) -> GatewayUnderTest {
    let path: &'static str = path.to_owned().leak();
    GatewayUnderTest { name: path, build: Some(Path::new(path)), ..PLAIN }
}

/// The cost of a second core: for the gateway, and for the lower bounds.
fn compare_workers(pairs: &[Contestant], keys: &Keys, size: &Size) -> Vec<Value> {
    let rows: Vec<Row<'_>> = pairs.iter().map(|contestant| Row::hits(contestant, keys)).collect();
    let figures = in_turns(&rows, size);
    let heading = "two workers and one, on the same two cores";
    rows.chunks(2)
        .zip(figures.chunks(2))
        .flat_map(|(rows, figures)| print_rows(rows, figures, heading))
        .collect()
}

/// The cost of a hit with many keys or documents, as ratios to few.
fn measure_growth(cores: &Cores, size: &Size, sent: &Answer, is_full: bool) -> Vec<Value> {
    println!();
    let rows = growth::all(cores, size, sent, is_full);
    let heading = "a hit with few and with many keys or documents";
    let print_pair = |pair: &[(String, Figures)]| {
        let named: Vec<_> = pair.iter().map(|(name, figures)| (name.clone(), figures)).collect();
        table::print(heading, &named)
    };
    rows.chunks(2).flat_map(print_pair).collect()
}

fn print_rows(rows: &[Row<'_>], figures: &[Figures], heading: &str) -> Vec<Value> {
    let named: Vec<_> = rows.iter().map(|row| row.name.clone()).zip(figures).collect();
    table::print(heading, &named)
}

/// The gateway's cached response.
fn hit(plain: &Contestant, keys: &Keys) -> Answer {
    let request = &keys.hits().requests[0];
    let first = ask(plain.address, request).unwrap();
    assert_eq!(first.status(), 200, "{}", String::from_utf8_lossy(&first.bytes));
    let sent = ask(plain.address, request).unwrap();
    assert!(sent.field("cache-status").contains("; hit"), "{}", sent.field("cache-status"));
    assert!((5_600..5_800).contains(&sent.body().len()), "{} bytes of body", sent.body().len());
    sent
}

/// Checks that every contestant does the job; prints what each lacks.
fn check_contestants(
    plain: &Contestant,
    others: &[Contestant],
    keys: &Keys,
    sent: &Answer,
    absent: &[String],
) {
    for contestant in [plain].into_iter().chain(others) {
        let [missing, own] =
            contestant.check(keys, sent).unwrap_or_else(|wrong| panic!("{}: {wrong}", contestant.name));
        let lists = [("lacks", missing), ("adds", own)];
        let fields: Vec<String> = lists
            .into_iter()
            .filter(|(_, names)| !names.is_empty())
            .map(|(word, names)| format!("{word} {}", names.join(", ")))
            .collect();
        println!(
            "{:<38} {}",
            contestant.name,
            [contestant.limitations.to_owned(), fields.join("; ")].join("; ").trim_matches([';', ' '])
        );
    }
    for line in absent {
        println!("absent: {line}");
    }
}
