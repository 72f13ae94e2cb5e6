//! Deadlines of an HTTP/2 connection, by the manual clock: a client cannot hold a connection longer by not sending,
//! not reading or not acknowledging.

use std::time::Duration;

use super::{
    CONTINUATION, DATA, END_STREAM, GOAWAY, HEADERS, PING, SETTINGS, StreamOutcome, WINDOW_UPDATE,
    Wire, block, code, frame, get, request,
};
use crate::world::{World, good};

const SECOND: Duration = Duration::from_secs(1);
const MOMENT: Duration = Duration::from_millis(1);
const WRITE_LESS_A_MOMENT: Duration = Duration::from_millis(19_999);
const INITIAL_WINDOW: u16 = 4;

#[tokio::test]
async fn http2_an_unfinished_head_or_frame_is_cut_off_nine_seconds_after_its_first_byte() {
    let world = World::new().await;
    let head = frame(HEADERS, END_STREAM, 1, &block(&get("/healthz", &[])));
    let continued = [&head[..], &frame(CONTINUATION, 0, 1, &[0])].concat();
    let mut wires = Vec::new();
    for unfinished in [
        &head[..],
        &head[..20],
        &continued,
        &frame(SETTINGS, 0, 0, &[0; 60])[..50],
    ] {
        let mut connection = Wire::open(world.address()).await;
        connection.settled().await;
        wires.push((connection, unfinished.to_vec()));
    }
    world.pass(30 * SECOND);
    for (connection, unfinished) in &mut wires {
        // The reply to the PING shows that all of it was read.
        connection
            .send(&[&frame(PING, 0, 0, b"settled!"), &unfinished[..]].concat())
            .await;
        connection.find(PING).await;
    }
    world.pass(Duration::from_millis(8_999));
    assert_eq!(world.ended("head_timeout").await, 0);
    world.pass(MOMENT);
    for (connection, _) in &mut wires {
        connection.rest().await;
    }
    assert_eq!(world.ended("head_timeout").await, 4);
}

#[tokio::test]
async fn http2_sixty_four_clients_can_send_a_large_head_at_a_time() {
    let world = World::with("guard.per_minute = 1000", good).await;
    let fields = get("/healthz", &[("x", &"x".repeat(40_000))]);
    let head = request(1, &fields);
    let unfinished = &head[..30_000];
    let mut wires = Vec::new();
    for _ in 0..65 {
        let mut connection = Wire::open(world.address()).await;
        connection.send(unfinished).await;
        wires.push(connection);
    }
    world
        .reaches("scoregate_connections_total{reason=\"failed\"}", 1)
        .await;
    let mut answered = 0;
    for connection in &mut wires {
        connection.send(&head[30_000..]).await;
        let outcome = connection.stream_outcome(1).await;
        answered +=
            usize::from(outcome == StreamOutcome::Response(431, "headers_too_large".into()));
    }
    assert_eq!(answered, 64);
    let mut next = Wire::open(world.address()).await;
    next.send(&head).await;
    assert_eq!(
        next.stream_outcome(1).await,
        StreamOutcome::Response(431, "headers_too_large".into())
    );
}

#[tokio::test]
async fn http2_an_idle_or_old_connection_gets_a_goaway_and_is_closed_a_second_later() {
    for (settings, longest) in [
        ("", Duration::from_mins(1)),
        ("server.idle_timeout = \"1d\"", Duration::from_hours(1)),
    ] {
        let world = World::with(settings, good).await;
        let mut connection = Wire::open(world.address()).await;
        connection.acknowledges = false;
        connection.settled().await;
        world.pass(longest.checked_sub(MOMENT).unwrap());
        connection.settled().await;
        world.pass(MOMENT);
        let goaway = connection.find(GOAWAY).await;
        assert_eq!(code(&goaway.payload[4..]), 0);
        // A request sent before it received the GOAWAY is still answered.
        connection.send(&request(1, &get("/healthz", &[]))).await;
        assert_eq!(
            connection.stream_outcome(1).await,
            StreamOutcome::Response(200, String::new())
        );
        world.pass(SECOND);
        world.pass(SECOND);
        connection.rest().await;
        assert_eq!(world.counted("scoregate_connections").await, 0);
    }
}

#[tokio::test]
async fn http2_a_link_of_two_kilobytes_a_second_gets_the_whole_response() {
    let world = World::with("server.request_timeout = \"1d\"", good).await;
    let mut connection = Wire::open_with(world.address(), &[(INITIAL_WINDOW, 0)]).await;
    connection
        .send(&request(1, &get("/openapi.json", &[])))
        .await;
    connection.find(HEADERS).await;
    let mut read = 0;
    let mut is_whole = false;
    while !is_whole {
        let room = [0, 1].map(|stream| frame(WINDOW_UPDATE, 0, stream, &20_480_u32.to_be_bytes()));
        connection.send(&room.concat()).await;
        let mut part = 0;
        while part < 20_480 && !is_whole {
            let data = connection.find(DATA).await;
            (part, is_whole) = (part + data.payload.len(), data.flags & END_STREAM != 0);
        }
        read += part;
        world.pass(10 * SECOND);
    }
    assert!(read > 40_000, "{read} bytes are too few for this test");
    assert_eq!(world.ended("write_timeout").await, 0);
}

#[tokio::test]
async fn http2_a_client_that_opens_no_connection_window_is_cut_off_at_the_write_timeout() {
    let world = World::new().await;
    let mut connection = Wire::open_with(world.address(), &[(INITIAL_WINDOW, 0x7fff_ffff)]).await;
    let bytes: Vec<u8> = (0..20)
        .flat_map(|number| request(2 * number + 1, &get("/openapi.json", &[])))
        .collect();
    connection.send(&bytes).await;
    let mut read = 0;
    while read < 65_535 {
        read += connection.find(DATA).await.payload.len();
    }
    world.pass(WRITE_LESS_A_MOMENT);
    connection.settled().await;
    assert_eq!(world.ended("write_timeout").await, 0);
    world.pass(MOMENT);
    connection.rest().await;
    assert_eq!((read, world.ended("write_timeout").await), (65_535, 1));
}

#[tokio::test]
async fn http2_shutdown_lets_requests_in_flight_finish() {
    let world = World::new().await;
    let key = world.customer("pro").await.key;
    world.backend.hold();
    let mut connection = Wire::open(world.address()).await;
    connection
        .send(&request(1, &get("/api/v1/models", &[("x-api-key", &key)])))
        .await;
    world.backend.has_received(1).await;
    let World {
        running,
        backend,
        manual_clock: _clock,
        ..
    } = world;
    let (stopped, ()) = tokio::join!(running.stop(), async {
        assert_eq!(code(&connection.find(GOAWAY).await.payload[4..]), 0);
        backend.open();
        assert_eq!(
            connection.stream_outcome(1).await,
            StreamOutcome::Response(200, String::new())
        );
        connection.rest().await;
    });
    assert!(stopped.all_finished);
}
