//! Endless frames that request little or nothing: each flood closes the connection within its bound, and causes no load
//! on the backend until then.

use super::{
    ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PING, RST_STREAM, SETTINGS,
    StreamOutcome, WINDOW_UPDATE, Wire, block, code, fields, frame, get, opening, request,
};
use crate::world::World;

/// The required bounds, in frames.
const FEW_FRAMES: usize = 2_500;
const SOME_FRAMES: usize = 5_000;
/// The number of minimum-size frames in twice 128 KiB, and some more for the replies.
const MANY_FRAMES: usize = 40_000;

pub struct Flood {
    pub name: &'static str,
    /// The first bytes, which are sent once.
    pub first: Vec<u8>,
    /// The repeated frames, for each repetition.
    pub again: Box<dyn Fn(u32) -> Vec<Vec<u8>> + Send>,
    /// The final frames that would complete the flood.
    pub last: Vec<u8>,
    /// The connection must be closed within this many frames.
    pub most: usize,
}

fn flood(
    name: &'static str,
    most: usize,
    again: impl Fn(u32) -> Vec<Vec<u8>> + Send + 'static,
) -> Flood {
    Flood {
        name,
        first: Vec::new(),
        again: Box::new(again),
        last: Vec::new(),
        most,
    }
}

impl Flood {
    fn after(mut self, first: Vec<u8>) -> Self {
        self.first = first;
        self
    }

    fn before(mut self, last: Vec<u8>) -> Self {
        self.last = last;
        self
    }
}

fn one(frame: Vec<u8>) -> impl Fn(u32) -> Vec<Vec<u8>> + Send {
    move |_| vec![frame.clone()]
}

fn number(of: u32) -> u32 {
    2 * of + 1
}

/// Every flood. Floods on an open stream keep the stream open with this request, which must stay in flight for that
/// time.
pub fn floods(held: &[u8]) -> Vec<Flood> {
    let plain = get("/healthz", &[]);
    let small = block(&fields(&[("x", "y")]));
    let broken = fields(&[(":method", "GET"), ("connection", "close")]);
    let of_heads = plain.clone();
    let surplus = plain.clone();
    let ping = frame(PING, 0, 0, b"12345678");
    let room = frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]);
    vec![
        flood("rapid reset", FEW_FRAMES, move |of| {
            vec![
                request(number(of), &of_heads),
                frame(RST_STREAM, 0, number(of), &[0, 0, 0, 8]),
            ]
        }),
        flood("streams reset for their heads", FEW_FRAMES, move |of| {
            vec![request(number(of), &broken)]
        }),
        flood("streams beyond the maximum", FEW_FRAMES, move |of| {
            vec![opening(number(of + 1), &surplus, 0)]
        })
        .after(held.to_vec()),
        flood(
            "continuations",
            FEW_FRAMES,
            one(frame(CONTINUATION, 0, 1, &small)),
        )
        .after(frame(HEADERS, END_STREAM, 1, &block(&plain)))
        .before(frame(CONTINUATION, END_HEADERS, 1, &[])),
        flood("empty data", SOME_FRAMES, one(frame(DATA, 0, 1, &[]))).after(opening(1, &plain, 0)),
        flood("settings", MANY_FRAMES, one(frame(SETTINGS, 0, 0, &[]))),
        flood("pings", MANY_FRAMES, one(ping.clone())),
        flood("pings beside a request", MANY_FRAMES, one(ping)).after(held.to_vec()),
        flood("windows of a stream", MANY_FRAMES, one(room)).after(held.to_vec()),
        flood(
            "frames of an unknown type",
            MANY_FRAMES,
            one(frame(0x42, 0, 0, &[])),
        ),
    ]
}

impl Flood {
    /// Floods until the connection closes. Returns the number of frames sent, or nothing if it was never closed.
    pub async fn run(&self, connection: &mut Wire) -> Option<usize> {
        connection.acknowledges = false;
        connection.send(&self.first).await;
        let mut sent = 0;
        let mut times = 0;
        let mut batch = Vec::new();
        while sent < self.most {
            let frames = (self.again)(times);
            (sent, times) = (sent + frames.len(), times + 1);
            batch.extend(frames.concat());
            if times % 16 == 0 {
                if !connection.send(&batch).await || connection.has_goaway_or_close() {
                    return Some(sent);
                }
                batch.clear();
            }
        }
        connection
            .send(&[&batch[..], &self.last, &frame(PING, 0, 0, b"the end!")].concat())
            .await;
        while let Some(read) = connection.read().await {
            if read.kind == PING && read.flags & ACK != 0 && read.payload == b"the end!" {
                return None;
            }
            if read.kind == GOAWAY && code(&read.payload[4..]) != 0 {
                break;
            }
        }
        Some(sent)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http2_every_flood_closes_the_connection_within_its_bound() {
    let world = World::new().await;
    let key = world.customer("pro").await.key;
    world.backend.hold();
    let held = request(1, &get("/api/v1/models", &[("x-api-key", &key)]));
    let mut endless = Vec::new();
    for flood in floods(&held) {
        let mut connection = Wire::open(world.address()).await;
        let over = flood.run(&mut connection).await;
        if over.is_none() {
            endless.push(flood.name);
        }
        assert_eq!(
            world.outcome_of(&get("/healthz", &[])).await,
            StreamOutcome::Response(200, String::new())
        );
    }
    assert!(endless.is_empty(), "{endless:#?}");
    assert!(world.backend.received().len() <= 1);
}

#[tokio::test]
async fn http2_window_updates_of_a_fast_reader_are_no_flood() {
    let world = World::new().await;
    let key = world.customer("pro").await.key;
    let mut connection = Wire::open(world.address()).await;
    let fields = get("/openapi.json", &[("x-api-key", &key)]);
    let bytes: Vec<u8> = (1..100)
        .flat_map(|of| request(number(of), &fields))
        .collect();
    // The pages need no key, and do not count as admissions.
    connection
        .send(
            &[
                request(1, &get("/api/v1/models", &[("x-api-key", &key)])),
                bytes,
            ]
            .concat(),
        )
        .await;
    let mut ended = 0;
    while ended < 100 {
        // The client updates both windows with every frame, as some libraries do.
        let read = connection.find(DATA).await;
        ended += u32::from(read.flags & END_STREAM != 0);
        let room = u32::try_from(read.payload.len())
            .unwrap()
            .max(1)
            .to_be_bytes();
        let both = [
            frame(WINDOW_UPDATE, 0, 0, &room),
            frame(WINDOW_UPDATE, 0, read.stream, &room),
        ];
        assert!(connection.send(&both.concat()).await);
    }
    connection.settled().await;
}
