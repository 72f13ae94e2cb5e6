//! Self-test of the load test: its pure parts against known values, and a server that stalls for a second, which has to
//! show in the figures. It runs before every small run.
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;

use super::client::{Client, Destination};
use super::drive::{Line, drive};
use super::plan::{Key, Plan, Spread, Zipf};
use super::record::{Outcome, Record, RequestResult, micros};
use super::schedule::{Phase, Schedule};

const STALL: Duration = Duration::from_secs(1);

/// Panics if a figure is wrong.
pub(crate) fn prove(runtime: &Runtime) {
    the_schedule_is_fixed_by_the_rates();
    the_same_seed_yields_the_same_requests();
    a_client_that_is_late_says_so();
    a_server_that_stalls_cannot_hide(runtime);
}

fn the_schedule_is_fixed_by_the_rates() {
    let phases = vec![
        Phase::new("a", 10.0, 1.0),
        Phase::new("nobody", 0.0, 1.0),
        Phase::new("b", 1_000.0, 0.5),
    ];
    let schedule = Schedule::new(phases);
    let due = |number| schedule.due(number).map(|(due, at)| (due.as_millis(), at));
    assert_eq!(schedule.requests(), 510);
    assert_eq!(
        [due(0), due(9), due(10), due(11)],
        [
            Some((0, 0)),
            Some((900, 0)),
            Some((2_000, 2)),
            Some((2_001, 2))
        ]
    );
    assert_eq!((due(509), due(510)), (Some((2_499, 2)), None));
    assert_eq!(
        (
            schedule.lasts().as_millis(),
            schedule.begins("b").as_millis()
        ),
        (2_500, 2_000)
    );
}

fn the_same_seed_yields_the_same_requests() {
    let zipf = Zipf::new(4, 1.0);
    // 1, 1/2, 1/3 and 1/4 are 12, 6, 4 and 3 of 25.
    assert_eq!(
        [0.0, 0.47, 0.49, 0.71, 0.73, 0.87, 0.89, 1.0].map(|chance| zipf.pick(chance)),
        [0, 0, 1, 1, 2, 2, 3, 3]
    );
    let plan = |seed| {
        plan_of(
            &[("free", 3), ("pro", 1)],
            &[("free", 1.0), ("pro", 3.0)],
            seed,
        )
    };
    let requests = |seed| {
        (0..10_000)
            .map(|number| plan(seed).request(number))
            .take(100)
            .collect::<Vec<_>>()
    };
    assert!(
        requests(1) == requests(1) && requests(1) != requests(2),
        "the seed determines all requests"
    );
    let plan = plan(3);
    let of = |which: &dyn Fn(&super::plan::PlannedRequest) -> bool| {
        (0..10_000)
            .filter(|number| which(&plan.request(*number)))
            .count()
    };
    let pro = of(&|request| plan.keys[request.key].tier == "pro");
    let conditional = of(&|request| request.is_conditional);
    assert!(
        (7_300..7_700).contains(&pro) && (2_800..3_200).contains(&conditional),
        "{pro} {conditional}"
    );
}

fn plan_of(keys: &[(&str, usize)], tiers: &[(&str, f64)], seed: u64) -> Plan {
    let made = keys.iter().flat_map(|(tier, count)| {
        (0..*count).map(|_| Key {
            text: "key".into(),
            tier: (*tier).into(),
        })
    });
    let tiers = tiers
        .iter()
        .map(|(tier, share)| ((*tier).to_owned(), *share))
        .collect::<BTreeMap<_, _>>();
    let spread = Spread {
        documents: 1.0,
        keys: 1.0,
        tiers,
        conditional: 0.3,
    };
    Plan::new(vec!["/".into()], made.collect(), &spread, seed).unwrap()
}

fn a_client_that_is_late_says_so() {
    let at = Duration::from_millis;
    let record = |late: u64, was_awaited: bool| {
        let mut record = Record::new(Schedule::new(vec![Phase::new("a", 10.0, 1.0)]));
        let outcome = Outcome::Answered(200, "hit");
        for due in (0..1_000).step_by(100).map(at) {
            let result = RequestResult {
                phase: 0,
                due,
                sent: due + at(late),
                ended: due + at(late + 1),
                outcome,
                was_awaited,
            };
            record.take(&result);
        }
        record
    };
    assert!(
        record(50, true).warning().is_some(),
        "a connection stood idle: it was the client"
    );
    assert!(
        record(50, false).warning().is_none(),
        "none was free: it was the server"
    );
    assert!(record(1, true).warning().is_none(), "a little");
    let p99 = record(50, false).of("a").all.value_at_quantile(0.99);
    assert!(
        p99 >= micros(at(51)),
        "waiting for a connection is part of the latency: {p99}"
    );
}

/// Two hundred requests a second for two seconds, with a server that stalls for one second. A closed loop would see
/// two slow responses; an open loop sees that half of the requests are slow.
fn a_server_that_stalls_cannot_hide(runtime: &Runtime) {
    let address = stalling_server();
    let destination = Destination::new(&address, false, None).unwrap();
    let schedule = Schedule::new(vec![Phase::new("stalled", 200.0, 2.0)]);
    let plan = Arc::new(plan_of(&[("any", 1)], &[], 1));
    let line = Line::new(
        plan,
        schedule,
        Client::new(destination, 2, 1, Duration::from_secs(10)),
    );
    let records = drive(runtime, &[line], Instant::now(), Vec::new());
    let stats = records[0].of("stalled");
    assert_eq!(
        stats.count(|outcome| matches!(outcome, Outcome::Answered(200, _))),
        400,
        "{:?}",
        stats.outcomes
    );
    let half_a_stall = micros(STALL / 2);
    let slow = |latencies: &hdrhistogram::Histogram<u64>| {
        latencies.len() - latencies.count_between(0, half_a_stall)
    };
    let counted = slow(&stats.all);
    let naive = slow(&stats.from_sent);
    assert!(
        counted >= 80,
        "{counted} of 400 waited for half of the stall or longer, and 100 should have"
    );
    assert!(
        naive <= 40,
        "{naive}: and from their sending next to none did"
    );
    assert!(
        stats.all.value_at_quantile(0.99) > micros(STALL * 9 / 10),
        "the p99 includes the stall"
    );
}

/// Responds immediately, except during the second that begins half a second after the first request.
fn stalling_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let first = Arc::new(std::sync::OnceLock::new());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let first = Arc::clone(&first);
            std::thread::spawn(move || {
                let mut request = [0; 4_096];
                while stream.read(&mut request).is_ok_and(|read| read > 0) {
                    let stalls = *first.get_or_init(Instant::now) + STALL / 2;
                    if (stalls..stalls + STALL).contains(&Instant::now()) {
                        std::thread::sleep(
                            (stalls + STALL).saturating_duration_since(Instant::now()),
                        );
                    }
                    if stream
                        .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                        .is_err()
                    {
                        return;
                    }
                }
            });
        }
    });
    address
}
