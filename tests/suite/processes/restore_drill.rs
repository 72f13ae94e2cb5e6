//! A restore with the real program: a backup under load, a kill, and a new data directory.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

use crate::{
    load_clients::{CallerGroup, LoadClient, TARGET, Wire, prepare, remaining, run_load},
    program::{BUILT_IN, CommandOutput, Keys, Program, run, sql_on, within_one_day},
};

/// Sizes of the daily quotas.
const QUOTAS: [u32; 2] = [250_000, 400];
const GRANTED: &str = "SELECT sum(granted) FROM ledger_days";
const USED: &str =
    "SELECT sum(requests) FROM (SELECT outcome, requests FROM request_days
                                UNION ALL SELECT outcome, requests FROM request_nodes) r WHERE outcome = 'ok'";

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn store(directory: &Path, arguments: &[&str]) -> CommandOutput {
    run(&[&["store"], arguments, &["--data-dir", text(directory)]].concat())
}

fn sum(file: &Path, statement: &str) -> u64 {
    sql_on(file, statement).unwrap().trim().parse().unwrap()
}

fn status(address: SocketAddr, key: &str) -> (u16, String) {
    Wire::open(address)
        .unwrap()
        .get(TARGET, key)
        .status_and_code()
}

/// A data directory after a backup under load, a revocation and a kill.
struct KilledServer {
    directory: TempDir,
    backups: TempDir,
    busy: LoadClient,
    /// An application whose key was revoked after the backup.
    revoked: LoadClient,
    delivered: u32,
}

impl KilledServer {
    fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let backups = TempDir::new().unwrap();
        let path = directory.path();
        let clients = prepare(path, &QUOTAS.map(|quota| ("pro", quota)));
        let [busy, revoked] = clients.try_into().unwrap();
        // A graceful shutdown stores the usage, so that the backup contains some.
        let program = Program::serve(path, &BUILT_IN);
        let address = program.public();
        assert_eq!([0; 2].map(|_| status(address, &busy.key).0), [200, 200]);
        program.stop().with(0);

        let program = Program::serve(path, &BUILT_IN);
        let group = CallerGroup {
            load_client: &busy,
            callers: 4,
            most: QUOTAS[0],
            reconnects: false,
        };
        let (tallies, reached) = run_load(program.public(), &[group], 100, || {
            store(
                path,
                &["backup", "--to", text(backups.path()), "--keep", "2"],
            )
            .with(0);
            Keys(path).run(&["revoke", &revoked.id.to_string()]).with(0);
            program.signal("KILL");
        });
        assert!(reached);
        drop(program);
        Self {
            directory,
            backups,
            busy,
            revoked,
            delivered: 2 + tallies[0].delivered,
        }
    }

    fn backup(&self) -> PathBuf {
        let entries = fs::read_dir(self.backups.path()).unwrap();
        let files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        let [backup] = files.as_slice() else {
            panic!("{files:?}")
        };
        backup.clone()
    }

    /// Nothing is lost.
    fn is_restored_completely_with_its_directory(&self, backup: &Path, used: u64) {
        let new = TempDir::new().unwrap();
        let restore = [
            "restore",
            text(backup),
            "--previous",
            text(self.directory.path()),
        ];
        let restored = store(new.path(), &restore).with(0).err;
        assert!(restored.contains("1 keys that stay revoked"), "{restored}");
        assert!(sum(&new.path().join("scoregate.db"), USED) >= used);
        let program = Program::serve(new.path(), &BUILT_IN);
        let address = program.public();
        let restore = ["restore", text(backup), "--previous", text(new.path())];
        let locked = store(&new.path().join("third"), &restore).with(1).err;
        assert!(locked.contains("in use by another scoregate"), "{locked}");
        assert_eq!(status(address, &self.revoked.key).0, 401);
        assert!(remaining(address, &self.busy) <= QUOTAS[0] - self.delivered);
        assert_eq!(status(address, &self.busy.key).0, 200);
        program.stop().with(0);
    }

    /// The day is closed.
    fn is_restored_without_its_directory(&self, backup: &Path, used: u64) {
        let new = TempDir::new().unwrap();
        let refused = store(new.path(), &["restore", text(backup)]).with(1).err;
        assert!(
            refused.contains("last change") && refused.contains("--accept-lost-revocations"),
            "{refused}"
        );
        assert!(!new.path().join("scoregate.db").exists());
        let restored = store(
            new.path(),
            &["restore", text(backup), "--accept-lost-revocations"],
        )
        .with(0)
        .err;
        assert!(
            restored.contains("is closed") && restored.contains("are lost"),
            "{restored}"
        );
        assert_eq!(sum(&new.path().join("scoregate.db"), USED), used);
        let program = Program::serve(new.path(), &BUILT_IN);
        let address = program.public();
        for client in [&self.busy, &self.revoked] {
            assert_eq!(status(address, &client.key), (429, "quota_exceeded".into()));
        }
        program.stop().with(0);
    }

    /// The restored day has the units of the backup, and the bound is printed.
    fn is_restored_with_an_open_day(&self, backup: &Path, granted: u64) {
        let new = TempDir::new().unwrap();
        let restore = [
            "restore",
            text(backup),
            "--accept-lost-revocations",
            "--reopen-day",
        ];
        let restored = store(new.path(), &restore).with(0).err;
        let bound = u64::from(QUOTAS.iter().sum::<u32>()) - granted;
        assert!(
            restored.contains(&format!("up to {bound} units of")),
            "{restored}"
        );
        assert_eq!(sum(&new.path().join("scoregate.db"), GRANTED), granted);
        let program = Program::serve(new.path(), &BUILT_IN);
        assert_eq!(
            status(program.public(), &self.revoked.key).0,
            200,
            "its revocation is lost"
        );
        program.stop().with(0);
    }
}

#[test]
fn a_backup_made_under_load_is_restored_elsewhere_after_a_kill() {
    within_one_day(|| {
        let killed = KilledServer::new();
        let backup = killed.backup();
        let verified = run(&["store", "verify-backup", text(&backup)]).with(0).out;
        assert!(verified.contains("applications       2"), "{verified}");
        let [granted, used] = [GRANTED, USED].map(|statement| sum(&backup, statement));
        assert!(granted > 2 && used >= 2, "{granted} {used}");
        killed.is_restored_completely_with_its_directory(&backup, used);
        killed.is_restored_without_its_directory(&backup, used);
        killed.is_restored_with_an_open_day(&backup, granted);
    });
}

#[test]
fn a_backup_with_unreadable_records_is_an_error_and_removes_no_older_one() {
    let directory = TempDir::new().unwrap();
    let backups = TempDir::new().unwrap();
    prepare(directory.path(), &[("pro", 10)]);
    let older = backups.path().join("scoregate-2026-01-01T000000Z.db");
    store(directory.path(), &["backup", text(&older)]).with(0);
    sql_on(
        &directory.path().join("scoregate.db"),
        "UPDATE applications SET own_limits = '{\"day\":-1}'",
    )
    .unwrap();
    let backup = ["backup", "--to", text(backups.path()), "--keep", "1"];
    let printed = store(directory.path(), &backup).with(1).err;
    assert!(
        printed.contains("unreadable: ") && printed.contains("were not removed"),
        "{printed}"
    );
    assert_eq!(fs::read_dir(backups.path()).unwrap().count(), 2);
}
