//! Servers that are slow, refuse mail, or disconnect: nothing is lost, and nothing is repeated unnecessarily.

use super::*;
use crate::ports::ReservedPort;

/// A little more than the time of a claim.
const CLAIM: Duration = Duration::from_secs(6 * 30 + 30);
const SECOND: Duration = Duration::from_secs(1);
const ONE: &str = "<one@example.org>";
const TWO: &str = "<two@example.org>";

async fn server_that(acts: &str) -> SmtpTestServer {
    SmtpTestServer::start(SmtpOptions {
        acts,
        ..SmtpOptions::default()
    })
    .await
}

impl MailStation {
    /// The counters of sent, retried, refused and expired mails.
    fn results(&self) -> [u32; 4] {
        ["sent", "retried", "refused", "expired"].map(|result| self.counted(result))
    }

    /// The number of queued mails.
    async fn queued(&self) -> u64 {
        self.backlog().await.mails
    }

    /// Advances the clock by this time, and sends the mails that are due.
    async fn send_after(&mut self, time: Duration) {
        self.pass(time);
        self.send().await;
    }
}

impl SmtpTestServer {
    /// Checks the next events: mails by id, others by name.
    async fn sees(&mut self, expected: &[&str]) {
        for expected in expected {
            let event = self.next_event().await;
            if event["event"] == "mail" {
                assert_eq!(header(&event, "Message-ID"), *expected);
            } else {
                assert_eq!(event["event"], *expected);
            }
        }
    }
}

/// The acts of a server for the first mails, and the results for two mails.
struct Refusal {
    acts: &'static str,
    /// The events of the first attempt.
    first: &'static [&'static str],
    /// Why the oldest mail is still queued.
    error: &'static str,
    /// Mails sent, retried and refused by the first attempt.
    counted: [u32; 3],
    /// The mails that the next attempt delivers, five seconds later.
    second: &'static [&'static str],
}

const REFUSALS: &[Refusal] = &[
    // Other mails do not wait for a deferred one.
    Refusal {
        acts: "defer",
        first: &["defer", TWO],
        error: "reply 450 4.2.1 to RCPT TO",
        counted: [1, 1, 0],
        second: &[ONE],
    },
    // A permanent refusal of the recipient or the content removes this mail and no other.
    Refusal {
        acts: "refuse",
        first: &["refuse", TWO],
        error: "",
        counted: [1, 0, 1],
        second: &[],
    },
    Refusal {
        acts: "refuse_content",
        first: &["refuse_content", TWO],
        error: "",
        counted: [1, 0, 1],
        second: &[],
    },
    // All mail is kept while a server denies relaying.
    Refusal {
        acts: "deny_relay,deny_relay",
        first: &["deny_relay", "deny_relay"],
        error: "reply 554 5.7.1 to RCPT TO",
        counted: [0, 2, 0],
        second: &[ONE, TWO],
    },
    // A refused sender means a wrong setting: the second mail would be refused too.
    Refusal {
        acts: "refuse_sender",
        first: &["refuse_sender"],
        error: "reply 550 5.7.1 to MAIL FROM",
        counted: [0, 2, 0],
        second: &[ONE, TWO],
    },
    // A server that ends the first connection gets all mail later.
    Refusal {
        acts: "end",
        first: &["end"],
        error: "reply 421 4.7.0 to MAIL FROM",
        counted: [0, 2, 0],
        second: &[ONE, TWO],
    },
    // A connection that the server ends between mails is replaced.
    Refusal {
        acts: "accept,end",
        first: &[ONE, "end", TWO],
        error: "",
        counted: [2, 0, 0],
        second: &[],
    },
];

#[tokio::test]
async fn a_refusal_removes_what_can_never_be_delivered_and_delays_the_rest() {
    needs!("smtp");
    for row in REFUSALS {
        let mut server = server_that(row.acts).await;
        let mut station = MailStation::plain(&server);
        station.queue(&["one", "two"]).await;
        station.send().await;
        server.sees(row.first).await;
        let [sent, retried, refused] = row.counted;
        assert_eq!(
            station.results(),
            [sent, retried, refused, 0],
            "{}",
            row.acts
        );
        assert_eq!(station.queued().await, u64::from(retried), "{}", row.acts);
        if retried > 0 {
            assert_eq!(station.last_error().await, row.error);
        }
        assert!(server.events_so_far().is_empty(), "{}", row.acts);
        station.send_after(5 * SECOND).await;
        server.sees(row.second).await;
        assert_eq!(station.queued().await, 0, "{}", row.acts);
    }
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
    assert_eq!(station.results(), [0, 2, 0, 0], "the second waits too");

    station.send_after(Duration::from_secs(4)).await;
    assert!(server.events_so_far().is_empty(), "it is not due yet");
    station.send_after(SECOND).await;
    server.sees(&[ONE, TWO]).await;
    assert_eq!(station.queued().await, 0);
}

#[tokio::test]
async fn a_lost_final_reply_repeats_the_mail_with_the_same_message_id() {
    needs!("smtp");
    let mut server = server_that("drop").await;
    let mut station = MailStation::plain(&server);
    station.queue(&["one", "two"]).await;
    station.send().await;
    let first = server.event("mail").await;
    // The second mail is sent on another connection.
    server.sees(&[TWO]).await;
    let error = station.last_error().await;
    assert!(error.contains("the content"), "{error}");
    station.send_after(5 * SECOND).await;
    let second = server.event("mail").await;
    for name in ["Message-ID", "Date", "Subject", "To"] {
        assert_eq!(header(&first, name), header(&second, name));
    }
    assert_eq!(station.queued().await, 0);
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
    let store = station.store.clone();
    store.queue_once(vec![notice.clone()]).await.unwrap();
    let mut worker = station.another_worker();
    let stop = CancellationToken::new();
    let first = tokio::select! {
        _ = worker.send_due(&stop) => panic!("the server holds the reply"),
        mail = server.event("mail") => mail,
    };
    drop(worker);
    store.queue_once(vec![notice.clone()]).await.unwrap();
    assert_eq!(station.queued().await, 1);
    station.send_after(CLAIM.saturating_sub(SECOND)).await;
    assert!(server.events_so_far().is_empty(), "the claim is valid");
    station.send_after(SECOND).await;
    let second = server.event("mail").await;
    assert_eq!(header(&first, "Message-ID"), header(&second, "Message-ID"));
    store.queue_once(vec![notice]).await.unwrap();
    assert_eq!(station.queued().await, 0, "it was sent");
}

#[tokio::test]
async fn a_result_that_could_not_be_recorded_is_recorded_later_and_repeats_no_mail() {
    needs!("smtp");
    let mut server = server_that("hold").await;
    let mut station = MailStation::plain(&server);
    station.queue(&["one"]).await;
    let file = station.directory.path().join(Store::FILE_NAME);
    let aside = station.directory.path().join("aside");
    let moves = async {
        server.event("mail").await;
        std::fs::rename(&file, &aside).unwrap();
        server.release();
    };
    tokio::join!(station.send(), moves);
    station.send_after(2 * CLAIM).await;
    assert!(
        server.events_so_far().is_empty(),
        "nothing is claimed before the result is recorded"
    );
    assert!(station.gauge("scoregate_store_failures_total{operation=\"mail\"}") >= 2);
    std::fs::rename(&aside, &file).unwrap();
    station.send().await;
    assert_eq!(station.queued().await, 0);
    assert!(server.events_so_far().is_empty(), "it was sent once");
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
    assert_eq!(station.queued().await, 25);
}

#[tokio::test]
async fn the_queue_is_measured() {
    let station = MailStation::by(MailDelivery::Directory {
        path: TempDir::new().unwrap().path().into(),
        print: |_| {},
    });
    let store = station.store.clone();
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
