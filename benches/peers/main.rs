//! The cost of a cached hit: the gateway and those of nginx, nginx with Lua, `HAProxy`, Varnish and Envoy that are
//! installed, plus the bare codec, a bare loop and a sketch of the job, in one run, interleaved.
//!
//! The job: a key in a header, a minute's and a day's limit, 5.7 KB of stored JSON, header fields with the limits; 64
//! keep-alive connections, servers on one core, the client on another. `cargo bench --bench peers` is small;
//! `SCOREGATE_FULL=1` measures long enough for reliable figures. `-- hyper HAProxy` selects rows by words in their
//! names, besides the gateway; the path of a file is another build of the program, to be compared. Results
//! of `deploy/dist/build.sh` are measured too. The last line is JSON. Speed never fails the
//! bench; a contestant that does not do its job does.

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
mod comparisons;
mod contestants;
mod floor;
mod gateway;
mod growth;
mod job;
mod lease_counts;
mod lineup;
mod machine;
mod measure;
mod process;
mod sketch;
mod table;
mod transport;

use std::{path::Path, time::Duration};

use serde_json::{Value, json};

use crate::{
    backend::{DATA, LESS_DATA},
    client::CONNECTIONS,
    comparisons::{Compared, Rows, of_growth, of_hits, of_kinds, of_misses, of_workers},
    job::{APPLICATIONS, Keys},
    lineup::{Lineup, Pair, Setting},
    machine::Cores,
    measure::{Figures, Row, Size, at_rate, in_turns, middle},
    transport::ServerCertificate,
};

/// Instructions of a hit, which state the version of the program that a run is of.
const RECORDED: &str = include_str!("../hot_path/recorded.toml");

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if floor::is_played(&arguments) {
        return;
    }
    let is_full = std::env::var("SCOREGATE_FULL").is_ok_and(|value| value == "1");
    let (words, builds) = arguments
        .into_iter()
        .skip(1)
        .filter(|word| !word.starts_with("--"))
        .partition::<Vec<String>, _>(|word| !Path::new(word).is_file());
    let setting = Setting {
        cores: Cores::take(),
        keys: Keys::mint(APPLICATIONS),
        this: std::env::current_exe().unwrap(),
        certificate: Box::leak(Box::new(ServerCertificate::new())),
        words,
        builds,
    };
    let size = size(is_full);
    let lineup = Lineup::start(&setting, DATA);
    print!(
        "{}; {CONNECTIONS} connections; {} rounds of {:?}; ",
        setting.cores.output(),
        size.rounds,
        size.turn
    );
    println!("{}", lineup.output());
    println!(
        "a hit takes {} instructions, as benches/hot_path/recorded.toml states",
        recorded()
    );
    lineup.check(&setting);
    let hits = measure_hits(&setting, &lineup, &size);
    let pairs = measure_pairs(&setting, &lineup, &size);
    let small = if setting.is_selected("3 kB") {
        measure_small(&setting, &size)
    } else {
        Value::Null
    };
    let misses = measure_misses(&setting, &size);
    let workers = measure_workers(&setting, &lineup, &size);
    let growth = if setting.is_selected("many") {
        measure_growth(&setting, &lineup, &size, is_full)
    } else {
        Value::Null
    };
    println!(
        "\n{}",
        json!({
            "cores": setting.cores.output(), "instructions_of_a_hit": recorded(), "hits": hits, "pairs": pairs, "3 kB": small, "misses": misses,
            "workers": workers, "growth": growth, "absent": lineup.absent,
        })
    );
}

fn size(is_full: bool) -> Size {
    if is_full {
        Size {
            rounds: 9,
            warm_up: Duration::from_millis(300),
            turn: Duration::from_secs(2),
        }
    } else {
        Size {
            rounds: 5,
            warm_up: Duration::from_millis(20),
            turn: Duration::from_millis(80),
        }
    }
}

/// The recorded instructions of a hit.
fn recorded() -> &'static str {
    RECORDED
        .lines()
        .find_map(|line| line.strip_prefix("\"hit\" = "))
        .unwrap()
}

/// All contestants as fast as they can, and at half of the gateway's maximum.
fn measure_hits(setting: &Setting, lineup: &Lineup, size: &Size) -> Value {
    let rows: Vec<Row<'_>> = lineup
        .all()
        .map(|contestant| Row::hits(contestant, &setting.keys))
        .collect();
    let mut figures = in_turns(&rows, size);
    let half = middle(&figures[0].rate).unwrap() / 2.0;
    at_rate(&rows, size, half, &mut figures);
    let heading = format!(
        "a hit; latencies at {half:.0} requests/s, half of the gateway's maximum, of servers that reach it"
    );
    printed(&rows, &figures, &heading, of_hits)
}

/// Other responses and transports, each beside the bare codec with the same.
fn measure_pairs(setting: &Setting, lineup: &Lineup, size: &Size) -> Value {
    let pairs = lineup.pairs(setting);
    let row = |name: &str, pair: &Pair| format!("{name}, {}", pair.name);
    let rows: Vec<Row<'_>> = pairs
        .iter()
        .flat_map(|pair| {
            let gateway = pair.gateway.as_ref().unwrap_or(&lineup.plain);
            [("scoregate", gateway), ("bare hyper", &pair.bare)].map(|(name, contestant)| Row {
                name: row(name, pair),
                contestant,
                job: pair.job.clone(),
            })
        })
        .collect();
    measured(&rows, size, "other responses and transports", of_kinds)
}

/// A hit with a smaller body.
fn measure_small(setting: &Setting, size: &Size) -> Value {
    let lineup = Lineup::start(setting, LESS_DATA);
    let rows: Vec<Row<'_>> = lineup
        .all()
        .map(|contestant| Row::hits(contestant, &setting.keys))
        .collect();
    measured(&rows, size, &format!("a hit; {}", lineup.output()), of_hits)
}

/// The cost of a request whose document is fetched, from backends without and with TLS.
fn measure_misses(setting: &Setting, size: &Size) -> Value {
    let contestants = Lineup::misses(setting);
    let rows: Vec<Row<'_>> = contestants
        .iter()
        .map(|(contestant, job)| Row {
            name: contestant.name.to_owned(),
            contestant,
            job: job.clone(),
        })
        .collect();
    measured(&rows, size, "a miss", of_misses)
}

/// The cost of a second core: for the gateway, and for the codec.
fn measure_workers(setting: &Setting, lineup: &Lineup, size: &Size) -> Value {
    let contestants = lineup.on_two_cores(setting);
    let rows: Vec<Row<'_>> = contestants
        .iter()
        .map(|contestant| Row::hits(contestant, &setting.keys))
        .collect();
    measured(
        &rows,
        size,
        "two workers and one, on the same two cores",
        of_workers,
    )
}

/// The cost of a hit with many keys or documents, as ratios to few.
fn measure_growth(setting: &Setting, lineup: &Lineup, size: &Size, is_full: bool) -> Value {
    println!();
    let rows = growth::all(setting.floor(&setting.this), size, &lineup.sent, is_full);
    let named: Vec<_> = rows
        .iter()
        .map(|(name, figures)| (name.clone(), figures))
        .collect();
    let heading = "a hit with few and with many keys or documents";
    let printed: Vec<Value> = named
        .chunks(2)
        .flat_map(|pair| table::print(heading, pair))
        .collect();
    json!({ "rows": printed, "ratios": table::print_ratios(&of_growth(&named)) })
}

/// Measures rows, and prints them and their ratios.
fn measured(
    rows: &[Row<'_>],
    size: &Size,
    heading: &str,
    compared: fn(&Rows<'_>) -> Vec<Compared>,
) -> Value {
    if rows.is_empty() {
        return Value::Null;
    }
    let figures = in_turns(rows, size);
    printed(rows, &figures, heading, compared)
}

fn printed(
    rows: &[Row<'_>],
    figures: &[Figures],
    heading: &str,
    compared: fn(&Rows<'_>) -> Vec<Compared>,
) -> Value {
    let named: Vec<_> = rows
        .iter()
        .map(|row| row.name.clone())
        .zip(figures)
        .collect();
    json!({ "rows": table::print(heading, &named), "ratios": table::print_ratios(&compared(&named)) })
}
