//! Notifications of the real program to a service manager: ready, watchdog keep-alives, stopping. The end of
//! keep-alives is tested in `app/supervisor.rs`.

use std::{
    os::unix::net::UnixDatagram,
    path::Path,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::program::{BUILT_IN, Program};

/// A test fails if a notification takes longer than this.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Watchdog limit in microseconds: a keep-alive every 10 ms.
const LIMIT: &str = "20000";

/// The program with a service manager that listens on this socket.
fn supervised(directory: &Path, data_dir: &Path) -> (UnixDatagram, Program) {
    let path = directory.join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(TIMEOUT)).unwrap();
    let environment = [
        BUILT_IN[0],
        ("NOTIFY_SOCKET", path.to_str().unwrap()),
        ("WATCHDOG_USEC", LIMIT),
    ];
    let program = Program::serve(data_dir, &environment);
    program.public();
    (manager, program)
}

fn next(manager: &UnixDatagram) -> String {
    let mut bytes = [0; 256];
    let length = manager.recv(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes[..length])
        .trim_end()
        .to_owned()
}

#[test]
fn the_service_manager_is_notified_of_ready_then_watchdog_then_stopping() {
    let directory = TempDir::new().unwrap();
    let data_dir = TempDir::new().unwrap();
    let (manager, program) = supervised(directory.path(), data_dir.path());
    let mut messages = vec![next(&manager)];
    // A keep-alive may have been sent during the start.
    messages.retain(|first| first != "WATCHDOG=1");
    while messages.len() < 4 {
        messages.push(next(&manager));
    }
    messages.dedup();
    assert_eq!(messages, ["READY=1", "WATCHDOG=1"]);
    program.signal("TERM");
    while next(&manager) != "STOPPING=1" {}
    program.end().0.with(0);
}

#[test]
fn a_service_manager_that_reads_nothing_delays_no_shutdown() {
    let directory = TempDir::new().unwrap();
    let data_dir = TempDir::new().unwrap();
    let (manager, program) = supervised(directory.path(), data_dir.path());
    // Keep-alives fill its queue, and the next one blocks the sender.
    let full = UnixDatagram::unbound().unwrap();
    full.connect(directory.path().join("notify")).unwrap();
    full.set_nonblocking(true).unwrap();
    while full.send(b"FILLER=1").is_ok() {}
    let start = Instant::now();
    program.stop().with(0);
    assert!(start.elapsed() < TIMEOUT, "{:?}", start.elapsed());
    drop(manager);
}
