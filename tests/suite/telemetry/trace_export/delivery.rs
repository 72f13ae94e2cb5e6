//! Delivery of spans: nothing waits for a collector, and each span is counted once.

use std::time::Duration;

use crate::{
    balances::own,
    ports::ReservedPort,
    world::{World, good},
};

use super::{
    MODELS, SERVER, counted,
    receiver::{Collector, CollectorAct},
    world,
};

/// Lets time pass until this many spans have this result.
pub async fn reaches(world: &World, result: &str, spans: u32) {
    for _ in 0..1_000 {
        if counted(world, result).await >= spans {
            assert_eq!(counted(world, result).await, spans);
            return;
        }
        world.pass(Duration::from_secs(1));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!(
        "{} spans are {result}, not {spans}",
        counted(world, result).await
    );
}

#[tokio::test]
async fn no_request_waits_for_a_collector_that_never_responds_and_lost_spans_are_counted() {
    const REQUESTS: u32 = 5_000;
    let (world, collector) = world(1).await;
    collector.always(CollectorAct::Hang);
    let customer = world.customer_with("pro", own(1_000_000, 1_000_000)).await;
    let mut connection = world.connect().await;
    // The clock stands still: a request that waited for a timeout would not end.
    for _ in 0..REQUESTS {
        assert_eq!(
            connection
                .send(world.get(MODELS).key(&customer.key))
                .await
                .status,
            200
        );
    }
    let dropped = counted(&world, "dropped").await;
    // The queue holds 4,096 spans, and the exporter at most one batch of 512.
    assert!(
        (REQUESTS - 4_096 - 512..REQUESTS - 4_096 + 10).contains(&dropped),
        "{dropped}"
    );
    // A batch is abandoned after four attempts.
    collector.always(CollectorAct::Status(400, None));
    for _ in 0..1_000 {
        let failed = counted(&world, "failed").await;
        let dropped = counted(&world, "dropped").await;
        if failed + dropped >= REQUESTS {
            break;
        }
        world.pass(Duration::from_secs(5));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let failed = counted(&world, "failed").await;
    let dropped = counted(&world, "dropped").await;
    assert!(
        failed + dropped >= REQUESTS && counted(&world, "exported").await == 0,
        "{failed} {dropped}"
    );
}

#[tokio::test]
async fn no_request_waits_for_a_collector_that_is_away() {
    let away = ReservedPort::new();
    let settings = format!(
        "traces.endpoint = \"http://{}/v1/traces\"\ntraces.sample_one_in = 1\n",
        away.address()
    );
    let world = World::with(&settings, good).await;
    let customer = world.paid().await;
    for _ in 0..3 {
        assert_eq!(world.get_as(&customer, "/api/v1/me").await.status, 200);
    }
    reaches(&world, "failed", 3).await;
    assert_eq!(counted(&world, "exported").await, 0);
}

#[tokio::test]
async fn an_overloaded_collector_gets_the_same_spans_again_after_the_time_that_it_states() {
    let (world, collector) = world(1).await;
    collector.next(CollectorAct::Status(503, Some(20)));
    collector.next(CollectorAct::Status(429, None));
    let customer = world.paid().await;
    assert_eq!(world.get_as(&customer, "/api/v1/me").await.status, 200);
    let waiting = async {
        loop {
            world.pass(Duration::from_secs(1));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        () = collector.has_requests(1) => {}
        () = waiting => {}
    }
    let began = world.clock.mono();
    collector.has_spans(&world, 1).await;
    assert_eq!(collector.requests(), 3);
    assert!(
        world.clock.mono().since(began) >= Duration::from_secs(20),
        "the exporter did not wait"
    );
    let text = collector.text();
    let bodies: Vec<&str> = text.lines().collect();
    assert!(bodies.iter().all(|body| *body == bodies[0]));
    reaches(&world, "exported", 1).await;
    assert_eq!(counted(&world, "failed").await, 0);
}

#[tokio::test]
async fn rejected_spans_are_not_sent_again() {
    let (world, collector) = world(1).await;
    let customer = world.paid().await;
    for (act, failed, exported) in [
        (CollectorAct::Status(400, None), 1, 0),
        (CollectorAct::Status(500, Some(1)), 2, 0),
        (CollectorAct::Reject(1), 3, 0),
        (CollectorAct::Reject(7), 4, 0),
        (CollectorAct::Accept, 4, 1),
    ] {
        collector.next(act);
        let before = collector.requests();
        assert_eq!(world.get_as(&customer, "/api/v1/me").await.status, 200);
        reaches(&world, "failed", failed).await;
        reaches(&world, "exported", exported).await;
        assert_eq!(collector.requests(), before + 1);
    }
}

#[tokio::test]
async fn a_shutdown_sends_the_last_spans() {
    let (world, collector) = world(1).await;
    let customer = world.customer_with("pro", own(1_000_000, 1_000_000)).await;
    for _ in 0..700 {
        assert_eq!(world.get_as(&customer, MODELS).await.status, 200);
    }
    assert!(world.running.stop().await.all_finished);
    let spans = collector.spans();
    assert_eq!(spans.iter().filter(|span| span.kind == SERVER).count(), 700);
}

#[tokio::test]
async fn a_shutdown_waits_two_seconds_for_a_collector_that_never_responds() {
    let collector = Collector::start().await;
    collector.always(CollectorAct::Hang);
    let world = World::with(&collector.settings(1), good).await;
    let customer = world.paid().await;
    assert_eq!(world.get_as(&customer, "/api/v1/me").await.status, 200);
    let clock = world.manual_clock.clone();
    let began = world.clock.mono();
    let end = world.clock.clone();
    let stopped = tokio::spawn(world.running.stop());
    collector.has_requests(1).await;
    while !stopped.is_finished() {
        clock.advance(Duration::from_millis(100));
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert!(stopped.await.unwrap().all_finished);
    assert!(
        end.mono().since(began) < Duration::from_secs(10),
        "the timeout of a request passed"
    );
}
