//! Several gateways on one mail queue, and notices to owners that all gateways detect.

use futures_util::FutureExt as _;
use scoregate_base::clock::Wall;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use super::*;
use crate::{
    mail::{
        message_ids,
        smtp_server::{SmtpOptions, SmtpTestServer},
    },
    postgres::unprivileged,
};

const MAILS: usize = 60;
/// The body of a message to the operator.
const MESSAGE: &str = r#"{"type":"sign_up","data":{}}"#;

/// Runs a statement on the database.
pub fn sql(site: &Site, statement: &str) -> String {
    let output = unprivileged("psql")
        .args(["-q", "-t", "-A", "-c", statement, &site.url])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
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
    let mut ids = message_ids(&received);
    ids.sort();
    ids.dedup();
    assert_eq!((received.len(), ids.len()), (MAILS, MAILS), "{ids:?}");
    assert_eq!(
        sql(
            &site,
            &format!("SELECT count(*) FROM {}.mail_queue", site.schema)
        ),
        "0"
    );
}

/// An owner of an application in the tier `pro`, whose key expires in three days.
fn plant(site: &Site, now: Wall) -> String {
    let (id, _) = site.create("100");
    let schema = &site.schema;
    let expires_at = now.seconds() * 1_000 + 3 * 86_400_000;
    sql(
        site,
        &format!(
            "INSERT INTO {schema}.owners VALUES ('own_0000000000A', 'a', 'ann@example.org', 0, '1', 0);
             INSERT INTO {schema}.owned_applications VALUES ('{id}', 'own_0000000000A');
             UPDATE {schema}.keys SET expires_at = {expires_at}"
        ),
    );
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn a_notice_of_a_fleet_arrives_once_although_a_gateway_is_killed_and_another_starts() {
    needs!("postgresql", "smtp");
    let mut server = SmtpTestServer::start(SmtpOptions::default()).await;
    let site = Site::new();
    plant(&site, Clock::system().now().wall);
    let address = format!("127.0.0.1:{}", server.port);
    let on = [
        ("SCOREGATE_SITE_SIGN_UP", "true"),
        ("SCOREGATE_SERVICE_BASE_URL", "http://127.0.0.1:8080"),
        ("SCOREGATE_MAIL_SERVER", address.as_str()),
        ("SCOREGATE_MAIL_TLS", "none"),
        ("SCOREGATE_MAIL_FROM", "noreply@example.org"),
    ];
    let [killed, second, third] = [(); 3].map(|()| site.gateway_with(&on));
    let received = server.event("mail").await;
    killed.program.signal("KILL");
    let fourth = site.gateway_with(&on);
    for gateway in [second, third, fourth] {
        assert_eq!(gateway.program.stop().code, Some(0));
    }
    let mut all = vec![received];
    all.extend(server.events_so_far());
    let mut ids = message_ids(&all);
    ids.dedup();
    assert!(
        matches!(ids.as_slice(), [id] if id.starts_with("<key_expires.7.app_")),
        "{ids:?}"
    );
    assert_eq!(
        sql(
            &site,
            &format!("SELECT count(*) FROM {}.notices", site.schema)
        ),
        "1"
    );
}

const ACCEPTED: &str = "HTTP/1.1 204 No Content\r\n\r\n";

/// A step of the delivery of a message. The gateway is killed at this step.
#[derive(Clone, Copy, Debug)]
enum SendingStep {
    Connected,
    Received,
    Refused,
    Answered,
}

impl SendingStep {
    const ALL: [Self; 4] = [
        Self::Connected,
        Self::Received,
        Self::Refused,
        Self::Answered,
    ];
}

/// The head and the body of a request.
async fn request(stream: &mut TcpStream) -> (String, String) {
    let mut bytes = Vec::new();
    loop {
        assert_ne!(
            stream.read_buf(&mut bytes).await.unwrap(),
            0,
            "closed before the end of the request"
        );
        let text = String::from_utf8(bytes.clone()).unwrap();
        if let Some((head, body)) = text.split_once("\r\n\r\n")
            && head.contains(&format!("content-length: {}", MESSAGE.len()))
            && body.len() == MESSAGE.len()
        {
            return (head.to_owned(), body.to_owned());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_arrives_with_one_id_although_its_gateway_is_killed_at_any_step() {
    needs!("postgresql");
    let receiver = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/in", receiver.local_addr().unwrap());
    let on = [
        ("SCOREGATE_OPERATOR_WEBHOOK", url.as_str()),
        (
            "SCOREGATE_OPERATOR_WEBHOOK_SECRET",
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        ),
    ];
    let site = Site::new();
    let queue = format!("{}.mail_queue", site.schema);
    let now = Clock::system().now().wall.seconds() * 1_000;
    let queued = || sql(&site, &format!("SELECT count(*) FROM {queue}"));
    for step in SendingStep::ALL {
        let holder = site.gateway_with(&on);
        sql(&site, &format!(
            "INSERT INTO {queue} (message_id, kind, recipient, subject, text, html, created_at, expires_at, due_at, attempts)
             VALUES ('{step:?}@operator', 'webhook', 'operator', '', '{MESSAGE}', '', {now}, {now} + 900000, {now}, 0)"
        ));
        let (mut stream, _) = receiver.accept().await.unwrap();
        if !matches!(step, SendingStep::Connected) {
            request(&mut stream).await;
        }
        let answer = match step {
            SendingStep::Connected | SendingStep::Received => "",
            SendingStep::Refused => "HTTP/1.1 503 Service Unavailable\r\n\r\n",
            SendingStep::Answered => ACCEPTED,
        };
        stream.write_all(answer.as_bytes()).await.unwrap();
        holder.program.signal("KILL");
        let others = [(); 2].map(|()| site.gateway_with(&on));
        // End the claim or the pause.
        sql(&site, &format!("UPDATE {queue} SET due_at = 0"));
        if !matches!(step, SendingStep::Answered) || queued() == "1" {
            let (mut stream, _) = receiver.accept().await.unwrap();
            let (head, body) = request(&mut stream).await;
            assert!(
                head.contains(&format!("webhook-id: {step:?}\r\n")),
                "{head}"
            );
            assert_eq!(body, MESSAGE);
            stream.write_all(ACCEPTED.as_bytes()).await.unwrap();
        }
        until(|| queued() == "0");
        for other in others {
            assert_eq!(other.program.stop().code, Some(0), "{step:?}");
        }
        assert!(
            receiver.accept().now_or_never().is_none(),
            "{step:?}: sent again"
        );
    }
}
