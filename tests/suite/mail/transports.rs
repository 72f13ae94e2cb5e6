//! Transports of mail: TLS, authentication, and several addresses.

use super::*;

async fn server_with(tls: &str, authority: &BackendAuthority) -> SmtpTestServer {
    SmtpTestServer::start(SmtpOptions {
        tls: Some((tls, authority)),
        ..SmtpOptions::default()
    })
    .await
}

/// Sends an email with all its parts, and checks the received one.
async fn arrives(station: &mut MailStation, server: &mut SmtpTestServer) {
    station.queue(&["one"]).await;
    station.send().await;
    let mail = server.event("mail").await;
    assert_eq!(mail["tls"], true, "{mail}");
    assert_eq!(
        (&mail["sender"], &mail["recipients"][0]),
        (&"noreply@example.org".into(), &RECIPIENT.into())
    );
    assert_eq!(
        (
            mail["recipients"].as_array().unwrap().len(),
            &mail["client"]
        ),
        (1, &"example.org".into())
    );
    for (name, value) in [
        ("From", "\"Example API\" <noreply@example.org>"),
        ("To", RECIPIENT),
        ("Subject", SUBJECT),
        ("Message-ID", "<one@example.org>"),
        ("Auto-Submitted", "auto-generated"),
        ("Date", "Sat, 21 Nov 2026 12:00:00 +0000"),
    ] {
        assert_eq!(header(&mail, name), value);
    }
    assert!(header(&mail, "Content-Type").starts_with("multipart/alternative"));
    let content = mail["content"].as_str().unwrap();
    let parts: Vec<&str> = content.split("Content-Type: ").skip(2).collect();
    assert_eq!(parts.len(), 2, "{content}");
    assert!(
        parts[0].starts_with("text/plain; charset=utf-8") && parts[0].contains(TEXT),
        "{content}"
    );
    assert!(
        parts[1].starts_with("text/html; charset=utf-8"),
        "{content}"
    );
    assert!(parts[1].contains(&format!("<p>{TEXT}</p>")), "{content}");
    assert_eq!(
        (station.backlog().await.mails, station.counted("sent")),
        (0, 1)
    );
}

/// Both kinds of TLS: the server's name for it, and the setting.
const KINDS: [(&str, SmtpTls); 2] = [
    ("starttls", SmtpTls::StartTls),
    ("implicit", SmtpTls::Implicit),
];

/// A server that requires a login over STARTTLS, and settings for it without a login.
async fn server_with_login(authority: &BackendAuthority) -> (SmtpTestServer, SmtpServer) {
    let options = SmtpOptions {
        tls: Some(("starttls", authority)),
        needs_login: true,
        ..SmtpOptions::default()
    };
    let mail_server = SmtpTestServer::start(options).await;
    let ca_file = Some(authority.ca_file());
    let to = server(mail_server.port, SmtpTls::StartTls, ca_file);
    (mail_server, to)
}

#[tokio::test]
async fn a_mail_arrives_with_both_parts_and_its_headers_over_both_kinds_of_tls() {
    needs!("smtp");
    let authority = BackendAuthority::new();
    for (tls, setting) in KINDS {
        let mut mail_server = server_with(tls, &authority).await;
        // A name with several addresses, of which only one accepts connections.
        let to = SmtpServer {
            host: "localhost".into(),
            ..server(mail_server.port, setting, Some(authority.ca_file()))
        };
        arrives(&mut MailStation::to(to), &mut mail_server).await;
    }
}

#[tokio::test]
async fn a_server_that_requires_authentication_gets_the_login_before_the_mail() {
    needs!("smtp");
    for (tls, setting) in KINDS {
        let authority = BackendAuthority::new();
        let options = SmtpOptions {
            tls: Some((tls, &authority)),
            needs_login: true,
            ..SmtpOptions::default()
        };
        let mut mail_server = SmtpTestServer::start(options).await;
        let to = server(mail_server.port, setting, Some(authority.ca_file()));
        let mut station = MailStation::to(SmtpServer {
            login: Some(login(PASSWORD)),
            ..to
        });
        station.queue(&["one", "two"]).await;
        station.send().await;
        mail_server.event("login").await;
        assert_eq!(mail_server.event("mail").await["user"], USER);
        assert_eq!(
            mail_server.event("mail").await["user"],
            USER,
            "on the same connection"
        );
        assert_eq!(station.backlog().await.mails, 0);
    }
}

#[tokio::test]
async fn a_rejected_or_missing_login_keeps_the_mail() {
    needs!("smtp");
    let authority = BackendAuthority::new();
    let (mut mail_server, to) = server_with_login(&authority).await;
    for (login, words) in [
        (
            Some(login("another password")),
            "reply 535 5.7.8 to the login",
        ),
        (None, "reply 530 5.7.0 to MAIL FROM"),
    ] {
        let mut station = MailStation::to(SmtpServer {
            login,
            ..to.clone()
        });
        station.queue(&["one"]).await;
        station.send().await;
        assert_eq!(station.last_error().await, words);
        assert_eq!(station.counted("retried"), 1);
    }
    assert_eq!(
        message_ids(&mail_server.events_so_far()),
        Vec::<String>::new()
    );
}

#[tokio::test]
async fn an_untrusted_certificate_is_refused_and_the_mail_stays_queued() {
    needs!("smtp");
    let authority = BackendAuthority::new();
    let other = BackendAuthority::named("Another");
    for (tls, setting) in KINDS {
        let mut mail_server = server_with(tls, &authority).await;
        let by_another = server(mail_server.port, setting, Some(other.ca_file()));
        let by_none = server(mail_server.port, setting, None);
        let options = SmtpOptions {
            tls: Some((tls, &authority)),
            certified_for: &["mail.example.org"],
            ..SmtpOptions::default()
        };
        let misnamed_server = SmtpTestServer::start(options).await;
        let for_another_name = server(misnamed_server.port, setting, Some(authority.ca_file()));
        for (to, words) in [
            (by_another, "UnknownIssuer"),
            (by_none, "UnknownIssuer"),
            (for_another_name, "not valid for name"),
        ] {
            let mut station = MailStation::to(to);
            station.queue(&["one", "two"]).await;
            station.send().await;
            let error = station.last_error().await;
            assert!(error.contains(words), "{error}");
            assert_eq!(
                (station.backlog().await.mails, station.counted("retried")),
                (2, 2),
                "{error}"
            );
        }
        assert_eq!(
            message_ids(&mail_server.events_so_far()),
            Vec::<String>::new()
        );
    }
}

#[tokio::test]
async fn a_server_without_starttls_gets_no_mail() {
    needs!("smtp");
    let authority = BackendAuthority::new();
    let mut mail_server = SmtpTestServer::start(SmtpOptions::default()).await;
    let to = server(
        mail_server.port,
        SmtpTls::StartTls,
        Some(authority.ca_file()),
    );
    let mut station = MailStation::to(SmtpServer {
        login: Some(login(PASSWORD)),
        ..to
    });
    station.queue(&["one"]).await;
    station.send().await;
    assert_eq!(
        station.last_error().await,
        "the server does not support STARTTLS"
    );
    assert!(mail_server.events_so_far().is_empty());
}
