//! A copy of a stopped server that is promoted as in a failover.

use std::{fs, os::unix::fs::PermissionsExt as _, process::Command};

use super::postgres::{PostgresServer, give_away, launch, run};

impl PostgresServer {
    /// A server with the data of this stopped server on the next timeline, like a promoted standby.
    pub(super) fn promoted_copy(&self, settings: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("permissions");
        let data = self.directory.path().join("data");
        run(Command::new("sh")
            .args(["-c", "cp -a \"$0\" \"$1\""])
            .arg(data)
            .arg(path));
        // The server recovers from an empty archive, and begins a new timeline at the end of the recovery.
        fs::write(path.join("data/recovery.signal"), "").expect("a file");
        give_away(path);
        // The server accepts no connections during recovery, so it is ready once it is writable.
        let settings = [settings, &["restore_command=false", "hot_standby=off"]].concat();
        let child = launch(path, &settings, &[]);
        Self {
            directory,
            environment: Vec::new(),
            child,
        }
    }
}
