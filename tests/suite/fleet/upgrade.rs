//! Tables of a newer release: gateways run and restart on them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use super::*;
use crate::postgres::unprivileged;

/// A step of a later release: it only adds.
const LATER_STEP: &str = "
ALTER TABLE {schema}.applications ADD COLUMN added text NOT NULL DEFAULT 'x';
ALTER TABLE {schema}.keys ADD COLUMN added bigint;
ALTER TABLE {schema}.ledger_days ADD COLUMN added bigint NOT NULL DEFAULT 0;
ALTER TABLE {schema}.ledger_nodes ADD COLUMN added bigint NOT NULL DEFAULT 0;
ALTER TABLE {schema}.minute_pools ADD COLUMN added bigint NOT NULL DEFAULT 0;
CREATE TABLE {schema}.added (id bigint PRIMARY KEY);
CREATE INDEX added_index ON {schema}.applications (added);
UPDATE {schema}.site SET format = format + 1;";

/// The least number of requests during a change.
const LEAST_LOAD: usize = 200;

/// How often a transaction that the server ended is repeated.
const REPEATS: usize = 5;

impl Site {
    /// Runs statements in one transaction, with every `{schema}` replaced. Like an upgrade, it is repeated if the server ends
    /// it because it and an exchange wait for each other.
    pub(super) fn sql(&self, statements: &str) {
        let statements = statements.replace("{schema}", &self.schema);
        let mut errors = Vec::new();
        while errors.len() < REPEATS {
            let mut psql = unprivileged("psql");
            let output = psql
                .args(["-q", "-v", "ON_ERROR_STOP=1", "-c", &statements, &self.url])
                .output()
                .unwrap();
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            if output.status.success() {
                return;
            }
            assert!(error.contains("deadlock detected"), "{error}");
            errors.push(error);
        }
        panic!("{errors:#?}");
    }
}

/// Requests to all these gateways while `work` runs. Returns the number of 200s. Any other response fails.
fn under_load(key: &str, publics: &[SocketAddr], work: impl FnOnce()) -> usize {
    let (is_done, served) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let clients = publics.iter().map(|public| {
            let (is_done, served) = (&is_done, &served);
            scope.spawn(move || {
                let mut connection = Wire::open(*public).unwrap();
                while !is_done.load(Ordering::Relaxed) {
                    assert_eq!(
                        connection.get(TARGET, key).status_and_code(),
                        (200, String::new())
                    );
                    served.fetch_add(1, Ordering::Relaxed);
                }
            })
        });
        let clients: Vec<_> = clients.collect();
        let _done = LoadEnd(&is_done);
        work();
        // A client that failed has ended.
        while served.load(Ordering::Relaxed) < LEAST_LOAD
            && !clients.iter().any(ScopedJoinHandle::is_finished)
        {
            std::thread::sleep(Duration::from_millis(10));
        }
    });
    served.into_inner()
}

/// Ends the clients, also if the work fails.
struct LoadEnd<'d>(&'d AtomicBool);

impl Drop for LoadEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn gateways_run_and_restart_on_tables_of_a_newer_release_unless_it_declares_them_incompatible() {
    needs!("postgresql");
    let site = Site::new();
    let (_, key) = site.create("250000");
    let loaded = site.gateway();
    let restarted = site.gateway();
    under_load(&key, &[loaded.public], || {
        site.sql(LATER_STEP);
        restarted.program.stop().with(0);
        let restarted = site.gateway();
        let (id, newer) = restarted.keys().create("pro");
        loaded.reaches(&newer, 200);
        loaded.keys().run(&["revoke", &id]).with(0);
        restarted.reaches(&newer, 401);
        run_with(&["store", "check"], &site.environment()).with(0);
        run_with(&["store", "upgrade"], &site.environment()).with(0);
        restarted.program.stop().with(0);
    });
    site.sql("UPDATE {schema}.site SET compatible_from = format");
    assert_eq!(loaded.status(&key), 200);
    let refused = run_with(&["store", "check"], &site.environment())
        .with(2)
        .err;
    assert!(refused.contains("start a newer release"), "{refused}");
}
