//! A graceful shutdown under load: no unit of a daily quota is lost, and no request is interrupted.
//!
//! A request is interrupted if its response begins and does not end, or if it was charged and never answered. A
//! refused connection, or one that is closed before the first byte of a response, is neither: HTTP lets a server
//! close an idle connection, and the client retries elsewhere. The exact sums prove that those cost nothing.

use tempfile::TempDir;

use crate::{
    backend::Backend,
    load_clients::{CallerGroup, LoadClient, Reply, Wire, prepare, remaining, run_load},
    program::{Keys, Program, within_one_day},
    world::good,
};

const BUILT_IN: [(&str, &str); 1] = [("SCOREGATE_UPSTREAM", "built-in")];
/// Consecutive shutdowns, each after this many responses.
const MOMENTS: [u32; 4] = [1, 40, 150, 400];

#[test]
fn a_shutdown_under_load_loses_no_unit_and_interrupts_no_request() {
    within_one_day(|| {
        let directory = TempDir::new().unwrap();
        let load_clients = prepare(
            directory.path(),
            &[
                ("free", 10),
                ("pro", 300),
                ("pro", 5_000),
                ("teams", 100_000),
            ],
        );
        let mut delivered = vec![0; load_clients.len()];
        for moment in MOMENTS {
            let program = Program::serve(directory.path(), &BUILT_IN);
            let public = program.public();
            assert_eq!(
                left(public, &load_clients),
                owed(&load_clients, &delivered),
                "before the stop after {moment}"
            );
            let patient = |load_client| CallerGroup {
                load_client,
                callers: 2,
                most: u32::MAX,
                reconnects: false,
            };
            let impatient = |load_client| CallerGroup {
                load_client,
                callers: 1,
                most: u32::MAX,
                reconnects: true,
            };
            let seats: Vec<CallerGroup<'_>> = load_clients
                .iter()
                .map(patient)
                .chain(load_clients.iter().map(impatient))
                .collect();
            let (tallies, came) = run_load(public, &seats, moment, || program.signal("TERM"));
            assert!(came, "{tallies:?}");
            assert!(tallies.iter().all(|tally| tally.broken == 0), "{tallies:?}");
            for (sum, tally) in (0..load_clients.len()).cycle().zip(&tallies) {
                delivered[sum] += tally.delivered;
            }
            let ended = program.end().0.with(0);
            assert!(!ended.err.contains("panicked"), "{}", ended.err);
        }
        let program = Program::serve(directory.path(), &BUILT_IN);
        assert_eq!(
            left(program.public(), &load_clients),
            owed(&load_clients, &delivered)
        );
        program.stop().with(0);
    });
}

fn left(public: std::net::SocketAddr, load_clients: &[LoadClient]) -> Vec<u32> {
    load_clients
        .iter()
        .map(|load_client| remaining(public, load_client))
        .collect()
}

fn owed(load_clients: &[LoadClient], delivered: &[u32]) -> Vec<u32> {
    load_clients
        .iter()
        .zip(delivered)
        .map(|(load_client, delivered)| load_client.quota - delivered)
        .collect()
}

#[test]
fn the_data_directory_is_locked_until_the_store_is_closed() {
    let directory = TempDir::new().unwrap();
    for round in 0..3 {
        let program = Program::serve(directory.path(), &BUILT_IN);
        program.public();
        // The write-ahead log is not empty, so that closing the store has work to do.
        let mut text = String::from("sha256,name,tier\n");
        for number in 0..400 {
            text += &format!("{round:016x}{number:016x}{round:032x},n,pro\n");
        }
        Keys(directory.path())
            .run_with_input(&["import", "-", "--format", "csv"], text.as_bytes())
            .with(0);
        assert!(directory.path().join("scoregate.db-wal").exists());
        let lock = std::fs::File::open(directory.path().join("scoregate.lock")).unwrap();
        program.signal("TERM");
        lock.lock().unwrap();
        assert!(
            !directory.path().join("scoregate.db-wal").exists(),
            "its log is there, so it was open"
        );
        drop(lock);
        program.end().0.with(0);
    }
}

/// Requests that wait for the backend at shutdown.
const WAITING: u32 = 8;

#[test]
fn a_request_that_waits_for_the_backend_is_answered_during_shutdown() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    within_one_day(|| {
        let backend = runtime.block_on(Backend::start(good));
        let directory = TempDir::new().unwrap();
        let url = backend.url();
        let at_once = WAITING.to_string();
        let environment = [
            ("SCOREGATE_UPSTREAM_URL", url.as_str()),
            (
                "SCOREGATE_UPSTREAM_MAX_CONCURRENT_REQUESTS",
                at_once.as_str(),
            ),
        ];
        let load_clients = prepare(directory.path(), &[("pro", 1_000)]);
        let [load_client] = load_clients.as_slice() else {
            unreachable!()
        };
        let program = Program::serve(directory.path(), &environment);
        let public = program.public();
        // After the list, the gateway knows the models below.
        assert_eq!(
            Wire::open(public)
                .unwrap()
                .get("/api/v1/models", &load_client.key)
                .status_and_code()
                .0,
            200
        );
        backend.hold();
        let replies: Vec<Reply> = std::thread::scope(|scope| {
            let waiting: Vec<_> = (0..WAITING)
                .map(|number| {
                    let target = format!("/api/v1/models/m{number}");
                    scope.spawn(move || Wire::open(public).unwrap().get(&target, &load_client.key))
                })
                .collect();
            runtime.block_on(backend.has_received(WAITING as usize + 1));
            program.signal("TERM");
            program.logs("stopping");
            backend.open();
            waiting.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert!(
            replies
                .iter()
                .all(|replies| replies.status_and_code().0 == 200),
            "{replies:?}"
        );
        program.end().0.with(0);
        let program = Program::serve(directory.path(), &environment);
        assert_eq!(
            remaining(program.public(), load_client),
            load_client.quota - WAITING - 1
        );
        program.stop().with(0);
    });
}
