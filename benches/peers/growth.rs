//! The gateway with few and with many keys or documents. All are in use, in random order, and leases have grown, so that
//! a measured request rarely needs one. For comparison, the loop without logic with the cache lines of as many accounts,
//! or as many copies of the response: the cost of the memory accesses alone.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use crate::{
    answer::Answer,
    backend,
    client::ClientPool,
    contestants::{Contestant, Floor},
    gateway::{self, GatewayUnderTest},
    job::{Job, Keys},
    lease_counts::LeaseCounts,
    machine::{Cores, resident},
    measure::{Figures, Row, Size, in_turns},
};

const FEW: usize = 10;
/// Requests of each key before the measurement. All keys are used equally, so they lease at the same uses, at growing intervals:
/// among others at the 11th and then not before the 15th (`limits/lease.rs`).
const USES: usize = 12;
/// Requests before the measurement, if a key then has more than those: a small measurement is many passes over few keys.
const LEAST: usize = 100_000;
/// Leases per 100 requests of the last pass before the measurement.
const FEW_LEASES: f64 = 3.0;
/// A measurement begins after this time even if there are more.
const LONGEST: Duration = Duration::from_mins(30);

/// What is varied, and how many.
#[derive(Clone, Copy)]
struct Many {
    name: &'static str,
    keys: usize,
    documents: usize,
}

/// A contestant and its job.
struct Grown {
    contestant: Contestant,
    side: SocketAddr,
    job: Job,
    many: Many,
    started: Duration,
    idle: f64,
}

/// The rows: each kind with few and with many, interleaved.
pub fn all(floor: Floor<'_>, size: &Size, sent: &Answer, is_full: bool) -> Vec<(String, Figures)> {
    let (keys, documents) = if is_full {
        (1_000_000, 100_000)
    } else {
        (1_000, 500)
    };
    let kinds = [
        Many {
            name: "few keys",
            keys: FEW,
            documents: 1,
        },
        Many {
            name: "many keys",
            keys,
            documents: 1,
        },
        Many {
            name: "few documents",
            keys: FEW,
            documents: FEW,
        },
        Many {
            name: "many documents",
            keys: FEW,
            documents,
        },
    ];
    let mut measure_growth = kinds.map(|many| Grown::up(many, floor.cores));
    for one in &measure_growth {
        let Many {
            name,
            keys,
            documents,
        } = one.many;
        let started_at = Instant::now();
        let warmed = one.is_in_use();
        println!(
            "{name:<38} {keys} keys, {documents} documents; started in {:.2?} with {:.1} MiB; {warmed} answers in {:.1?} before all are in use",
            one.started,
            one.idle / 1_048_576.0,
            started_at.elapsed()
        );
    }
    let [few, many, ..] = &measure_growth;
    let more = (many.many.keys - few.many.keys) as f64;
    println!(
        "{:.0} bytes for each idle key",
        (many.idle - few.idle) / more
    );
    let loops = [
        ("the loop, few keys", floor.loop_with(FEW, sent)),
        ("the loop, many keys", floor.loop_with(keys, sent)),
        ("the loop, few documents", floor.loop_over(FEW, sent)),
        ("the loop, many documents", floor.loop_over(documents, sent)),
    ];
    let asks = Keys::mint(FEW);
    let of_loops = loops.iter().map(|(name, contestant)| Row {
        name: (*name).to_owned(),
        ..Row::hits(contestant, &asks)
    });
    let sides = measure_growth
        .each_ref()
        .map(|one| (one.many.name, one.side, LeaseCounts::read(one.side)));
    let rows: Vec<Row<'_>> = measure_growth
        .iter_mut()
        .map(Grown::row)
        .chain(of_loops)
        .collect();
    let figures = in_turns(&rows, size);
    for (name, side, before) in sides {
        println!(
            "{name}: {:.1} leases per 100 measured requests",
            LeaseCounts::read(side).share_since(before)
        );
    }
    rows.into_iter().map(|row| row.name).zip(figures).collect()
}

impl Grown {
    fn up(many: Many, cores: &Cores) -> Self {
        let keys = Keys::mint(many.keys);
        let backend = backend::of_models(many.documents, None);
        let gateway = GatewayUnderTest {
            name: many.name,
            settings: gateway::LARGE_CACHE,
            ..gateway::PLAIN
        };
        let started_at = Instant::now();
        let (contestant, side, started) = gateway::started(gateway, cores, &keys, backend);
        println!("{}: set up in {:.1?}", many.name, started_at.elapsed());
        let idle = resident(&contestant.process.family());
        let job = if many.documents == 1 {
            keys.hits()
        } else {
            keys.details(many.documents)
        };
        Self {
            contestant,
            side,
            job: job.shuffled(),
            many,
            started,
            idle,
        }
    }

    fn row(&mut self) -> Row<'_> {
        Row {
            name: self.many.name.to_owned(),
            contestant: &self.contestant,
            job: std::mem::take(&mut self.job),
        }
    }

    /// Requests everything until all responses in a row are as expected, and few of them leased: then each document is cached,
    /// and the leases of each application have grown. Returns the number of responses.
    fn is_in_use(&self) -> usize {
        let mut pool = ClientPool::to(self.contestant.address, &self.job.transport);
        let started_at = Instant::now();
        let pass = self.job.requests.len();
        let least = LEAST.max(USES * self.many.keys).max(pass);
        let mut all = 0;
        let mut in_a_row = 0;
        let mut strange = 0;
        loop {
            let before = LeaseCounts::read(self.side);
            let already = all;
            while all < already + pass {
                let outcome = pool.without_pause(&self.job, Duration::from_millis(200));
                all += outcome.answers;
                strange += outcome.strange;
                in_a_row = if outcome.strange == 0 {
                    in_a_row + outcome.answers
                } else {
                    0
                };
                assert!(
                    strange <= pass,
                    "{}: {strange} strange answers",
                    self.many.name
                );
            }
            let leases = LeaseCounts::read(self.side).share_since(before);
            let has_grown = all >= least && leases < FEW_LEASES;
            if in_a_row >= pass && (has_grown || started_at.elapsed() > LONGEST) {
                println!(
                    "{}: {leases:.1} leases per 100 requests at the end of the warm-up",
                    self.many.name
                );
                return all;
            }
        }
    }
}
