//! Self-test of the load test: a late client is reported, and a server that stalls for a second shows in the figures. It runs
//! before every small run.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener},
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    client::Client,
    drive::{Line, drive},
    plan::{Key, Plan},
    record::{Outcome, Record, RequestResult, micros},
    schedule::{Phase, Schedule},
};

const STALL: Duration = Duration::from_secs(1);

/// Panics if a figure is wrong.
pub fn prove() {
    a_client_that_is_late_says_so();
    a_server_that_stalls_cannot_hide();
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
fn a_server_that_stalls_cannot_hide() {
    let address = stalling_server();
    let schedule = Schedule::new(vec![Phase::new("stalled", 200.0, 2.0)]);
    let key = Key {
        text: "key".into(),
        tier: "any".into(),
    };
    let plan = Plan {
        targets: vec!["/".into()],
        keys: vec![key],
        conditional: 0.0,
    };
    let line = Line::new(Arc::new(plan), schedule, Client::new(address), 2);
    let records = drive(vec![line], Instant::now(), Vec::new());
    let stats = records[0].of("stalled");
    assert_eq!(
        stats.count(|outcome| matches!(outcome, Outcome::Answered(200, _))),
        400,
        "{:?}",
        stats.outcomes
    );
    let half_a_stall = micros(STALL / 2);
    let counted = stats.all.len() - stats.all.count_between(0, half_a_stall);
    assert!(
        counted >= 80,
        "{counted} of 400 waited for half of the stall or longer, and 100 should have"
    );
    assert!(
        stats.all.value_at_quantile(0.99) > micros(STALL * 9 / 10),
        "the p99 includes the stall"
    );
}

/// Responds immediately, except during the second that begins half a second after the first request.
fn stalling_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
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
