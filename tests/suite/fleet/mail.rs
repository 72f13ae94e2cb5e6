//! Several gateways on one mail queue.

use super::*;
use crate::mail::message_ids;
use crate::mail::several_workers::{MAILS, is_each_once};
use crate::mail::smtp_server::{SmtpOptions, SmtpTestServer};
use crate::postgres::unprivileged;

/// Runs a statement on the database.
pub(super) fn sql(site: &Site, statement: &str) -> String {
    let output = unprivileged("psql").args(["-q", "-t", "-A", "-c", statement, &site.url]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[tokio::test]
async fn two_gateways_on_one_database_deliver_each_mail_once() {
    needs!("postgresql", "smtp");
    let mut server = SmtpTestServer::start(SmtpOptions::default()).await;
    let site = Site::new();
    let address = format!("127.0.0.1:{}", server.port);
    let mail = [
        ("SCOREGATE_MAIL_SERVER", address.as_str()),
        ("SCOREGATE_MAIL_TLS", "none"),
        ("SCOREGATE_MAIL_FROM", "noreply@example.org"),
    ];
    let gateways = [site.gateway_with(&mail), site.gateway_with(&mail)];
    let now = Clock::system().now().wall.seconds() * 1_000;
    sql(&site, &format!(
        "INSERT INTO {}.mail_queue (message_id, kind, recipient, subject, text, html, created_at, expires_at, due_at, attempts)
         SELECT number || '@example.org', 'notice', 'ann@example.org', 'x', 'x', 'x', {now}, {now} + 900000, {now}, 0
         FROM generate_series(1, {MAILS}) AS number",
        site.schema
    ));
    let mut received = Vec::new();
    while received.len() < MAILS {
        received.push(server.event("mail").await);
    }
    for gateway in gateways {
        assert_eq!(gateway.program.stop().code, Some(0));
    }
    received.extend(server.events_so_far());
    is_each_once(message_ids(&received));
    assert_eq!(sql(&site, &format!("SELECT count(*) FROM {}.mail_queue", site.schema)), "0");
}
