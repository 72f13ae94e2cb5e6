//! Servers with endless replies: the memory and the time spent on them are limited.

use tokio::{io::AsyncWriteExt as _, net::TcpListener, task::JoinHandle};

use super::*;

/// More than the buffers of two sockets. The server stops here, so that a gateway without a limit only fails the test.
const MOST_SENT: usize = 64 << 20;
const IN_TIME: Duration = Duration::from_secs(20);

/// Starts a server that sends `begin` and then repeats `more` as long as the client reads. Returns its port, and a task
/// with the total number of bytes sent.
async fn flood(begin: &'static str, more: String) -> (u16, JoinHandle<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let sending = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(begin.as_bytes()).await.unwrap();
        let mut sent = 0;
        while stream.write_all(more.as_bytes()).await.is_ok() {
            sent += more.len();
            if sent > MOST_SENT {
                std::future::pending::<()>().await;
            }
        }
        sent
    });
    (port, sending)
}

#[tokio::test]
async fn a_server_whose_greeting_has_no_end_is_left_although_no_time_passes() {
    for (begin, more) in [
        ("220 ", "x".repeat(1 << 10)),
        ("220-a\r\n", "220-b\r\n".repeat(100)),
        ("220 a\r\n250-b\r\n", "250-b\r\n".repeat(100)),
        ("220 a\r\n250-b\r\n250 ", "x".repeat(1 << 10)),
    ] {
        let (port, sending) = flood(begin, more).await;
        let mut station = MailStation::to(server(port, SmtpTls::Off, None));
        station.queue(&["one"]).await;
        let sent = Clock::system().within(IN_TIME, station.send()).await;
        assert!(sent.is_ok(), "{begin:?}");
        assert_eq!(
            (station.backlog().await.mails, station.counted("retried")),
            (1, 1)
        );
        assert!(sending.await.unwrap() < MOST_SENT, "{begin:?}");
    }
}

#[tokio::test]
async fn a_server_that_drips_its_greeting_gets_no_more_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut station = MailStation::to(server(port, SmtpTls::Off, None));
    station.queue(&["one"]).await;
    let manual_clock = station.manual_clock.clone();
    let dripping = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        while stream.write_all(b"2").await.is_ok() {
            manual_clock.advance(TIMEOUT / 100);
            tokio::task::yield_now().await;
        }
    };
    let sent = async {
        let both = async { tokio::join!(station.send(), dripping) };
        Clock::system().within(IN_TIME, both).await
    };
    assert!(sent.await.is_ok());
    assert_eq!(
        station.last_error().await,
        "no reply to the connection attempt within mail.timeout"
    );
}
