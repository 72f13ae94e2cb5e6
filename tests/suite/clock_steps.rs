//! The wall clock is set while requests come: by an hour back, ten seconds back across midnight, a day forth and back.
//! No step grants a second time, none freezes or refills a minute, and the day of a caller never goes back.

use std::time::Duration;

use scoregate::clock::Wall;

use crate::balances::own;
use crate::shell::sqlite3;
use crate::world::World;

const MODELS: &str = "/api/v1/models?period=24h";
const DAY: u32 = 40;
const MINUTE: u32 = 12;

/// A place on the wall, and how long requests go on there.
type Stay = (&'static str, u64);

/// Sends one request a second for as long as each stay lasts, and gives the served ones of each.
async fn served(world: &World, key: &str, stays: &[Stay]) -> Vec<u32> {
    let (mut served, mut seconds) = (Vec::new(), 0u32);
    let mut newest_reset = 0;
    for (place, stay) in stays {
        world.hand.step_to(Wall::parse_rfc3339(place).unwrap());
        let mut here = 0;
        for _ in 0..*stay {
            let answer = world.get(MODELS).key(key).send().await;
            match answer.status {
                200 => here += 1,
                _ => assert_eq!(answer.status, 429, "{place}"),
            }
            if answer.header("x-ratelimit-resource") == "day" {
                let reset = answer.number("x-ratelimit-reset");
                assert!(reset >= newest_reset, "{place}: the caller's day went back");
                newest_reset = reset;
            }
            world.pass(Duration::from_secs(1));
            seconds += 1;
        }
        served.push(here);
        // What a bucket gives in some time is bounded from above by running time alone; it was never refilled by a step.
        let all: u32 = served.iter().sum();
        assert!(all <= MINUTE + seconds * MINUTE / 60, "{place}: {all} in {seconds} seconds");
    }
    served
}

async fn stays(stays: &[Stay]) -> (Vec<u32>, String) {
    let world = World::new().await;
    let customer = world.customer_with("pro", own(MINUTE, DAY)).await;
    let told = served(&world, &customer.key, stays).await;
    let directory = std::sync::Arc::clone(&world.directory);
    assert!(world.running.stop().await.all_finished);
    let granted = "SELECT day, sum(granted) FROM ledger GROUP BY day ORDER BY day";
    (told, sqlite3(directory.path(), granted))
}

#[tokio::test]
async fn clock_steps_an_hour_back_is_the_same_day_with_the_same_quota() {
    let (served, granted) = stays(&[("2026-11-21T12:00:00Z", 60), ("2026-11-21T11:01:00Z", 200)]).await;
    // Twelve at once and one each five seconds: neither frozen nor refilled by the step.
    assert_eq!(served, [23, DAY - 23]);
    assert_eq!(granted, "2026-11-21|40\n");
}

#[tokio::test]
async fn clock_steps_ten_seconds_back_across_midnight_reopen_nothing() {
    let places = [("2026-11-21T23:57:00Z", 183), ("2026-11-21T23:59:53Z", 180)];
    let (served, granted) = stays(&places).await;
    // The first day was spent before midnight; from then on it is the second, wherever the clock is.
    assert_eq!(served[0], DAY + 1 + 2);
    assert_eq!(granted.lines().count(), 2, "{granted}");
    assert_eq!(granted, format!("2026-11-21|{DAY}\n2026-11-22|{}\n", served[0] - DAY + served[1]));
}

#[tokio::test]
async fn clock_steps_a_day_forth_and_back_are_one_new_quota_in_all() {
    let places = [("2026-11-21T12:00:00Z", 60), ("2026-11-22T12:01:00Z", 60), ("2026-11-21T12:02:00Z", 400)];
    let (served, granted) = stays(&places).await;
    assert_eq!(served[1] + served[2], DAY);
    assert_eq!(granted, format!("2026-11-21|{}\n2026-11-22|{DAY}\n", served[0]));
}
