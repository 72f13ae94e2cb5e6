//! Sizes of request heads on HTTP/2: the longest target, the largest head and the most fields that are accepted, and the
//! responses to larger ones.

use super::heads::wide;
use super::{StreamOutcome, get};

#[tokio::test]
async fn http2_a_target_has_at_most_2_kib() {
    let (world, key) = wide().await;
    for (length, expected) in [
        (2_047, StreamOutcome::Response(200, String::new())),
        (2_048, StreamOutcome::Response(200, String::new())),
        (2_049, StreamOutcome::Response(414, "uri_too_long".into())),
        (8_192, StreamOutcome::Response(414, "uri_too_long".into())),
    ] {
        let start = "/api/v1/models?x=";
        let target = format!("{start}{}", "x".repeat(length - start.len()));
        assert_eq!(
            world
                .outcome_of(&get(&target, &[("x-api-key", &key)]))
                .await,
            expected,
            "{length}"
        );
    }
}

#[tokio::test]
async fn http2_a_head_has_at_most_16_kib_and_64_fields() {
    let (world, key) = wide().await;
    let large = StreamOutcome::Response(431, "headers_too_large".into());
    let fine = StreamOutcome::Response(200, String::new());
    for (size, expected) in [(15_000, &fine), (16_500, &large), (65_000, &large)] {
        let outcome = world
            .outcome_of(&get(
                "/api/v1/models",
                &[("x-api-key", &key), ("x", &"x".repeat(size))],
            ))
            .await;
        assert_eq!(outcome, *expected, "{size}");
    }
    for (count, expected) in [(63, &fine), (64, &fine), (65, &large), (256, &large)] {
        let more: Vec<String> = (1..count).map(|number| format!("x{number}")).collect();
        let more = more.iter().map(|name| (name.as_str(), "1"));
        let all: Vec<(&str, &str)> = std::iter::once(("x-api-key", key.as_str()))
            .chain(more)
            .collect();
        assert_eq!(
            world.outcome_of(&get("/api/v1/models", &all)).await,
            *expected,
            "{count}"
        );
    }
    assert_eq!(
        world
            .counted("scoregate_refusals_total{code=\"headers_too_large\"}")
            .await,
        4
    );
    // Above the codec's limit the codec itself refuses the head.
    for size in [74_000, 200_000] {
        let outcome = world
            .outcome_of(&get(
                "/api/v1/models",
                &[("x-api-key", &key), ("x", &"x".repeat(size))],
            ))
            .await;
        assert_ne!(outcome, fine, "{size}");
    }
}
