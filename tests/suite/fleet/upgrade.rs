//! Tables of another release: older ones are upgraded, and gateways run and restart on newer ones.

use scoregate_base::keys::{ApplicationId, Digest, KeyForm};

use super::two_builds::under_load;
use super::*;
use crate::postgres::unprivileged;

/// The tables as the first format had them.
const FIRST_FORMAT: &str = include_str!("format_1.sql");

/// A step of a later release: it only adds.
const LATER_STEP: &str = "
ALTER TABLE {schema}.applications ADD COLUMN added text NOT NULL DEFAULT 'x';
ALTER TABLE {schema}.keys ADD COLUMN added bigint;
ALTER TABLE {schema}.ledger_days ADD COLUMN added bigint NOT NULL DEFAULT 0;
ALTER TABLE {schema}.ledger_nodes ADD COLUMN added bigint NOT NULL DEFAULT 0;
ALTER TABLE {schema}.minute_pools ADD COLUMN added bigint NOT NULL DEFAULT 0;
ALTER TABLE {schema}.minute_shares ADD COLUMN added bigint NOT NULL DEFAULT 0;
CREATE TABLE {schema}.added (id bigint PRIMARY KEY);
CREATE INDEX added_index ON {schema}.applications (added);
UPDATE {schema}.site SET format = format + 1;";

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

#[test]
fn tables_of_an_older_release_are_upgraded_with_their_content_by_one_of_several_commands() {
    needs!("postgresql");
    within_one_day(|| {
        let site = Site {
            url: shared_server().url(),
            schema: new_schema(),
        };
        let key = KeyForm::new("sg_live", false).mint().unwrap();
        let id = ApplicationId::mint().unwrap();
        let digest = data_encoding::HEXLOWER.encode(Digest::of(key.expose()).as_bytes());
        let day = Clock::system().now().wall.day();
        site.sql(FIRST_FORMAT);
        site.sql(&format!(
            "INSERT INTO {{schema}}.applications VALUES ('{id}', 'Station', 'pro', 1000, 50, NULL, NULL, 1);
             INSERT INTO {{schema}}.keys VALUES (decode('{digest}', 'hex'), '{id}', 'sg_live_x', 1, NULL, NULL, NULL);
             UPDATE {{schema}}.calendar SET day = '{day}';
             INSERT INTO {{schema}}.ledger_days VALUES ('{day}', '{id}', 20, 0);
             INSERT INTO {{schema}}.ledger_nodes VALUES ('{day}', '{id}', 7, 20, 0, 0, 0);"
        ));
        let data_dir = TempDir::new().unwrap();
        let serve = [
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--admin-listen",
            "127.0.0.1:0",
            "--data-dir",
        ];
        let serve = [&serve[..], &[data_dir.path().to_str().unwrap()]].concat();
        let refused = run_with(&serve, &site.environment()).with(2).err;
        assert!(
            refused.contains("format 1") && refused.contains("scoregate store upgrade"),
            "{refused}"
        );

        let upgrade = || {
            run_with(&["store", "upgrade"], &site.environment())
                .with(0)
                .err
        };
        let upgrades: Vec<String> = std::thread::scope(|scope| {
            let commands = [(); 3].map(|()| scope.spawn(upgrade));
            commands
                .into_iter()
                .map(|command| command.join().unwrap())
                .collect()
        });
        let changed = upgrades
            .iter()
            .filter(|message| message.contains("from format 1 to"))
            .count();
        assert_eq!(changed, 1, "{upgrades:?}");
        let gateway = site.gateway();
        assert_eq!(
            use_up(gateway.public, key.expose()),
            30,
            "20 of 50 units were granted before"
        );
        gateway.program.stop().with(0);
    });
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
