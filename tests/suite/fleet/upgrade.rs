//! Tables of a newer release: gateways run and restart on them.

use super::*;
use crate::postgres::unprivileged;

/// A migration step of a later release, which only adds tables and columns.
const LATER_STEP: &str = "
ALTER TABLE {schema}.applications ADD COLUMN added text NOT NULL DEFAULT 'x';
ALTER TABLE {schema}.keys ADD COLUMN added bigint;
ALTER TABLE {schema}.ledger_days ADD COLUMN added bigint NOT NULL DEFAULT 0;
ALTER TABLE {schema}.ledger_nodes ADD COLUMN added bigint NOT NULL DEFAULT 0;
ALTER TABLE {schema}.minute_pools ADD COLUMN added bigint NOT NULL DEFAULT 0;
CREATE TABLE {schema}.added (id bigint PRIMARY KEY);
CREATE INDEX added_index ON {schema}.applications (added);
UPDATE {schema}.site SET format = format + 1;";
/// How often a transaction that the server aborted is repeated.
const REPEATS: usize = 5;

impl Site {
    /// Runs statements in one transaction, with every `{schema}` replaced. Like an upgrade, the transaction is repeated
    /// if the server aborts it because of a deadlock with an exchange.
    fn sql(&self, statements: &str) {
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

#[test]
fn gateways_run_and_restart_on_tables_of_a_newer_release_unless_it_declares_them_incompatible() {
    needs!("postgresql");
    let site = Site::new();
    let (_, key) = site.create("250000");
    let running = site.gateway();
    let restarted = site.gateway();
    site.sql(LATER_STEP);
    restarted.program.stop().with(0);
    let restarted = site.gateway();
    let (id, newer) = restarted.keys().create("pro");
    running.reaches(&newer, 200);
    running.keys().run(&["revoke", &id]).with(0);
    restarted.reaches(&newer, 401);
    for gateway in [&running, &restarted] {
        assert_eq!(gateway.status(&key), 200);
    }
    run_with(&["store", "check"], &site.environment()).with(0);
    run_with(&["store", "upgrade"], &site.environment()).with(0);
    site.sql("UPDATE {schema}.site SET compatible_from = format");
    assert_eq!(running.status(&key), 200);
    let refused = run_with(&["store", "check"], &site.environment())
        .with(2)
        .err;
    assert!(refused.contains("start a newer release"), "{refused}");
}
