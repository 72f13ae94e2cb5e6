//! TLS to the backend: authorities, client certificates, names, versions, changed files, and what is reported if the
//! handshake fails.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tempfile::TempDir;

use crate::{
    backend::Backend,
    program::{Keys, Program, ProgramClient, run},
    tls_backend::{BackendAuthority, Handshake, TlsBackend},
    world::{World, good},
};

const CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// A gateway in front of a backend behind TLS.
async fn world(url: &str, backend: Backend, settings: &str) -> World {
    let settings = format!("[upstream]\nurl = \"{url}\"\n{settings}");
    World::with_backend(&settings, backend, Arc::new(TempDir::new().unwrap())).await
}

/// The result of one fetch: `None` if it succeeded, else the reason as the operator sees it.
async fn failure(world: &World) -> Option<String> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let customer = world.paid().await;
    let received = world.backend.received().len();
    // Another document for each fetch.
    let target = format!(
        "/api/v1/incidents?limit={}",
        NEXT.fetch_add(1, Ordering::Relaxed) % 100 + 1
    );
    let status = world.get_as(&customer, &target).await.status;
    if status == 200 {
        assert_eq!(world.backend.received().len(), received + 1);
        return None;
    }
    assert_eq!(
        (status, world.backend.received().len()),
        (503, received),
        "nothing was sent"
    );
    Some(
        world
            .running
            .gateway()
            .engine
            .fetcher
            .status()
            .last_failure
            .unwrap()
            .reason,
    )
}

/// Checks that a gateway with these settings cannot use the backend, and that the reason has these words.
async fn refused(url: &str, backend: &Backend, settings: &str, words: &[&str]) {
    let world = world(url, backend.clone(), settings).await;
    let reason = failure(&world).await.expect("a failure");
    for words in words {
        assert!(reason.contains(words), "{words}: {reason}");
    }
}

/// Checks that a gateway with these settings uses the backend.
async fn accepted(url: &str, backend: &Backend, settings: &str) {
    let world = world(url, backend.clone(), settings).await;
    assert_eq!(failure(&world).await, None);
}

async fn tls_backend(authority: &BackendAuthority, handshake: Handshake) -> (Backend, TlsBackend) {
    authority.certify("backend", &["localhost"], 2040);
    let backend = Backend::start(good).await;
    let tls = TlsBackend::start(&backend, authority, "backend", handshake).await;
    (backend, tls)
}

#[tokio::test]
async fn a_backend_with_a_private_authority_needs_ca_file() {
    let authority = BackendAuthority::new();
    let (backend, tls) = tls_backend(&authority, Handshake::usual()).await;
    let url = tls.url("localhost");
    accepted(&url, &backend, &authority.ca_setting()).await;
    assert_eq!(
        tls.handshakes()[0].server_name.as_deref(),
        Some("localhost")
    );

    let words = ["UnknownIssuer", "set upstream.ca_file"];
    refused(&url, &backend, "", &words).await;
    for other in [BackendAuthority::named("another"), BackendAuthority::new()] {
        refused(&url, &backend, &other.ca_setting(), &words[1..]).await;
    }
}

#[tokio::test]
async fn a_required_client_certificate_is_sent_and_its_absence_is_reported() {
    let authority = BackendAuthority::new();
    authority.certify("gateway", &["gateway.example"], 2040);
    let stranger = BackendAuthority::new();
    stranger.certify("stranger", &["gateway.example"], 2040);
    for is_version_1_3 in [true, false] {
        let handshake = Handshake::with_client(&authority, is_version_1_3);
        let (backend, tls) = tls_backend(&authority, handshake).await;
        let url = tls.url("localhost");
        let ca = authority.ca_setting();
        let settings = format!("{ca}{}", authority.client_settings("gateway"));
        accepted(&url, &backend, &settings).await;
        assert!(tls.handshakes()[0].client_certificate.is_some());

        let words = ["see upstream.client_certificate", "received fatal alert"];
        refused(&url, &backend, &ca, &words).await;
        let settings = format!("{ca}{}", stranger.client_settings("stranger"));
        refused(&url, &backend, &settings, &words[..1]).await;
        assert_eq!(tls.handshakes().len(), 1);
    }
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused_unless_server_name_names_it() {
    let authority = BackendAuthority::new();
    authority.certify("internal", &["scores.internal", "backend.internal"], 2040);
    let backend = Backend::start(good).await;
    let tls = TlsBackend::start(&backend, &authority, "internal", Handshake::usual()).await;
    let url = tls.url("localhost");
    let ca = authority.ca_setting();
    let words = [
        "\"localhost\"",
        "scores.internal",
        "backend.internal",
        "set upstream.server_name",
    ];
    refused(&url, &backend, &ca, &words).await;
    let settings = format!("{ca}server_name = \"scores.internal\"");
    accepted(&url, &backend, &settings).await;
    assert_eq!(
        tls.handshakes().last().unwrap().server_name.as_deref(),
        Some("scores.internal")
    );
}

#[tokio::test]
async fn an_expired_certificate_is_refused_by_the_gateway_s_clock() {
    let authority = BackendAuthority::new();
    authority.certify("old", &["localhost"], 2026);
    let backend = Backend::start(good).await;
    let tls = TlsBackend::start(&backend, &authority, "old", Handshake::usual()).await;
    let world = world(&tls.url("localhost"), backend, &authority.ca_setting()).await;
    let reason = failure(&world).await.unwrap();
    assert!(
        reason.contains("certificate expired") && reason.contains("install another"),
        "{reason}"
    );
    authority.certify("new", &["localhost"], 2027);
    tls.present(&authority, "new");
    assert_eq!(failure(&world).await, None);
}

#[tokio::test]
async fn a_backend_below_the_minimum_version_is_refused() {
    let authority = BackendAuthority::new();
    let (backend, tls) = tls_backend(&authority, Handshake::of_version_1_2()).await;
    let url = tls.url("localhost");
    let ca = authority.ca_setting();
    accepted(&url, &backend, &ca).await;
    let settings = format!("{ca}min_tls_version = \"1.3\"");
    refused(&url, &backend, &settings, &["see upstream.min_tls_version"]).await;
}

#[tokio::test]
async fn a_backend_without_tls_is_reported() {
    let authority = BackendAuthority::new();
    let backend = Backend::start(good).await;
    let plain = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}", plain.local_addr().unwrap().port());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = plain.accept().await {
            let text = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
            drop(tokio::io::AsyncWriteExt::write_all(&mut stream, text).await);
            drop(tokio::io::AsyncReadExt::read(&mut stream, &mut [0; 4096]).await);
        }
    });
    let words = ["write http:// in upstream.url"];
    refused(&url, &backend, &authority.ca_setting(), &words).await;
}

#[tokio::test]
async fn a_reload_reads_the_authorities_again_and_closes_connections_of_the_old_ones() {
    let authority = BackendAuthority::new();
    let next = BackendAuthority::new();
    next.certify("backend", &["localhost"], 2040);
    let (backend, tls) = tls_backend(&authority, Handshake::usual()).await;
    let mut world = world(&tls.url("localhost"), backend, &authority.ca_setting()).await;
    assert_eq!(failure(&world).await, None);
    tls.present(&next, "backend");
    assert_eq!(
        failure(&world).await,
        None,
        "the pooled connection is still trusted"
    );
    assert_eq!(tls.handshakes().len(), 1);

    std::fs::write(authority.ca_file(), "nothing").unwrap();
    let refused = world.reload("").await.unwrap_err().to_string();
    assert!(refused.starts_with("upstream.ca_file: found"), "{refused}");
    std::fs::copy(next.ca_file(), authority.ca_file()).unwrap();
    world.reload("").await.unwrap();
    assert_eq!(failure(&world).await, None);
    assert_eq!(tls.handshakes().len(), 2, "on a new connection");
}

#[tokio::test]
async fn changed_files_are_used_within_ten_seconds_and_unusable_ones_are_reported() {
    let authority = BackendAuthority::new();
    let next = BackendAuthority::new();
    authority.certify("gateway", &["gateway.example"], 2030);
    next.certify("backend", &["localhost"], 2040);
    let (backend, tls) = tls_backend(&authority, Handshake::usual()).await;
    let settings = format!(
        "{}{}",
        authority.ca_setting(),
        authority.client_settings("gateway")
    );
    let world = world(&tls.url("localhost"), backend, &settings).await;
    let expiry = scoregate_base::clock::Wall::parse_rfc3339("2030-01-01T00:00:00Z").unwrap();
    let shown = world
        .counted("scoregate_certificate_expiry_timestamp_seconds")
        .await;
    assert_eq!(
        u64::from(shown),
        expiry.seconds(),
        "that of the client certificate"
    );
    let valid = std::fs::read(authority.path("gateway.key")).unwrap();
    std::fs::copy(next.path("backend.key"), authority.path("gateway.key")).unwrap();
    while world
        .counted("scoregate_files_rejected{setting=\"upstream\"}")
        .await
        == 0
    {
        world.pass(CHECK_INTERVAL);
    }
    assert_eq!(failure(&world).await, None);
    std::fs::write(authority.path("gateway.key"), valid).unwrap();
    while world
        .counted("scoregate_files_rejected{setting=\"upstream\"}")
        .await
        == 1
    {
        world.pass(CHECK_INTERVAL);
    }
    std::fs::copy(next.ca_file(), authority.ca_file()).unwrap();
    tls.present(&next, "backend");
    // The connection verified with the old authority is used until the files are reloaded.
    while tls.handshakes().len() < 2 {
        world.pass(CHECK_INTERVAL);
        assert_eq!(failure(&world).await, None);
    }
}

#[tokio::test]
async fn the_log_states_what_to_set_when_the_circuit_breaker_opens() {
    let authority = BackendAuthority::new();
    let (_backend, tls) = tls_backend(&authority, Handshake::usual()).await;
    let data = TempDir::new().unwrap();
    let url = tls.url("localhost");
    let program = Program::serve(data.path(), &[("SCOREGATE_UPSTREAM_URL", &url)]);
    let client = ProgramClient::to(program.public()).await;
    let (_, key) = Keys(data.path()).create("pro");
    for limit in 1..=5 {
        let target = format!("/api/v1/incidents?limit={limit}");
        assert_eq!(client.get(&target, &key).send().await.status, 503);
    }
    let line = tokio::task::spawn_blocking(move || {
        (program.logs("circuit breaker opened"), program.stop())
    });
    let (line, stopped) = line.await.unwrap();
    assert!(line.contains("set upstream.ca_file"), "{line}");
    assert!(stopped.with(0).err.contains("a fetch failed"));
}

#[test]
fn check_and_serve_report_unusable_files_of_the_backend() {
    let authority = BackendAuthority::new();
    authority.certify("gateway", &["gateway.example"], 2040);
    authority.certify("other", &["gateway.example"], 2040);
    std::fs::copy(authority.path("other.key"), authority.path("gateway.key")).unwrap();
    let file = authority.path("scoregate.toml");
    let client = authority.client_settings("gateway");
    for (settings, setting, problem) in [
        (
            "ca_file = \"/nowhere/ca.pem\"\n",
            "upstream.ca_file: found /nowhere/ca.pem",
            "it cannot be read",
        ),
        (
            client.as_str(),
            "upstream.client_key: found",
            "it does not match",
        ),
    ] {
        let text = format!("[upstream]\nurl = \"https://localhost:1\"\n{settings}");
        std::fs::write(&file, text).unwrap();
        let data = TempDir::new().unwrap();
        let data = data.path().to_str().unwrap();
        let ports = [
            "--listen",
            "127.0.0.1:0",
            "--admin-listen",
            "127.0.0.1:0",
            "--data-dir",
            data,
        ];
        let config = ["--config", file.to_str().unwrap()];
        let checked = run(&[&["check"][..], &config].concat()).with(1).err;
        let served = run(&[&["serve"][..], &config, &ports].concat()).err;
        for text in [checked, served] {
            assert!(text.contains(setting) && text.contains(problem), "{text}");
        }
    }
}
