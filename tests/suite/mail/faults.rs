//! Servers that are slow, refuse mail, or disconnect: nothing is lost, and nothing is repeated without need.

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;

use super::*;
use crate::ports::ReservedPort;

/// A little more than the time of a claim.
const CLAIM: Duration = Duration::from_secs(6 * 30 + 30);
const SECOND: Duration = Duration::from_secs(1);

async fn server_that(acts: &str) -> SmtpTestServer {
    SmtpTestServer::start(SmtpOptions {
        acts,
        ..SmtpOptions::default()
    })
    .await
}

#[tokio::test]
async fn a_slow_server_times_out_and_its_mail_is_kept_and_delivered_later() {
    needs!("smtp");
    let mut server = server_that("stall").await;
    let mut station = MailStation::plain(&server);
    station.queue(&["one", "two"]).await;
    let manual_clock = station.manual_clock.clone();
    let passes = async {
        server.event("stall").await;
        manual_clock.advance(TIMEOUT);
    };
    tokio::join!(station.send(), passes);
    assert_eq!(
        station.last_error().await,
        "no reply to MAIL FROM within mail.timeout"
    );
    assert_eq!(
        (station.backlog().await.mails, station.counted("retried")),
        (2, 2),
        "the second waits too"
    );

    station.pass(Duration::from_secs(4));
    station.send().await;
    assert!(server.events_so_far().is_empty(), "it is not due yet");
    station.pass(SECOND);
    station.send().await;
    assert_eq!(
        header(&server.event("mail").await, "Message-ID"),
        "<one@example.org>"
    );
    assert_eq!(
        header(&server.event("mail").await, "Message-ID"),
        "<two@example.org>"
    );
    assert_eq!(
        (station.backlog().await.mails, station.counted("sent")),
        (0, 2)
    );
}

#[tokio::test]
async fn a_mail_that_is_deferred_is_delivered_later_and_others_do_not_wait_for_it() {
    needs!("smtp");
    let mut server = server_that("defer,accept,defer").await;
    let mut station = MailStation::plain(&server);
    station.queue(&["one", "two"]).await;
    station.send().await;
    server.event("defer").await;
    assert_eq!(
        header(&server.event("mail").await, "Message-ID"),
        "<two@example.org>"
    );
    assert_eq!(station.last_error().await, "reply 450 4.2.1 to RCPT TO");
    station.pass(5 * SECOND);
    station.send().await;
    server.event("defer").await;
    station.pass(9 * SECOND);
    station.send().await;
    assert!(
        server.events_so_far().is_empty(),
        "the second delay is ten seconds"
    );
    station.pass(SECOND);
    station.send().await;
    assert_eq!(
        header(&server.event("mail").await, "Message-ID"),
        "<one@example.org>"
    );
    assert_eq!(station.backlog().await.mails, 0);
    assert_eq!(
        ["sent", "retried", "refused"].map(|result| station.counted(result)),
        [2, 2, 0]
    );
}

#[tokio::test]
async fn a_permanent_refusal_removes_the_mail_and_no_other() {
    needs!("smtp");
    let mut server = server_that("refuse,refuse_content").await;
    let mut station = MailStation::plain(&server);
    station.queue(&["one", "three", "two"]).await;
    station.send().await;
    server.event("refuse").await;
    server.event("refuse_content").await;
    let mail = server.event("mail").await;
    assert_eq!(header(&mail, "Message-ID"), "<two@example.org>");
    assert_eq!(station.backlog().await.mails, 0);
    assert_eq!(
        ["sent", "retried", "refused"].map(|result| station.counted(result)),
        [1, 0, 2]
    );
}

#[tokio::test]
async fn mail_is_kept_while_a_server_denies_relaying_and_delivered_once_it_accepts() {
    needs!("smtp");
    let mut server = server_that("deny_relay,deny_relay").await;
    let mut station = MailStation::plain(&server);
    station.queue(&["one", "two"]).await;
    station.send().await;
    server.event("deny_relay").await;
    server.event("deny_relay").await;
    assert_eq!(station.last_error().await, "reply 554 5.7.1 to RCPT TO");
    let counted = |station: &MailStation| {
        ["sent", "retried", "refused"].map(|result| station.counted(result))
    };
    assert_eq!(
        (station.backlog().await.mails, counted(&station)),
        (2, [0, 2, 0])
    );

    station.pass(5 * SECOND);
    station.send().await;
    assert_eq!(
        header(&server.event("mail").await, "Message-ID"),
        "<one@example.org>"
    );
    assert_eq!(
        header(&server.event("mail").await, "Message-ID"),
        "<two@example.org>"
    );
    assert_eq!(
        (station.backlog().await.mails, counted(&station)),
        (0, [2, 2, 0])
    );
}

#[tokio::test]
async fn mail_that_a_server_never_relays_is_retried_until_it_expires() {
    needs!("smtp");
    let mut server = server_that(&["deny_relay"; 20].join(",")).await;
    let mut station = MailStation::plain(&server);
    station.queue(&["one"]).await;
    station.send().await;
    for seconds in [5, 10, 20, 40, 80, 160, 300] {
        server.event("deny_relay").await;
        assert_eq!(station.backlog().await.mails, 1, "it is kept");
        station.pass(seconds * SECOND);
        station.send().await;
    }
    server.event("deny_relay").await;
    station.pass(300 * SECOND);
    station.send().await;
    assert!(server.events_so_far().is_empty());
    assert_eq!(station.backlog().await.mails, 0);
    assert_eq!(
        ["sent", "retried", "refused", "expired"].map(|result| station.counted(result)),
        [0, 8, 0, 1]
    );
}

#[tokio::test]
async fn an_invalid_recipient_is_refused_without_a_server() {
    needs!("smtp");
    let mut server = server_that("").await;
    let mut station = MailStation::plain(&server);
    let bad = NewMail {
        recipient: "ann@example.org>\r\nRCPT TO:<eve@example.org".into(),
        ..station.mail("one")
    };
    station.store.queue_mail(vec![bad]).await.unwrap();
    station.send().await;
    assert_eq!(
        (station.backlog().await.mails, station.counted("refused")),
        (0, 1)
    );
    assert!(server.events_so_far().is_empty());
}

#[tokio::test]
async fn a_refused_sender_is_a_wrong_setting_and_keeps_all_mail() {
    needs!("smtp");
    let mut server = server_that("refuse_sender").await;
    let mut station = MailStation::plain(&server);
    station.queue(&["one", "two"]).await;
    station.send().await;
    server.event("refuse_sender").await;
    assert_eq!(station.last_error().await, "reply 550 5.7.1 to MAIL FROM");
    assert_eq!(
        (station.backlog().await.mails, station.counted("retried")),
        (2, 2)
    );
    assert!(
        server.events_so_far().is_empty(),
        "the second would be refused too"
    );
    station.pass(5 * SECOND);
    station.send().await;
    assert_eq!(
        header(&server.event("mail").await, "Message-ID"),
        "<one@example.org>"
    );
    assert_eq!(
        header(&server.event("mail").await, "Message-ID"),
        "<two@example.org>"
    );
    assert_eq!(
        ["sent", "refused"].map(|result| station.counted(result)),
        [2, 0]
    );
}

#[tokio::test]
async fn a_connection_that_the_server_ends_between_mails_is_replaced() {
    needs!("smtp");
    let mut server = server_that("accept,end").await;
    let mut station = MailStation::plain(&server);
    station.queue(&["one", "two"]).await;
    station.send().await;
    let one = server.event("mail").await;
    server.event("end").await;
    let two = server.event("mail").await;
    assert_eq!(header(&two, "Message-ID"), "<two@example.org>");
    assert_ne!(one["connection"], two["connection"]);
    assert_eq!(
        ["sent", "retried"].map(|result| station.counted(result)),
        [2, 0]
    );
}

#[tokio::test]
async fn a_server_that_ends_every_connection_gets_the_mail_later() {
    needs!("smtp");
    let mut server = server_that("end").await;
    let mut station = MailStation::plain(&server);
    station.queue(&["one"]).await;
    station.send().await;
    server.event("end").await;
    assert_eq!(station.last_error().await, "reply 421 4.7.0 to MAIL FROM");
    station.pass(5 * SECOND);
    station.send().await;
    assert_eq!(
        header(&server.event("mail").await, "Message-ID"),
        "<one@example.org>"
    );
}

#[tokio::test]
async fn a_lost_final_reply_repeats_the_mail_with_the_same_message_id() {
    needs!("smtp");
    let mut server = server_that("drop").await;
    let mut station = MailStation::plain(&server);
    station.queue(&["one", "two"]).await;
    station.send().await;
    let first = server.event("mail").await;
    assert_eq!(
        header(&server.event("mail").await, "Message-ID"),
        "<two@example.org>",
        "by another connection"
    );
    let error = station.last_error().await;
    assert!(error.contains("the content"), "{error}");
    station.pass(5 * SECOND);
    station.send().await;
    let second = server.event("mail").await;
    for name in ["Message-ID", "Date", "Subject", "To"] {
        assert_eq!(header(&first, name), header(&second, name));
    }
    assert_eq!(
        (station.backlog().await.mails, station.counted("sent")),
        (0, 2)
    );
}

#[tokio::test]
async fn a_mail_of_a_worker_that_crashed_is_repeated_with_the_same_message_id_after_its_claim() {
    needs!("smtp");
    let mut server = server_that("hold").await;
    let mut station = MailStation::plain(&server);
    station.queue(&["one"]).await;
    let mut other = station.another_worker();
    let stop = CancellationToken::new();
    let first = tokio::select! {
        _ = other.send_due(&stop) => panic!("the server holds the reply"),
        mail = server.event("mail") => mail,
    };
    drop(other);
    station.pass(CLAIM.saturating_sub(SECOND));
    station.send().await;
    assert!(server.events_so_far().is_empty(), "the claim is valid");
    station.pass(SECOND);
    station.send().await;
    assert_eq!(
        header(&first, "Message-ID"),
        header(&server.event("mail").await, "Message-ID")
    );
    assert_eq!(station.backlog().await.mails, 0);
}

#[tokio::test]
async fn a_result_that_could_not_be_recorded_is_recorded_later_and_repeats_no_mail() {
    needs!("smtp");
    let mut server = server_that("hold").await;
    let mut station = MailStation::plain(&server);
    station.queue(&["one"]).await;
    let file = station.directory.path().join(Embedded::FILE_NAME);
    let aside = station.directory.path().join("aside");
    let moves = async {
        server.event("mail").await;
        std::fs::rename(&file, &aside).unwrap();
        server.release();
    };
    tokio::join!(station.send(), moves);
    station.pass(2 * CLAIM);
    station.send().await;
    assert!(
        server.events_so_far().is_empty(),
        "nothing is claimed before the result is recorded"
    );
    assert!(station.gauge("scoregate_store_failures_total{operation=\"mail\"}") >= 2);
    std::fs::rename(&aside, &file).unwrap();
    station.send().await;
    assert_eq!(station.backlog().await.mails, 0);
    assert!(server.events_so_far().is_empty(), "it was sent once");
}

#[tokio::test]
async fn a_notice_of_a_worker_that_crashed_is_repeated_with_its_id_and_not_queued_again() {
    needs!("smtp");
    let mut server = server_that("hold").await;
    let mut station = MailStation::plain(&server);
    let notice = NewMail {
        expires_at: Wall::from_seconds(u64::MAX / 1_000),
        ..station.mail("quota_80.app.day")
    };
    let queue = async || {
        station
            .store
            .queue_once(vec![notice.clone()])
            .await
            .unwrap();
    };
    queue().await;
    let mut other = station.another_worker();
    let stop = CancellationToken::new();
    let first = tokio::select! {
        _ = other.send_due(&stop) => panic!("the server holds the reply"),
        mail = server.event("mail") => mail,
    };
    drop(other);
    queue().await;
    assert_eq!(station.backlog().await.mails, 1);
    station.manual_clock.advance(CLAIM);
    station.worker.send_due(&stop).await;
    let second = server.event("mail").await;
    assert_eq!(header(&first, "Message-ID"), header(&second, "Message-ID"));
    station.store.queue_once(vec![notice]).await.unwrap();
    assert_eq!(station.backlog().await.mails, 0, "it was sent");
}

#[tokio::test]
async fn expired_mail_is_never_sent() {
    needs!("smtp");
    let mut server = server_that("").await;
    let mut station = MailStation::plain(&server);
    station.queue(&["one"]).await;
    station.pass(Duration::from_mins(15));
    station.queue(&["two"]).await;
    station.send().await;
    assert_eq!(
        header(&server.event("mail").await, "Message-ID"),
        "<two@example.org>"
    );
    assert!(server.events_so_far().is_empty());
    assert_eq!(station.backlog().await.mails, 0);
    assert_eq!(
        ["sent", "expired"].map(|result| station.counted(result)),
        [1, 1]
    );
}

#[tokio::test]
async fn an_unreachable_server_delays_all_mail_and_loses_none() {
    let closed = ReservedPort::new();
    let mut station = MailStation::to(server(closed.address().port(), SmtpTls::Off, None));
    let ids: Vec<String> = (0..25).map(|number| format!("{number:02}")).collect();
    station
        .queue(&ids.iter().map(String::as_str).collect::<Vec<_>>())
        .await;
    let stop = CancellationToken::new();
    assert!(
        !station.worker.send_due(&stop).await,
        "it waits before the next batch"
    );
    let error = station.last_error().await;
    assert!(
        error.contains("connection refused at the connection attempt"),
        "{error}"
    );
    assert_eq!(station.counted("retried"), 10);
    while station.counted("retried") < 25 {
        station.send().await;
    }
    assert_eq!(station.backlog().await.mails, 25);
}

#[tokio::test]
async fn the_queue_is_measured() {
    let station = MailStation::by(MailDelivery::Directory {
        path: TempDir::new().unwrap().path().into(),
        print: |_| {},
    });
    let store = Arc::clone(&station.store) as Arc<dyn Store>;
    let monitor = QueueMonitor::new(
        store,
        station.clock.clone(),
        Arc::clone(&station.instruments),
    );
    let gauges = || {
        ["queue_length", "oldest_age_seconds"]
            .map(|name| station.gauge(&format!("scoregate_mail_{name}")))
    };
    assert_eq!(gauges(), [0, 0], "from the start");
    station.queue(&["one"]).await;
    station.pass(Duration::from_mins(11));
    station.queue(&["two"]).await;
    monitor.measure().await;
    assert_eq!(gauges(), [2, 660]);
}

#[tokio::test]
async fn a_server_that_sends_without_end_is_left_at_the_timeout() {
    const TIMEOUT: Duration = Duration::from_millis(300);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        while stream.write_all(b"220 a line without end").await.is_ok() {}
    });
    let mut station = MailStation::to(server(port, SmtpTls::Off, None));
    station.config.timeout = TIMEOUT;
    station.clock = Clock::system();
    station.queue(&["one"]).await;
    let mut worker = station.another_worker();
    let clock = Clock::system();
    let begun = clock.mono();
    worker.send_due(&CancellationToken::new()).await;
    let took = clock.mono().since(begun);
    assert!(took < TIMEOUT + Duration::from_millis(500), "{took:?}");
    assert_eq!(station.backlog().await.mails, 1);
}
