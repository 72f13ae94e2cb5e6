//! Many connections to the side port that send half a request do not block probes or operators.

use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::TcpStream,
    time::{Duration, Instant},
};

use crate::world::{World, good};

const HEALTH: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
const HALF_HEAD: &[u8] = b"GET /healthz HTTP/1.1\r\nHo";
/// Less than one second, after which a client repeats a SYN that was dropped because the queue was full.
const SOON: Duration = Duration::from_millis(500);

fn alive(stream: &mut TcpStream) {
    stream.write_all(HEALTH).unwrap();
    let mut response = [0; 512];
    let length = stream.read(&mut response).unwrap();
    assert!(response[..length].starts_with(b"HTTP/1.1 200 "));
}

/// Whether the server has closed the connection.
fn is_closed(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    !matches!(stream.read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock)
}

#[tokio::test(flavor = "multi_thread")]
async fn health_is_answered_soon_while_a_thousand_connections_hang_with_half_a_head() {
    let world = World::with("", good).await;
    let side = world.running.side;
    let mut hanging = Vec::new();
    for number in 0..1_000 {
        let mut stream = TcpStream::connect(side).unwrap();
        if number % 2 == 0 {
            stream.write_all(HALF_HEAD).unwrap();
        }
        hanging.push(stream);
        if number % 100 == 99 {
            let start = Instant::now();
            let mut probe = TcpStream::connect(side).unwrap();
            alive(&mut probe);
            assert!(start.elapsed() < SOON, "{number}: {:?}", start.elapsed());
            alive(&mut probe);
        }
    }
    let open = hanging
        .iter_mut()
        .filter_map(|stream| (!is_closed(stream)).then_some(()))
        .count();
    assert!(
        (1..128).contains(&open),
        "the oldest were closed, not the newest: {open}"
    );
    assert!(!is_closed(hanging.last_mut().unwrap()));
}
