//! A watched configuration file, mounted and replaced in the way Kubernetes mounts and replaces a `ConfigMap`.

use std::{
    fs::{create_dir, rename, write},
    net::SocketAddr,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

use crate::{
    client::Connection,
    program::{Keys, Program, ProgramClient, run},
};

/// A directory with a file behind two symbolic links, and the data directory.
struct Mount(TempDir);

impl Mount {
    fn new(more: &str) -> Self {
        let mount = Self(TempDir::new().unwrap());
        create_dir(mount.path("mount")).unwrap();
        mount.replace("first", more);
        symlink("..data/scoregate.toml", mount.file()).unwrap();
        mount
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self) -> PathBuf {
        self.path("mount/scoregate.toml")
    }

    /// Replaces all files with another version by renaming a link.
    fn replace(&self, version: &str, more: &str) {
        let directory = self.path("mount").join(format!("..{version}"));
        create_dir(&directory).unwrap();
        let ports =
            "listen = \"127.0.0.1:0\"\nadmin.listen = \"127.0.0.1:0\"\nupstream = \"built-in\"\n";
        let data_dir = format!("data_dir = \"{}\"\n", self.path("data").display());
        write(
            directory.join("scoregate.toml"),
            format!("{ports}{data_dir}{more}"),
        )
        .unwrap();
        symlink(
            Path::new(&format!("..{version}")),
            self.path("mount/..data_tmp"),
        )
        .unwrap();
        rename(self.path("mount/..data_tmp"), self.path("mount/..data")).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mounted_file_that_is_replaced_is_reloaded_and_an_invalid_one_changes_nothing() {
    let mount = Mount::new("");
    let file = mount.file();
    let program = Program::start(
        &[
            "serve",
            "--config",
            file.to_str().unwrap(),
            "--reload-on-change",
        ],
        &[],
    );
    let (public, side) = program.ports();
    let (_, key) = Keys(&mount.path("data")).create("pro");
    let limit = async || {
        let client = ProgramClient::to(public).await;
        client
            .get("/api/v1/models", &key)
            .send()
            .await
            .number("x-ratelimit-limit")
    };
    let readiness = async || text(side, "/readyz").await;
    assert_eq!(limit().await, 10_000);
    assert_eq!(readiness().await, "ready\n");

    mount.replace(
        "second",
        "server.workers = 3\n[tiers.pro]\nminute = 60\nday = 77\npaid = true\n",
    );
    program.logs("settings reloaded");
    assert_eq!(limit().await, 77);
    let pending = "ready\nchanged settings that take effect at the next start: server.workers\n";
    assert_eq!(readiness().await, pending);

    mount.replace(
        "third",
        "server.worker = 3\n[tiers.pro]\nminute = 60\nday = 88\npaid = true\n",
    );
    program.logs("settings rejected");
    assert_eq!(limit().await, 77);

    // Neither another file in the directory nor a new file with the same contents is a change.
    let fourth = "[tiers.pro]\nminute = 60\nday = 99\npaid = true\n";
    mount.replace("fourth", fourth);
    program.logs("settings reloaded");
    write(mount.path("mount/other"), "").unwrap();
    mount.replace("same", fourth);
    mount.replace("fifth", "[tiers.pro]\nminute = 60\nday = 66\npaid = true\n");
    program.logs("settings reloaded");
    assert_eq!(limit().await, 66);
    assert_eq!(readiness().await, "ready\n");
    let metrics = text(side, "/metrics").await;
    assert!(
        metrics.contains("scoregate_reloads_total{result=\"applied\"} 3\n"),
        "{metrics}"
    );
}

#[test]
fn a_watched_file_that_is_missing_is_an_input_error() {
    let directory = TempDir::new().unwrap();
    let missing = directory.path().join("missing/scoregate.toml");
    let refused = run(&[
        "serve",
        "--config",
        missing.to_str().unwrap(),
        "--reload-on-change",
    ])
    .with(1);
    assert!(
        refused.err.contains("the file cannot be read"),
        "{}",
        refused.err
    );
}

async fn text(side: SocketAddr, path: &str) -> String {
    let mut connection = Connection::open(side).await;
    connection
        .write(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes())
        .await;
    String::from_utf8(connection.read(false).await.unwrap().body).unwrap()
}
