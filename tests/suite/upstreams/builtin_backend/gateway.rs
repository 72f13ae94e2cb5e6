//! A gateway in front of the standalone built-in backend: its responses equal those with the in-process one.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use scoregate_base::routes::{DocumentKey, ENDPOINTS, Limit, Period, Query};
use scoregate_scoring::Scoring;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use super::{HOUR, StandaloneBackend, known_at_noon, noon, targets};
use crate::{
    client::Response,
    world::{World, good},
};

/// A gateway whose backend is not running yet, and the address for it.
async fn before(address: std::net::SocketAddr) -> World {
    World::with(
        &format!("[upstream]\nurl = \"http://{address}/api/v1\"\n"),
        good,
    )
    .await
}

fn data(response: &Response) -> String {
    let body = String::from_utf8(response.body.clone()).unwrap();
    body.split_once(",\"data\":").unwrap().1.to_owned()
}

#[tokio::test]
async fn builtin_standalone_and_in_process_backends_give_identical_bytes() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let world = before(listener.local_addr().unwrap()).await;
    let of_the_same_runs = Arc::new(Scoring::demo(42, noon()));
    let _alone = StandaloneBackend::on(listener, of_the_same_runs, &world.clock, 16);
    let inside = World::built_in().await;
    let here = world.paid().await;
    let there = inside.paid().await;
    for (_, target) in targets() {
        let one = world.get_as(&here, &target).await;
        let other = inside.get_as(&there, &target).await;
        assert_eq!((one.status, other.status), (200, 200), "{target}");
        assert_eq!(data(&one), data(&other), "{target}");
        assert_eq!(
            one.json()["generated_at"],
            other.json()["generated_at"],
            "{target}"
        );
    }
    let missing = world.get_as(&here, "/api/v1/drift/nobody").await;
    assert_eq!(
        (missing.status, missing.code().as_str()),
        (404, "model_not_found")
    );
    assert_eq!(
        world
            .counted("scoregate_upstream_requests_total{result=\"not_found\"}")
            .await,
        1
    );
}

/// The response bytes of a backend.
#[derive(Clone, Default)]
struct RecordedTraffic(Arc<Mutex<Vec<u8>>>);

impl RecordedTraffic {
    /// Forwards connections of `door` and records the responses.
    async fn forward(self, listener: TcpListener, to: std::net::SocketAddr) {
        while let Ok((mut from, _)) = listener.accept().await {
            let received = self.clone();
            tokio::spawn(async move {
                let mut to = TcpStream::connect(to).await.unwrap();
                let (mut reads, mut writes) = from.split();
                let (mut responses, mut asks) = to.split();
                let asking = tokio::io::copy(&mut reads, &mut asks);
                let answering = async {
                    let mut chunk = [0; 16_384];
                    while let Ok(read @ 1..) = responses.read(&mut chunk).await {
                        received.0.lock().unwrap().extend_from_slice(&chunk[..read]);
                        writes.write_all(&chunk[..read]).await.unwrap();
                    }
                };
                tokio::select! { _ = asking => {}, () = answering => {} }
            });
        }
    }

    fn statuses(&self) -> Vec<String> {
        let received = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        received
            .split("HTTP/1.1 ")
            .skip(1)
            .map(|response| response[..3].to_owned())
            .collect()
    }
}

/// A document with items that changes within an hour after noon, or one that does not.
fn document(changes: bool) -> DocumentKey {
    let now = known_at_noon();
    let later = Scoring::demo(7, noon().plus(HOUR));
    let query = |period| Query {
        period: Some(period),
        limit: Limit::parse("1"),
        ..Query::default()
    };
    let keys = now.model_ids().into_iter().flat_map(|id| {
        Period::ALL.into_iter().flat_map(move |period| {
            let id = id.clone();
            let of = move |route| DocumentKey::new(route, Some(id.clone()), query(period), period);
            ENDPOINTS
                .iter()
                .filter(|endpoint| endpoint.stored)
                .map(move |endpoint| of(endpoint.route))
        })
    });
    let is_suitable = |key: &DocumentKey| {
        let now = now.answer(key).unwrap();
        let later = later.answer(key).unwrap();
        now.count > 0 && (now.etag != later.etag) == changes
    };
    keys.into_iter()
        .find(is_suitable)
        .expect("in an hour, some documents change and some do not")
}

#[tokio::test]
async fn builtin_a_refresh_without_changes_returns_304_to_the_gateway() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let world = before(listener.local_addr().unwrap()).await;
    let alone = StandaloneBackend::new(Arc::new(Scoring::demo(7, noon())), &world.clock).await;
    let recorded = RecordedTraffic::default();
    tokio::spawn(recorded.clone().forward(listener, alone.address));

    let same = document(false).address();
    let changed = document(true).address();
    let pro = world.paid().await;
    let before = world.get_as(&pro, &same).await;
    assert_eq!(world.get_as(&pro, &changed).await.status, 200);
    world.pass(HOUR + Duration::from_secs(1));
    alone.wait_for_snapshot("2026-11-21T13:00:00Z").await;
    for target in [&same, &changed] {
        assert!(
            world
                .get_as(&pro, target)
                .await
                .header("cache-status")
                .ends_with("detail=stale")
        );
        world.settled().await;
    }
    assert_eq!(recorded.statuses(), ["200", "200", "304", "200"]);
    let after = world.get_as(&pro, &same).await;
    assert!(
        !after.header("cache-status").contains("stale"),
        "{}",
        after.header("cache-status")
    );
    assert_eq!(after.header("etag"), before.header("etag"));
}
