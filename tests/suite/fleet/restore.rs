//! A restored database is refused until one command has completed the restore.

use std::{
    io::{Seek as _, Write as _},
    process::Command,
};

use super::{
    without_database::{ObservedGateway, SETTINGS, restartable_site},
    *,
};
use crate::postgres::unprivileged;

/// Runs a program of PostgreSQL on the site's database with this standard input, and returns its output.
fn tool(site: &Site, program: &str, arguments: &[&str], input: &str) -> String {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(input.as_bytes()).unwrap();
    file.rewind().unwrap();
    let mut command = unprivileged(program);
    let done = command
        .args(arguments)
        .args(["--dbname", &site.url])
        .stdin(file)
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8(done.stdout).unwrap()
}

/// A quota so small that it has no grace.
const QUOTA: u32 = 60;
const ACCEPTED: [&str; 3] = ["store", "restore", "--accept-lost-revocations"];

/// The error of a start with a new data directory.
fn failing_start(site: &Site) -> String {
    let data_dir = TempDir::new().unwrap();
    let ports = ["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"];
    let directory = ["--data-dir", data_dir.path().to_str().unwrap()];
    let serve = [&["serve"], &ports[..], &directory].concat();
    run_with(&serve, &site.environment()).with(2).err
}

fn stopped(gateway: SiteGateway) -> TempDir {
    gateway.program.stop().with(0);
    gateway.data_dir
}

#[test]
fn a_restored_dump_is_refused_until_a_command_has_closed_its_day() {
    needs!("postgresql");
    within_one_day(|| {
        let site = Site::new();
        let [(_, kept), (id, revoked)] = [(); 2].map(|()| site.create(&QUOTA.to_string()));
        let gateway = site.gateway();
        assert_eq!(gateway.status(&revoked), 200);
        let dump = tool(&site, "pg_dump", &["--schema", &site.schema], "");
        assert_eq!(use_up(gateway.public, &kept), QUOTA);
        run_with(&["keys", "revoke", &id], &site.environment()).with(0);
        gateway.reaches(&revoked, 401);
        let data_dir = stopped(gateway);

        let psql = ["--quiet", "--set", "ON_ERROR_STOP=1"];
        let drop_schema = format!("DROP SCHEMA {} CASCADE", site.schema);
        tool(&site, "psql", &psql, &drop_schema);
        tool(&site, "psql", &psql, &dump);
        let is_refused =
            |error: &str| assert!(error.contains("`scoregate store restore`"), "{error}");
        is_refused(&failing_start(&site));
        for command in [
            &["keys", "list"][..],
            &["store", "check"],
            &["store", "export", "-"],
        ] {
            is_refused(&run_with(command, &site.environment()).with(2).err);
        }
        let observed = ObservedGateway::start(&site, data_dir);
        let status = |key| observed.gateway.status(key);
        assert_eq!([status(&kept), status(&revoked)], [503, 401]);
        assert_eq!(observed.metric("scoregate_store_local_copy"), "1");

        let refused = run_with(&ACCEPTED[..2], &site.environment()).with(1).err;
        assert!(
            refused.contains("after 20") && refused.contains("--accept-lost-revocations"),
            "{refused}"
        );
        assert_eq!([status(&kept), status(&revoked)], [503, 401]);
        let restored = run_with(&ACCEPTED, &site.environment()).with(0).err;
        assert!(
            restored.contains(" is closed") && restored.contains("are lost"),
            "{restored}"
        );
        observed.gateway.reaches_within(&kept, 429, 2 * PROPAGATION);
        assert_eq!(status(&revoked), 429, "its revocation is lost");
        until(|| {
            let refused = run_with(&ACCEPTED[..2], &site.environment()).with(1).err;
            refused.contains("stop all gateways")
        });
        stopped(observed.gateway);
        let other = site.gateway();
        assert_eq!([other.status(&kept), other.status(&revoked)], [429, 429]);
    });
}

#[test]
fn restored_files_of_the_database_are_refused_by_all_gateways_once_one_recognized_them() {
    needs!("postgresql");
    within_one_day(|| {
        let (mut server, site) = restartable_site();
        let (_, key) = site.create(&QUOTA.to_string());
        let files = |server: &PostgresServer, script: &str| {
            let done = Command::new("sh")
                .args(["-ec", script])
                .current_dir(server.directory.path())
                .status();
            assert!(done.unwrap().success(), "{script}");
        };
        server.stop();
        files(&server, "cp -a data backup");
        server.restart(&SETTINGS);
        let gateway = site.gateway();
        assert_eq!(use_up(gateway.public, &key), QUOTA);
        let data_dir = stopped(gateway);
        server.stop();
        files(&server, "rm -r data; mv backup data");
        server.restart(&SETTINGS);

        let observed = ObservedGateway::start(&site, data_dir);
        assert_eq!(observed.gateway.status(&key), 503);
        let error = failing_start(&site);
        assert!(error.contains("`scoregate store restore`"), "{error}");
        run_with(&ACCEPTED, &site.environment()).with(0);
        observed.gateway.reaches_within(&key, 429, 2 * PROPAGATION);
        stopped(observed.gateway);
        assert_eq!(site.gateway().status(&key), 429);
    });
}

#[test]
fn an_export_is_restored_into_empty_tables_with_a_closed_day_or_a_printed_bound() {
    needs!("postgresql");
    within_one_day(|| {
        let site = Site::new();
        let (_, key) = site.create(&QUOTA.to_string());
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("site.jsonl");
        let file = path.to_str().unwrap();
        run_with(&["store", "export", file], &site.environment()).with(0);
        let gateway = site.gateway();
        assert_eq!(use_up(gateway.public, &key), QUOTA);
        stopped(gateway);
        let in_use = run_with(&[&ACCEPTED[..], &[file]].concat(), &site.environment());
        let in_use = in_use.with(1).err;
        assert!(
            in_use.contains("1 applications") && in_use.contains("--close"),
            "{in_use}"
        );

        for (option, printed, status) in [
            ("--accept-lost-revocations", " is closed", 429),
            ("--reopen-day", "up to 60 units of ", 200),
        ] {
            let other = Site::new();
            let restore = ["store", "restore", file];
            let refused = run_with(&restore, &other.environment()).with(1).err;
            assert!(refused.contains("--accept-lost-revocations"), "{refused}");
            let options = ["--accept-lost-revocations", option];
            let mut options = options.to_vec();
            options.dedup();
            let restored = run_with(&[&restore[..], &options[..]].concat(), &other.environment());
            let restored = restored.with(0).err;
            assert!(restored.contains(printed), "{restored}");
            assert_eq!(other.gateway().status(&key), status);
        }
    });
}
