//! The hosts that get messages, and the number of messages per host.

use super::*;

#[tokio::test]
async fn no_connection_is_made_to_an_address_that_is_not_public() {
    let station = WebhookStation::start().await;
    for address in [
        "127.0.0.1:8443",
        "[::ffff:1.1.1.1]:8443",
        "169.254.169.254:8443",
    ] {
        *station.network.addresses.lock().unwrap() =
            vec![PUBLIC.parse().unwrap(), address.parse().unwrap()];
        assert!(station.failure().await.contains("not public"), "{address}");
        station.mail.pass(Duration::from_mins(1));
    }
    assert!(station.network.connected.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_url_without_https_and_a_certificate_for_another_name_are_refused() {
    let clear = WebhookStation::with("http://hooks.example.org/", HOST).await;
    assert_eq!(clear.failure().await, "the URL is not usable or not set");
    assert!(clear.network.connected.lock().unwrap().is_empty());
    let other = WebhookStation::with(URL, "other.example.org").await;
    assert_eq!(other.failure().await, "TLS failed");
}

#[tokio::test]
async fn a_host_gets_five_messages_of_a_batch_and_none_after_it_failed() {
    let mut station = WebhookStation::verified().await;
    let ids: Vec<String> = (0..7).map(|number| format!("notice.{number}")).collect();
    station
        .queue(&ids.iter().map(String::as_str).collect::<Vec<_>>())
        .await;
    station.next().await.answer("HTTP/1.1 410 Gone\r\n\r\n");
    for _ in 1..5 {
        station.received.recv().await.unwrap().answer(OK);
    }
    station.finished().await;
    assert_eq!(
        station.queued(),
        "3",
        "a status is about one message, and two are left"
    );

    drop(station.next().await);
    station.finished().await;
    assert!(station.received.try_recv().is_err());
    assert_eq!(station.queued(), "3");
    assert_eq!(station.network.connected.lock().unwrap().len(), 1 + 5 + 1);
}
