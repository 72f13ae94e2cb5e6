//! Secrets in separate files, as containers and systemd provide them, and their rotation. Every kind of invalid file is
//! tested in `secret/setting.rs` and `config/secrets.rs`, the password of the database in `fleet/passwords.rs`, and the
//! password of the mail server in `mail/transports.rs`.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use tempfile::TempDir;

use crate::{
    program::{BUILT_IN, Program, run, write_secret},
    world::{World, good},
};

/// Interval between checks of the files.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);
const FIRST: &str = "the first secret of this gateway";
const SECOND: &str = "the second secret of this gateway";

/// The status of a side port request with this token.
fn status(side: SocketAddr, token: &str) -> String {
    let mut stream = TcpStream::connect(side).unwrap();
    let head = "GET /v1/keys/list HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n";
    write!(stream, "{head}Authorization: Bearer {token}\r\n\r\n").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response.split(' ').nth(1).unwrap().to_owned()
}

#[test]
fn a_token_in_a_file_is_valid_and_a_new_one_applies_with_a_reload() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("token");
    let data_dir = directory.path().join("state");
    write_secret(&file, &format!("{FIRST}\n"));
    let environment = [
        BUILT_IN[0],
        ("SCOREGATE_ADMIN_TOKEN_FILE", file.to_str().unwrap()),
    ];
    let server = Program::serve(&data_dir, &environment);
    let (_, side) = server.ports();
    let statuses = |server: SocketAddr| [FIRST, SECOND].map(|token| status(server, token));
    assert_eq!(statuses(side), ["200", "401"]);
    write_secret(&file, &format!("{SECOND}\n"));
    let output = run(&["reload", "--data-dir", data_dir.to_str().unwrap()]).with(0);
    assert!(
        output.out.contains("in effect now: admin.token") && !output.out.contains(SECOND),
        "{output:?}"
    );
    assert_eq!(statuses(side), ["401", "200"]);
    let ended = server.stop().with(0);
    assert!(
        !ended.err.contains(SECOND) && !ended.err.contains(FIRST),
        "{}",
        ended.err
    );
}

/// A gateway whose token and credential are in these files.
async fn world(token: &str, credential: &str) -> World {
    let settings = format!(
        "admin.token_file = \"{token}\"\n[upstream]\nurl = \"{{backend}}\"\ncredential_file = \"{credential}\"\n"
    );
    World::with(&settings, good).await
}

impl World {
    /// The secrets that are valid on the side port.
    async fn valid_tokens(&self) -> Vec<&'static str> {
        let mut valid = Vec::new();
        for token in ["", FIRST, SECOND] {
            let header = format!("Bearer {token}");
            let answer = self
                .side("GET", "/v1/keys/list", "", &[("Authorization", &header)])
                .await;
            valid.extend((answer.status == 200).then_some(token));
        }
        valid
    }

    /// The header that the backend got with the fetch of another document.
    async fn sent_credential(&self, limit: u32) -> String {
        let customer = self.paid().await;
        let target = format!("/api/v1/incidents?limit={limit}");
        assert_eq!(self.get_as(&customer, &target).await.status, 200);
        let received = self.backend.received();
        let mut fields = received.last().unwrap().headers.iter();
        fields
            .find(|(name, _)| name == "authorization")
            .unwrap()
            .1
            .clone()
    }

    async fn rejected(&self, secret: &str) -> u32 {
        self.counted(&format!("scoregate_files_rejected{{setting=\"{secret}\"}}"))
            .await
    }
}

#[tokio::test]
async fn a_new_token_and_a_new_credential_are_used_within_ten_seconds_without_a_reload() {
    let directory = TempDir::new().unwrap();
    let [token, credential] = ["token", "credential"].map(|name| directory.path().join(name));
    write_secret(&token, FIRST);
    write_secret(&credential, FIRST);
    let world = world(token.to_str().unwrap(), credential.to_str().unwrap()).await;
    assert_eq!(
        (world.valid_tokens().await, world.sent_credential(1).await),
        (vec![FIRST], format!("Bearer {FIRST}"))
    );
    write_secret(&token, SECOND);
    write_secret(&credential, SECOND);
    while world.valid_tokens().await != [SECOND] {
        world.pass(CHECK_INTERVAL);
    }
    let mut limit = 2;
    while world.sent_credential(limit).await != format!("Bearer {SECOND}") {
        world.pass(CHECK_INTERVAL);
        limit += 1;
    }
    assert_eq!(
        (
            world.rejected("admin.token").await,
            world.rejected("upstream.credential").await
        ),
        (0, 0)
    );
}

#[tokio::test]
async fn an_empty_token_file_is_reported_and_the_token_before_stays_valid() {
    let directory = TempDir::new().unwrap();
    let [token, credential] = ["token", "credential"].map(|name| directory.path().join(name));
    write_secret(&token, FIRST);
    write_secret(&credential, FIRST);
    let world = world(token.to_str().unwrap(), credential.to_str().unwrap()).await;
    write_secret(&token, "");
    std::fs::remove_file(&credential).unwrap();
    for secret in ["admin.token", "upstream.credential"] {
        while world.rejected(secret).await == 0 {
            world.pass(CHECK_INTERVAL);
        }
    }
    assert_eq!(
        (world.valid_tokens().await, world.sent_credential(1).await),
        (vec![FIRST], format!("Bearer {FIRST}"))
    );
    assert_eq!(world.rejected("store.password").await, 0);
    write_secret(&token, SECOND);
    while world.rejected("admin.token").await == 1 {
        world.pass(CHECK_INTERVAL);
    }
    assert_eq!(world.valid_tokens().await, [SECOND]);
    assert_eq!(world.rejected("upstream.credential").await, 1);
}

#[tokio::test]
async fn a_rejected_token_file_is_no_longer_reported_once_the_settings_do_not_name_it() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("token");
    write_secret(&file, FIRST);
    let named = format!("admin.token_file = \"{}\"\n", file.display());
    let mut world = World::with(&named, good).await;
    write_secret(&file, "");
    while world.rejected("admin.token").await == 0 {
        world.pass(CHECK_INTERVAL);
    }
    world.reload("").await.unwrap();
    assert_eq!(world.rejected("admin.token").await, 0);
}
