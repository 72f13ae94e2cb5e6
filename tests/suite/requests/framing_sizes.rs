//! Sizes of request heads on HTTP/1.1: the longest target, the largest head and the most fields that are accepted, and the
//! responses to larger ones.

use crate::{
    raw::{After, exchange, is_codec_response},
    world::{Customer, World, good},
};

const WIDE: &str = "guard.per_minute = 100000";
const VALID: &str = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n";

async fn wide() -> (World, String) {
    let world = World::with(WIDE, good).await;
    let Customer { key, .. } = world.customer("pro").await;
    (world, key)
}

/// A head of exactly this many bytes, including its final empty line.
fn head_of(size: usize, method: &str, target: &str, fields: &str) -> Vec<u8> {
    let start = format!("{method} {target} HTTP/1.1\r\nHost: a\r\n{fields}Cookie: ");
    let padding = "x".repeat(size - start.len() - 4);
    format!("{start}{padding}\r\n\r\n").into_bytes()
}

#[tokio::test]
async fn framing_a_target_has_at_most_2_kib() {
    let (world, key) = wide().await;
    for (length, status) in [(2_047, 200), (2_048, 200), (2_049, 414), (8_192, 414)] {
        for start in ["/api/v1/models?x=", "/docs?x="] {
            let target = format!("{start}{}", "x".repeat(length - start.len()));
            let bytes = format!("GET {target} HTTP/1.1\r\nHost: a\r\nX-API-Key: {key}\r\n\r\n");
            let (response, after) = exchange(&world, bytes.as_bytes()).await;
            assert_eq!(response.status, status, "{start} {length}");
            assert_eq!(
                after,
                if status == 200 {
                    After::Open
                } else {
                    After::Closed
                },
                "{start} {length}"
            );
            world.check("GET", &target, &response);
        }
    }
    assert_eq!(world.refused("uri_too_long").await, 4);
}

#[tokio::test]
async fn framing_a_head_has_at_most_16_kib() {
    let (world, key) = wide().await;
    let fields = format!("X-API-Key: {key}\r\n");
    for (size, status) in [
        (16_383, 200),
        (16_384, 200),
        (16_385, 431),
        (16_386, 431),
        (30_000, 431),
    ] {
        for (method, target) in [
            ("GET", "/api/v1/models"),
            ("GET", "/"),
            ("HEAD", "/api/v1/models"),
        ] {
            let bytes = head_of(size, method, target, &fields);
            assert_eq!(bytes.len(), size);
            let (response, after) = exchange(&world, &bytes).await;
            assert_eq!(response.status, status, "{method} {target} {size}");
            assert_eq!(
                after,
                if status == 200 {
                    After::Open
                } else {
                    After::Closed
                },
                "{size}"
            );
            world.check(method, target, &response);
        }
    }
    assert_eq!(world.refused("headers_too_large").await, 9);
}

#[tokio::test]
async fn framing_a_request_has_at_most_64_header_fields() {
    let (world, key) = wide().await;
    for (count, status) in [(63, 200), (64, 200), (65, 431), (127, 431)] {
        for same in [true, false] {
            let field = |number: usize| {
                if same {
                    "x: 1\r\n".into()
                } else {
                    format!("x{number}: 1\r\n")
                }
            };
            let more = (2..count).map(field).collect::<Vec<String>>().concat();
            let head =
                format!("GET /api/v1/models HTTP/1.1\r\nHost: a\r\nX-API-Key: {key}\r\n{more}\r\n");
            let (response, after) = exchange(&world, head.as_bytes()).await;
            assert_eq!(response.status, status, "{count} {same}");
            assert_eq!(
                after,
                if status == 200 {
                    After::Open
                } else {
                    After::Closed
                },
                "{count}"
            );
        }
    }
}

#[tokio::test]
async fn framing_a_head_of_64_kib_or_256_fields_gets_the_whole_431_and_a_larger_one_a_bare_431() {
    let (world, key) = wide().await;
    let last = "X-Request-Id: a-request-of-mine\r\nAccept: application/problem+json\r\n\r\n";
    let sized = |size: usize| {
        let head = head_of(
            size - last.len() + 2,
            "GET",
            "/api/v1/models",
            &format!("X-API-Key: {key}\r\n"),
        );
        [&head[..head.len() - 2], last.as_bytes()].concat()
    };
    let counted = |count: usize| {
        let more = "x: 1\r\n".repeat(count - 3);
        format!("GET /api/v1/models HTTP/1.1\r\nHost: a\r\n{more}{last}").into_bytes()
    };
    for (head, is_whole) in [
        (sized(24_576), true),
        (sized(24_577), true),
        (sized(40_000), true),
        (sized(65_536), true),
        (sized(65_537), false),
        (sized(200_000), false),
        (counted(100), true),
        (counted(101), true),
        (counted(256), true),
        (counted(257), false),
        (counted(2_000), false),
    ] {
        for before in [0, 1, 20] {
            let mut connection = world.connect().await;
            connection
                .write(&[VALID.repeat(before).as_bytes(), &head, VALID.as_bytes()].concat())
                .await;
            for _ in 0..before {
                assert_eq!(connection.read(false).await.unwrap().status, 200);
            }
            let response = connection.read(false).await.unwrap();
            assert_eq!(
                (response.status, is_codec_response(&response)),
                (431, !is_whole),
                "{}",
                head.len()
            );
            assert!(connection.is_closed().await);
            if is_whole {
                world.check("GET", "/api/v1/models", &response);
                assert_eq!(response.header("content-type"), "application/problem+json");
                assert_eq!(response.header("x-request-id"), "a-request-of-mine");
                assert_eq!(response.header("x-ratelimit-resource"), "guard");
            }
        }
    }
    assert_eq!(world.refused("headers_too_large").await, 7 * 3);
}

#[tokio::test]
async fn framing_only_64_large_heads_are_read_concurrently_and_others_get_a_bare_431() {
    let (world, _) = wide().await;
    let start = format!(
        "GET / HTTP/1.1\r\nHost: a\r\nCookie: {}",
        "x".repeat(30_000)
    );
    let mut unfinished = Vec::new();
    for _ in 0..64 {
        let mut connection = world.connect().await;
        connection.write(start.as_bytes()).await;
        unfinished.push(connection);
    }
    let whole = [start.as_bytes(), b"\r\n\r\n"].concat();
    loop {
        let mut another = world.connect().await;
        another.write(&whole).await;
        let response = another.read(false).await.unwrap();
        assert_eq!(response.status, 431);
        if is_codec_response(&response) {
            break; // all of them were read so far
        }
    }
    let (small, _) = exchange(&world, VALID.as_bytes()).await;
    assert_eq!(small.status, 200, "other requests are not affected");
    let mut finished = unfinished.pop().unwrap();
    finished.write(b"\r\n\r\n").await;
    assert_eq!(
        finished.read(false).await.unwrap().code(),
        "headers_too_large"
    );
}

#[tokio::test]
async fn framing_a_head_without_end_is_cut_off() {
    let (world, _) = wide().await;
    let mut connection = world.connect().await;
    let start = "GET / HTTP/1.1\r\nHost: a\r\nCookie: ";
    connection
        .write(format!("{start}{}", "x".repeat(65_536 - start.len())).as_bytes())
        .await;
    assert_eq!(connection.read(false).await.unwrap().status, 431);
    assert!(connection.is_closed().await);
}
