//! The state of a connection after the body of a request was refused.

use super::{StreamOutcome, Wire, fields, opening};
use crate::{
    mcp::session::post,
    world::{World, good},
};

#[tokio::test]
async fn http2_a_connection_whose_body_is_refused_ends_once_it_is_answered_and_waits_for_nothing() {
    let world = World::with("mcp.enabled = true\nguard.per_minute = 1000000\n", good).await;
    let unfinished = post(&" ".repeat(64 << 10), &[]);
    let (unfinished, _) = unfinished.split_at(60 << 10);
    let mut others = Vec::new();
    while world.counted("scoregate_bodies_refused_total").await == 0 {
        for _ in 0..20 {
            let mut connection = world.connect().await;
            connection.write(unfinished.as_bytes()).await;
            others.push(connection);
        }
    }
    let head = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/mcp"),
        (":authority", "localhost"),
        ("content-type", "application/json"),
    ];
    // The rest of the memory may be enough for a few more.
    let mut last = Vec::new();
    for _ in 0..4 {
        let mut connection = Wire::open(world.address()).await;
        connection.send(&opening(1, &fields(&head), 0)).await;
        connection.settled().await;
        last.push(connection);
    }
    let before = world.counted("scoregate_bodies_refused_total").await;
    let mut connection = Wire::open(world.address()).await;
    connection.acknowledges = false;
    connection.send(&opening(1, &fields(&head), 0)).await;
    let outcome = connection.stream_outcome(1).await;
    assert!(
        matches!(outcome, StreamOutcome::Response(..)),
        "{outcome:?}"
    );
    // The clock stands still, so no deadline ends the connection, and the client does not take part in the orderly
    // shutdown.
    connection.rest().await;
    let refused = world.counted("scoregate_bodies_refused_total").await;
    assert!(refused > before, "{refused}");
}
