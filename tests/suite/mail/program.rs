//! The real program with mail: its settings, its log, its shutdown.

use std::net::SocketAddr;

use super::*;
use crate::{
    client::Connection,
    program::{BUILT_IN, CommandOutput, Keys, Program, ProgramClient, sql, write_secret},
};

/// Queues an email in the store of a stopped program.
fn plant(directory: &TempDir, id: &str) {
    // The first key creates the store.
    Keys(directory.path()).create("free");
    let now = Clock::system().now().wall.seconds() * 1_000;
    let until = now + 900_000;
    sql(
        directory.path(),
        &format!(
            "INSERT INTO mail_queue VALUES ('{id}@example.org', 'sign_in', '{RECIPIENT}', '{SUBJECT}', '{TEXT}', '{TEXT}',
             {now}, {until}, {now}, 0, NULL)"
        ),
    );
}

/// The environment of a program that sends mail to this server without TLS.
fn without_tls(address: &str) -> [(&str, &str); 4] {
    [
        BUILT_IN[0],
        ("SCOREGATE_MAIL_SERVER", address),
        ("SCOREGATE_MAIL_TLS", "none"),
        ("SCOREGATE_MAIL_FROM", "noreply@example.org"),
    ]
}

fn queued(directory: &TempDir) -> String {
    sql(directory.path(), "SELECT count(*) FROM mail_queue")
        .trim()
        .to_owned()
}

#[tokio::test]
async fn the_program_sends_mail_with_its_settings_and_logs_no_personal_data() {
    needs!("smtp");
    let authority = BackendAuthority::new();
    let options = SmtpOptions {
        tls: Some(("starttls", &authority)),
        needs_login: true,
        ..SmtpOptions::default()
    };
    let mut server = SmtpTestServer::start(options).await;
    let directory = TempDir::new().unwrap();
    plant(&directory, "one");
    let password = authority.path("password");
    write_secret(&password, &format!("{PASSWORD}\n"));
    let address = format!("localhost:{}", server.port);
    let ca_file = authority.ca_file();
    let environment = [
        BUILT_IN[0],
        ("SCOREGATE_MAIL_SERVER", address.as_str()),
        ("SCOREGATE_MAIL_CA_FILE", ca_file.to_str().unwrap()),
        ("SCOREGATE_MAIL_FROM", "Example API <noreply@example.org>"),
        ("SCOREGATE_MAIL_USERNAME", USER),
        ("SCOREGATE_MAIL_PASSWORD_FILE", password.to_str().unwrap()),
        ("SCOREGATE_LOG_LEVEL", "debug"),
    ];
    let program = Program::serve(directory.path(), &environment);
    program.public();
    server.event("login").await;
    let mail = server.event("mail").await;
    assert_eq!(
        (header(&mail, "Message-ID"), &mail["tls"]),
        ("<one@example.org>".into(), &true.into())
    );
    let sent = program.logs("mail sent");
    assert!(sent.contains("one@example.org"), "{sent}");
    let CommandOutput { code, out, err } = program.stop();
    assert_eq!((code, queued(&directory).as_str()), (Some(0), "0"), "{err}");
    for text in [&out, &err] {
        assert!(!text.contains("canary"), "{text}");
    }
}

#[tokio::test]
async fn neither_log_nor_metrics_nor_stored_reasons_contain_personal_data() {
    needs!("smtp");
    let acts = "defer,refuse,refuse_content,drop,accept,refuse_sender";
    let mut server = SmtpTestServer::start(SmtpOptions {
        acts,
        ..SmtpOptions::default()
    })
    .await;
    let directory = TempDir::new().unwrap();
    for id in ["1", "2", "3", "4", "5", "6"] {
        plant(&directory, id);
    }
    let address = format!("127.0.0.1:{}", server.port);
    let mail = [
        &without_tls(&address)[..],
        &[("SCOREGATE_LOG_LEVEL", "trace")],
    ]
    .concat();
    let program = Program::serve(directory.path(), &mail);
    let (_, side) = program.ports();
    for event in [
        "defer",
        "refuse",
        "refuse_content",
        "mail",
        "mail",
        "refuse_sender",
    ] {
        server.event(event).await;
    }
    for words in [
        "email deferred",
        "email refused",
        "mail sent",
        "mail cannot be sent",
    ] {
        program.logs(words);
    }
    let reasons = "SELECT group_concat(last_error) FROM mail_queue WHERE last_error IS NOT NULL";
    let metrics = scrape(side).await;
    let reasons = sql(directory.path(), reasons);
    assert!(reasons.contains("450 4.2.1"), "{reasons}");
    assert!(
        metrics.contains("scoregate_mails_total{kind=\"sign_in\",result=\"refused\"} 2"),
        "{metrics}"
    );
    let CommandOutput { out, err, .. } = program.stop();
    for (what, text) in [
        ("a log", &out),
        ("a log", &err),
        ("a reason", &reasons),
        ("the metrics", &metrics),
    ] {
        assert!(!text.contains("canary"), "{what}: {text}");
    }
}

async fn scrape(side: SocketAddr) -> String {
    let mut connection = Connection::open(side).await;
    connection
        .write(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await;
    String::from_utf8(connection.read(false).await.unwrap().body).unwrap()
}

#[tokio::test]
async fn a_shutdown_finishes_the_mail_in_progress_and_leaves_the_others_to_be_sent_at_once() {
    needs!("smtp");
    let mut server = SmtpTestServer::start(SmtpOptions {
        acts: "hold",
        ..SmtpOptions::default()
    })
    .await;
    let directory = TempDir::new().unwrap();
    plant(&directory, "one");
    plant(&directory, "two");
    let address = format!("127.0.0.1:{}", server.port);
    let mail = [
        &without_tls(&address)[..],
        &[("SCOREGATE_LOG_LEVEL", "debug")],
    ]
    .concat();
    let program = Program::serve(directory.path(), &mail);
    program.public();
    server.event("mail").await;
    program.signal("TERM");
    program.logs("no more work begins");
    server.release();
    let (ended, _) = program.end();
    assert_eq!(
        (ended.code, queued(&directory).as_str()),
        (Some(0), "1"),
        "{}",
        ended.err
    );
    assert!(server.events_so_far().is_empty());
    // The second mail was claimed together with the first, and can be sent by another process immediately.
    let now = Clock::system().now().wall.seconds() * 1_000 + 1_000;
    let due = sql(
        directory.path(),
        &format!("SELECT message_id FROM mail_queue WHERE due_at <= {now}"),
    );
    assert_eq!(due.trim(), "two@example.org");
}

#[tokio::test]
async fn a_server_that_never_replies_does_not_prevent_a_shutdown_and_the_mail_is_kept() {
    needs!("smtp");
    let mut server = SmtpTestServer::start(SmtpOptions {
        acts: "hold",
        ..SmtpOptions::default()
    })
    .await;
    let directory = TempDir::new().unwrap();
    plant(&directory, "one");
    let address = format!("127.0.0.1:{}", server.port);
    let mail = [
        &without_tls(&address)[..],
        &[("SCOREGATE_SERVER_SHUTDOWN_TIMEOUT", "100ms")],
    ]
    .concat();
    let program = Program::serve(directory.path(), &mail);
    program.public();
    server.event("mail").await;
    let ended = program.stop();
    assert!(
        ended.err.contains("could not be finished in time"),
        "{}",
        ended.err
    );
    assert_eq!(queued(&directory), "1");
}

#[tokio::test]
async fn an_unreachable_server_does_not_prevent_the_start() {
    let directory = TempDir::new().unwrap();
    plant(&directory, "one");
    let mail = [
        BUILT_IN[0],
        // Nothing listens on this port, because only root can.
        ("SCOREGATE_MAIL_SERVER", "127.0.0.1:1"),
        ("SCOREGATE_MAIL_TLS", "none"),
        ("SCOREGATE_MAIL_FROM", "noreply@example.org"),
    ];
    let program = Program::serve(directory.path(), &mail);
    ProgramClient::to(program.public()).await;
    program.logs("mail cannot be sent; it is kept and sent later");
    assert_eq!(program.stop().code, Some(0));
    assert_eq!(queued(&directory), "1");
}
