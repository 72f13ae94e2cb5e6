//! Several workers on one queue: each mail is delivered once. Several gateways are in `fleet::mail`.

use std::collections::BTreeSet;

use super::*;

pub const MAILS: usize = 60;

/// Checks that these are all mails, each once.
pub fn is_each_once(mut met: Vec<String>) {
    let number = met.len();
    met.sort();
    met.dedup();
    assert_eq!((number, met.len()), (MAILS, MAILS), "each once: {met:?}");
}

/// Sends until no full batch is left, and returns the number of full ones.
async fn batches_of(worker: &mut MailSender, stop: &CancellationToken) -> u32 {
    let mut batches = 0;
    while worker.send_due(stop).await {
        batches += 1;
    }
    batches
}

#[tokio::test]
async fn two_workers_on_one_queue_deliver_each_mail_once() {
    needs!("smtp");
    let mut server = SmtpTestServer::start(SmtpOptions::default()).await;
    let mut station = MailStation::plain(&server);
    let ids: Vec<String> = (0..MAILS).map(|number| format!("{number:02}")).collect();
    station
        .queue(&ids.iter().map(String::as_str).collect::<Vec<_>>())
        .await;
    let mut other = station.another_worker();
    let stop = CancellationToken::new();
    let worker = &mut station.worker;
    let batches = tokio::join!(batches_of(worker, &stop), batches_of(&mut other, &stop));
    assert!(batches.0 > 0 && batches.1 > 0, "both send: {batches:?}");
    let mut received = Vec::new();
    while received.len() < MAILS {
        received.push(server.event("mail").await);
    }
    received.extend(server.events_so_far());
    let connections: BTreeSet<i64> = received
        .iter()
        .map(|mail| mail["connection"].as_i64().unwrap())
        .collect();
    assert!(
        connections.len() < 20,
        "several mails on a connection: {connections:?}"
    );
    is_each_once(message_ids(&received));
    assert_eq!(station.backlog().await.mails, 0);
    assert_eq!(station.counted("sent"), 60);
}
