//! The cost of a cached hit: the gateway and those of nginx, nginx with Lua, `HAProxy`, Varnish and Envoy that are
//! installed, plus the bare codec and a bare loop, in one run, interleaved.
//!
//! The job: a key in a header, a minute's and a day's limit, 5.7 KB of stored JSON, header fields with the limits; 64
//! keep-alive connections, servers on one core, the client on another. `cargo bench --bench peers` is small;
//! `SCOREGATE_FULL=1` measures long enough for reliable figures. `-- hyper HAProxy` selects rows by words in their
//! names, besides ours; an argument with a slash is the path of another build of the program, to be compared. The
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
mod growth;
mod job;
mod machine;
mod measure;
mod ours;
mod process;
mod table;

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::answer::{Answer, ask};
use crate::client::CONNECTIONS;
use crate::contestants::Contestant;
use crate::job::{APPLICATIONS, Keys};
use crate::machine::Cores;
use crate::measure::{Figures, Row, Size, at_rate, in_turns, middle};
use crate::ours::{Ours, PLAIN};

const SILENT: Ours = Ours { name: "scoregate, tells of no request", tells: false, ..PLAIN };
const ONE_OF_TWO: Ours = Ours { name: "one worker, free to move", has_two_cores: true, ..PLAIN };
const TWO: Ours = Ours { name: "two workers", workers: 2, ..ONE_OF_TWO };

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if floor::is_played(&arguments) {
        return;
    }
    let is_full = std::env::var("SCOREGATE_FULL").is_ok_and(|value| value == "1");
    let size = if is_full {
        Size { rounds: 9, warm_up: Duration::from_millis(300), turn: Duration::from_secs(2) }
    } else {
        Size { rounds: 5, warm_up: Duration::from_millis(20), turn: Duration::from_millis(80) }
    };
    let (cores, keys) = (Cores::take(), Keys::mint(APPLICATIONS));
    let scores = backend::of_scores();
    let start = |ours| ours::start(ours, &cores, &keys, scores);
    let words = arguments.iter().skip(1).filter(|word| !word.starts_with("--"));
    let (builds, words): (Vec<&String>, Vec<&String>) = words.partition(|word| word.contains('/'));
    let is_asked_for = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));
    let plain = start(PLAIN);
    let sent = hit(&plain, &keys);
    let (body, head) = (sent.body().len(), sent.bytes.len() - sent.body().len());
    print!("{}; {CONNECTIONS} connections; {} rounds of {:?}; ", cores.output(), size.rounds, size.turn);
    println!("{head} bytes of head and {body} of body");
    let (peers, absent) = contestants::peers(&cores, &keys, backend::of_answer(&sent), &sent);
    let others: Vec<Contestant> =
        [start(SILENT)].into_iter().chain(contestants::floor(&cores, &sent)).chain(peers).collect();
    hold_to_the_job(&plain, &others, &keys, &sent, &absent);
    let others: Vec<Contestant> = others.into_iter().filter(|other| is_asked_for(other.name)).collect();
    let others: Vec<Contestant> =
        builds.into_iter().map(|path| start(build_at(path))).chain(others).collect();
    let spread: Vec<Contestant> = if is_asked_for(TWO.name) {
        let of_the_floor = contestants::bare_on_two_cores(&cores, &sent);
        [ONE_OF_TWO, TWO].map(start).into_iter().chain(of_the_floor).collect()
    } else {
        Vec::new()
    };

    let mut rows: Vec<Row<'_>> =
        [&plain].into_iter().chain(&others).map(|who| Row::hits(who, &keys)).collect();
    let all = rows.len();
    let kinds = [
        ("scoregate, 304", keys.unchanged(&sent)),
        ("scoregate, 401", keys.refused()),
        ("scoregate, 429", keys.limited()),
    ];
    let kinds = kinds.into_iter().filter(|(name, _)| is_asked_for(name));
    rows.extend(kinds.map(|(name, job)| Row { name: name.to_owned(), who: &plain, job }));
    let mut figures = in_turns(&rows, &size);
    let half = middle(&figures[0].rate).unwrap() / 2.0;
    at_rate(&rows[..all], &size, half, &mut figures[..all]);
    let heading =
        format!("a hit; latencies at {half:.0} a second, half of what the gateway can do, for who keeps up");
    let of_all = print_rows(&rows, &figures, &heading);
    let of_two = two_against_one(&spread, &keys, &size);
    let of_growth = if is_asked_for("many") { grown(&cores, &size, &sent, is_full) } else { Vec::new() };
    println!(
        "\n{}",
        json!({ "cores": cores.output(), "rate": half, "rows": of_all, "workers": of_two, "growth": of_growth, "absent": absent })
    );
}

/// Another build of the program, to be measured beside this one.
fn build_at(path: &str) -> Ours {
    let path: &'static str = path.to_owned().leak();
    Ours { name: path, build: Some(Path::new(path)), ..PLAIN }
}

/// The cost of a second core: for the gateway, and for the lower bounds.
fn two_against_one(pairs: &[Contestant], keys: &Keys, size: &Size) -> Vec<Value> {
    let rows: Vec<Row<'_>> = pairs.iter().map(|who| Row::hits(who, keys)).collect();
    let figures = in_turns(&rows, size);
    let heading = "two workers against one, both on the same two cores";
    rows.chunks(2)
        .zip(figures.chunks(2))
        .flat_map(|(rows, figures)| print_rows(rows, figures, heading))
        .collect()
}

/// The cost of a hit with many keys or documents, as ratios to few.
fn grown(cores: &Cores, size: &Size, sent: &Answer, is_full: bool) -> Vec<Value> {
    println!();
    let rows = growth::all(cores, size, sent, is_full);
    let heading = "a hit as all grows, each kind with few and with many";
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
fn hold_to_the_job(plain: &Contestant, others: &[Contestant], keys: &Keys, sent: &Answer, absent: &[String]) {
    for who in [plain].into_iter().chain(others) {
        let [missing, own] =
            who.is_held_to(keys, sent).unwrap_or_else(|wrong| panic!("{}: {wrong}", who.name));
        let lists = [("lacks", missing), ("adds", own)];
        let fields: Vec<String> = lists
            .into_iter()
            .filter(|(_, names)| !names.is_empty())
            .map(|(word, names)| format!("{word} {}", names.join(", ")))
            .collect();
        println!(
            "{:<38} {}",
            who.name,
            [who.cannot.to_owned(), fields.join("; ")].join("; ").trim_matches([';', ' '])
        );
    }
    for line in absent {
        println!("absent: {line}");
    }
}
