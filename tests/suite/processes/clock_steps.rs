//! Steps of the wall clock while requests arrive: an hour back, ten seconds back across midnight, a day forward and
//! back. No step grants a second quota, or freezes or refills the minute limit, and the day of a caller never goes
//! back. A clock that is ahead for less than a minute changes nothing.

use std::time::Duration;

use scoregate::registry::NewApplication;
use scoregate_base::clock::Wall;

use crate::{balances::own, program::sql, world::World};

const MODELS: &str = "/api/v1/models?period=24h";
const DAY: u32 = 40;
const MINUTE: u32 = 12;

/// A wall clock time, and the duration in seconds for which requests are sent from then on.
type ClockPeriod = (&'static str, u64);

/// Sends one request a second for the duration of each period, and returns the served ones of each.
async fn served(world: &World, key: &str, stays: &[ClockPeriod]) -> Vec<u32> {
    let mut served = Vec::new();
    let mut seconds = 0u32;
    let mut newest_reset = 0;
    for (time, stay) in stays {
        world
            .manual_clock
            .step_to(Wall::parse_rfc3339(time).unwrap());
        let mut here = 0;
        for _ in 0..*stay {
            let response = world.get_by(key, MODELS).await;
            match response.status {
                200 => here += 1,
                _ => assert_eq!(response.status, 429, "{time}"),
            }
            if response.header("x-ratelimit-resource") == "day" {
                let reset = response.number("x-ratelimit-reset");
                assert!(reset >= newest_reset, "{time}: the reset time went back");
                newest_reset = reset;
            }
            world.pass(Duration::from_secs(1));
            seconds += 1;
        }
        served.push(here);
        // Refills of a bucket are bounded by monotonic time alone; no step refilled it.
        let all: u32 = served.iter().sum();
        assert!(
            all <= MINUTE + seconds * MINUTE / 60,
            "{time}: {all} in {seconds} seconds"
        );
    }
    served
}

async fn stays(stays: &[ClockPeriod]) -> (Vec<u32>, String) {
    let world = World::new().await;
    let customer = world.customer_with("pro", own(MINUTE, DAY)).await;
    let served_requests = served(&world, &customer.key, stays).await;
    let directory = std::sync::Arc::clone(&world.directory);
    assert!(world.running.stop().await.all_finished);
    let granted = "SELECT day, sum(granted) FROM ledger_days GROUP BY day ORDER BY day";
    (served_requests, sql(directory.path(), granted))
}

#[tokio::test]
async fn clock_steps_an_hour_back_keep_the_day_and_its_quota() {
    let (served, granted) =
        stays(&[("2026-11-21T12:00:00Z", 60), ("2026-11-21T11:01:00Z", 200)]).await;
    // A burst of twelve, and then one every five seconds: the step neither froze nor refilled the bucket.
    assert_eq!(served, [23, DAY - 23]);
    assert_eq!(granted, "2026-11-21|40\n");
}

#[tokio::test]
async fn clock_steps_ten_seconds_back_across_midnight_reopen_nothing() {
    let periods = [("2026-11-21T23:57:00Z", 183), ("2026-11-21T23:59:53Z", 180)];
    let (served, granted) = stays(&periods).await;
    // The first day's quota was spent before midnight. From midnight on, the second day applies at any wall clock time.
    assert_eq!(served[0], DAY + 1 + 2);
    assert_eq!(granted.lines().count(), 2, "{granted}");
    assert_eq!(
        granted,
        format!(
            "2026-11-21|{DAY}\n2026-11-22|{}\n",
            served[0] - DAY + served[1]
        )
    );
}

#[tokio::test]
async fn a_clock_that_is_a_day_ahead_for_less_than_a_minute_uses_no_quota() {
    let periods = [
        ("2026-11-21T12:00:00Z", 60),
        ("2026-11-22T12:01:00Z", 59),
        ("2026-11-21T12:01:59Z", 400),
    ];
    let (served, granted) = stays(&periods).await;
    assert_eq!(served.iter().sum::<u32>(), DAY);
    assert_eq!(granted, format!("2026-11-21|{DAY}\n"));
}

#[tokio::test]
async fn a_clock_that_stays_a_day_ahead_opens_that_day_after_a_minute() {
    let periods = [
        ("2026-11-21T12:00:00Z", 150),
        ("2026-11-22T12:02:30Z", 60),
        ("2026-11-22T12:03:30Z", 400),
    ];
    let (served, granted) = stays(&periods).await;
    // By then the first day's quota is spent, and the first day applies for another minute.
    assert_eq!((served[0], served[1], served[2]), (DAY, 0, DAY));
    assert_eq!(granted, format!("2026-11-21|{DAY}\n2026-11-22|{DAY}\n"));
}

#[tokio::test]
async fn clock_steps_a_day_forward_and_back_open_one_new_quota() {
    let periods = [
        ("2026-11-21T12:00:00Z", 60),
        ("2026-11-22T12:01:00Z", 120),
        ("2026-11-21T12:03:00Z", 400),
    ];
    let (served, granted) = stays(&periods).await;
    let today: u32 = granted
        .lines()
        .next()
        .unwrap()
        .split_once('|')
        .unwrap()
        .1
        .parse()
        .unwrap();
    assert_eq!(served.iter().sum::<u32>(), today + DAY);
    assert_eq!(granted, format!("2026-11-21|{today}\n2026-11-22|{DAY}\n"));
}

#[tokio::test]
async fn a_key_does_not_expire_while_the_clock_is_briefly_ahead() {
    let world = World::new().await;
    let new = NewApplication {
        name: "a guest".into(),
        tier: "pro".into(),
        expires_at: Wall::parse_rfc3339("2026-11-21T18:00:00Z"),
        ..NewApplication::default()
    };
    let issued = world.running.registrar.create("test", new).await.unwrap();
    let key = issued.key.expose();
    world
        .manual_clock
        .step_to(Wall::parse_rfc3339("2026-11-22T12:00:00Z").unwrap());
    world.running.gateway().sweep();
    assert_eq!(world.get_by(key, MODELS).await.status, 200);
    world
        .manual_clock
        .step_to(Wall::parse_rfc3339("2026-11-21T12:00:01Z").unwrap());
    assert_eq!(world.get_by(key, MODELS).await.status, 200);
}

#[tokio::test]
async fn clock_steps_are_counted_by_direction_and_slewing_is_not() {
    let world = World::new().await;
    let counted = async || {
        let mut counts = [0; 2];
        for (count, direction) in counts.iter_mut().zip(["forward", "backward"]) {
            *count = world
                .counted(&format!(
                    "scoregate_clock_steps_total{{direction=\"{direction}\"}}"
                ))
                .await;
        }
        counts
    };
    let to = async |time: &str| {
        world
            .manual_clock
            .step_to(Wall::parse_rfc3339(time).unwrap());
        world.get("/healthz").send().await;
        counted().await
    };
    assert!(
        world
            .scrape()
            .await
            .contains("scoregate_clock_steps_total{direction=\"forward\"} 0")
    );
    assert_eq!(to("2026-11-21T12:00:50Z").await, [0, 0]);
    assert_eq!(to("2026-11-21T12:00:00Z").await, [0, 0]);
    assert_eq!(to("2026-11-22T12:00:00Z").await, [1, 0]);
    assert_eq!(to("2026-11-21T12:00:00Z").await, [1, 1]);
    assert_eq!(to("2026-11-20T12:00:00Z").await, [1, 2]);
    world.manual_clock.suspend(Duration::from_hours(24));
    world.get("/healthz").send().await;
    assert_eq!(counted().await, [1, 2], "a suspend is not a step");
}

#[tokio::test]
async fn a_clock_step_is_detected_without_requests() {
    let world = World::new().await;
    world
        .manual_clock
        .step_to(Wall::parse_rfc3339("2026-11-22T12:00:00Z").unwrap());
    let forward = "scoregate_clock_steps_total{direction=\"forward\"}";
    // The task that checks the clock may be about to sleep, so it gets some time.
    while world.counted(forward).await == 0 {
        world.pass(Duration::from_millis(100));
        tokio::task::yield_now().await;
    }
    assert_eq!(world.counted(forward).await, 1);
}
