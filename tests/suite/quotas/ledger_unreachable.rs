//! While the ledger cannot be written, leased units are spent, then paid applications use grace and all others are
//! refused; delivered units are charged once it is back.
//!
//! The ledger is made to fail with SQL: by a trigger that rejects every write, or by a lock that is not released.

use std::{path::Path, process::Command, time::Duration};

use rusqlite::Connection;
use scoregate_base::keys::Digest;
use scoregate_store::{LocalFile, OwedRecords};

use crate::{
    balances::own,
    client::Response,
    program::sql,
    world::{Customer, World, good},
};

const MODELS: &str = "/api/v1/models?period=24h";
/// The writes of the ledger, by table and statement.
const WRITES: [(&str, &str); 4] = [
    ("ledger_days", "INSERT"),
    ("ledger_days", "UPDATE"),
    ("grace_shares", "INSERT"),
    ("grace_shares", "UPDATE"),
];
/// Interval between attempts while the ledger is unreachable.
const RETRY: Duration = Duration::from_secs(1);

impl World {
    /// Makes every write to the ledger fail.
    pub fn ledger_fails(&self) {
        for (table, what) in WRITES {
            let refuse = format!(
                "CREATE TRIGGER no_{what}_{table} BEFORE {what} ON {table}
                 BEGIN SELECT RAISE(ABORT, 'the disk fails'); END;"
            );
            sql(self.directory.path(), &refuse);
        }
    }

    /// Makes writes to the ledger succeed again.
    pub fn ledger_works(&self) {
        for (table, what) in WRITES {
            sql(
                self.directory.path(),
                &format!("DROP TRIGGER no_{what}_{table}"),
            );
        }
    }

    /// Makes writes to the ledger succeed again, and waits until the server has noticed.
    pub async fn ledger_returns(&self) {
        self.ledger_works();
        self.ledger_is_reachable().await;
    }

    /// Lets time pass until the server has noticed that the ledger is reachable.
    async fn ledger_is_reachable(&self) {
        loop {
            // On a busy machine a late probe misses this second, and runs a second later.
            self.pass(RETRY);
            for _ in 0..1_000 {
                if self.counted("scoregate_ledger_unreachable").await == 0 {
                    return;
                }
                tokio::task::yield_now().await;
            }
        }
    }

    /// Units granted by the ledger over all days.
    fn granted(&self) -> u32 {
        let sum = sql(
            self.directory.path(),
            "SELECT coalesce(sum(granted), 0) FROM ledger_days",
        );
        sum.trim().parse().unwrap()
    }

    /// Sends this many requests and returns how many were served.
    async fn served_of(&self, customer: &Customer, requests: u32) -> (u32, Vec<Response>) {
        let mut served = 0;
        let mut refused = Vec::new();
        for _ in 0..requests {
            let response = self.get_as(customer, MODELS).await;
            match response.status {
                200 => served += 1,
                _ => refused.push(response),
            }
        }
        (served, refused)
    }

    /// Waits until no lease is in progress for the customer.
    async fn has_leased(&self, customer: &Customer) {
        let account = self
            .running
            .gateway()
            .key_directory
            .find(&Digest::of(&customer.key))
            .unwrap()
            .account;
        while account.is_leasing() {
            tokio::task::yield_now().await;
        }
    }

    async fn grace_decisions(&self, outcome: &str) -> u32 {
        self.counted(&format!(
            "scoregate_ledger_unreachable_decisions_total{{decision=\"{outcome}\"}}"
        ))
        .await
    }
}

/// A connection that holds the store's lock until it is dropped. Uncommitted changes are rolled back.
pub struct Lock(#[expect(dead_code, reason = "it holds the lock")] Connection);

impl Lock {
    /// Acquires the lock.
    pub fn on(data_dir: &Path) -> Self {
        let connection =
            Connection::open(data_dir.join(scoregate_store::Store::FILE_NAME)).unwrap();
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        Self(connection)
    }
}

/// Whether a write to the store is in progress. The check runs in a separate process, which takes long enough that the
/// writer makes progress.
fn is_locked(data_dir: &Path) -> bool {
    let file = data_dir.join(scoregate_store::Store::FILE_NAME);
    let begun = Command::new("sqlite3")
        .arg(file)
        .arg("BEGIN IMMEDIATE; ROLLBACK")
        .output()
        .unwrap();
    !begun.status.success()
}

#[tokio::test]
async fn ledger_unreachable_leased_units_then_grace_then_503_and_all_are_charged_later() {
    let world = World::new().await;
    let customer = world.customer_with("pro", own(1_000, 300)).await;
    assert_eq!(world.served_of(&customer, 1).await.0, 1);
    world.has_leased(&customer).await;
    let leased = world.granted();
    world.ledger_fails();
    let (served, refused) = world.served_of(&customer, 10).await;
    assert_eq!(
        served,
        leased - 1 + 3,
        "the leased units, and a hundredth of the daily quota"
    );
    for response in &refused {
        assert_eq!(
            (response.status, response.code()),
            (503, "overloaded".into())
        );
        assert!(response.number("retry-after") >= 1);
        assert_eq!(
            response.number("x-ratelimit-remaining"),
            u64::from(300 - 1 - served)
        );
    }
    assert_eq!(
        (
            world.grace_decisions("grace").await,
            world.grace_decisions("refused").await
        ),
        (3, 10 - served)
    );
    assert_eq!(world.counted("scoregate_ledger_unreachable").await, 1);
    // One call detected the failure. No other request calls the ledger: the background retries once a second.
    assert_eq!(
        world
            .counted("scoregate_store_failures_total{operation=\"lease\"}")
            .await,
        1
    );
    world.pass(RETRY);
    world
        .reaches("scoregate_store_failures_total{operation=\"lease\"}", 2)
        .await;
    assert_eq!(world.served_of(&customer, 5).await.0, 0);
    assert_eq!(
        world
            .counted("scoregate_store_failures_total{operation=\"lease\"}")
            .await,
        2
    );
    assert_eq!(world.granted(), leased);

    world.ledger_returns().await;
    let (after, refused) = world.served_of(&customer, 300).await;
    assert_eq!(1 + served + after, 300);
    assert!(
        refused
            .iter()
            .all(|response| response.code() == "quota_exceeded")
    );
    assert_eq!(
        (
            world.granted(),
            world.counted("scoregate_ledger_unreachable").await
        ),
        (300, 0)
    );
}

#[tokio::test]
async fn ledger_unreachable_over_midnight_the_first_day_that_begins_has_its_grace_and_the_second_none()
 {
    let world = World::new().await;
    let customer = world.customer_with("pro", own(1_000, 300)).await;
    assert_eq!(world.served_of(&customer, 1).await.0, 1);
    world.has_leased(&customer).await;
    let leased = world.granted() - 1;
    world.pass(Duration::from_mins(11 * 60 + 50));
    world.ledger_fails();
    assert_eq!(world.served_of(&customer, 10).await.0, leased + 3);
    world.pass(Duration::from_mins(10));
    assert_eq!(world.served_of(&customer, 10).await.0, 3);
    assert_eq!(world.counted("scoregate_grace_share").await, 1);
    world.pass(Duration::from_hours(24));
    assert_eq!(world.served_of(&customer, 10).await.0, 0);
    world.falls_to_zero("scoregate_grace_share").await;

    world.ledger_returns().await;
    assert_eq!(world.served_of(&customer, 400).await.0, 300);
}

#[tokio::test]
async fn ledger_unreachable_a_free_application_gets_its_leased_units_only() {
    let world = World::new().await;
    let free = world.customer_with("free", own(1_000, 300)).await;
    assert_eq!(world.served_of(&free, 1).await.0, 1);
    world.has_leased(&free).await;
    world.ledger_fails();
    let left = world.granted() - 1;
    assert_eq!(world.served_of(&free, 5).await.0, left);
    assert_eq!(
        world.left(&free).minute,
        1_000 - 1 - left,
        "a refused request spends nothing"
    );
    assert_eq!(
        (
            world.grace_decisions("grace").await,
            world.grace_decisions("refused").await
        ),
        (0, 5 - left)
    );
    world.ledger_returns().await;
    assert_eq!(world.served_of(&free, 5).await.0, 5);
}

#[tokio::test]
async fn ledger_unreachable_grace_is_charged_at_the_start_after_a_shutdown_and_granted_once() {
    let world = World::new().await;
    let customer = world.customer_with("pro", own(1_000, 300)).await;
    let mut delivered = world.served_of(&customer, 1).await.0;
    world.has_leased(&customer).await;
    world.ledger_fails();
    delivered += world.served_of(&customer, 10).await.0;
    let granted = world.granted();
    assert_eq!(delivered, granted + 3);
    // Two restarts: units that cannot be charged at the first start are kept for the second.
    let world = world
        .restarted_with_losses()
        .await
        .restarted_with_losses()
        .await;
    assert_eq!(
        world.served_of(&customer, 5).await.0,
        0,
        "a new process has no leased units"
    );
    world.ledger_returns().await;
    delivered += world.served_of(&customer, 1).await.0;
    world.has_leased(&customer).await;
    assert!(
        world.granted() >= delivered,
        "{delivered} units were delivered"
    );
    assert_eq!(world.grace_left(), OwedRecords::default());
    world.ledger_fails();
    let (served, refused) = world.served_of(&customer, 10).await;
    delivered += served;
    assert!(
        refused
            .iter()
            .all(|response| response.code() == "overloaded")
    );
    assert_eq!(
        world.grace_decisions("grace").await,
        0,
        "the grace of the day was granted to an earlier process"
    );
    world.ledger_returns().await;
    delivered += world.served_of(&customer, 400).await.0;
    assert_eq!(delivered, 300);
}

#[tokio::test]
async fn ledger_unreachable_a_grace_entry_is_charged_once_even_if_a_crash_leaves_its_file() {
    let world = World::new().await;
    let customer = world.customer_with("pro", own(1_000, 300)).await;
    assert_eq!(world.served_of(&customer, 1).await.0, 1);
    world.has_leased(&customer).await;
    world.ledger_fails();
    world.served_of(&customer, 10).await;
    let world = world.restarted_with_losses().await;
    let file = world.directory.path().join(LocalFile::NAME);
    let kept = std::fs::read(&file).unwrap();
    world.ledger_works();
    let world = world.restarted().await;
    let granted = world.granted();
    std::fs::write(&file, &kept).unwrap();
    assert!(!world.grace_left().owed.is_empty());
    let world = world.restarted().await;
    assert_eq!(world.granted(), granted);
    assert_eq!(world.grace_left(), OwedRecords::default());
}

#[tokio::test]
async fn ledger_unreachable_in_three_minutes_no_request_waits_but_the_first() {
    let world = World::new().await;
    let first = world.customer_with("pro", own(1_000, 300)).await;
    let second = world.customer_with("pro", own(1_000, 300)).await;
    let third = world.customer_with("pro", own(1_000, 300)).await;
    assert_eq!(world.served_of(&first, 1).await.0, 1);
    world.has_leased(&first).await;
    assert_eq!(world.served_of(&second, 1).await.0, 1);
    world.has_leased(&second).await;
    let leased = world.granted() - 2;
    let waits = world.counted("scoregate_lease_waits_total").await;
    world.ledger_fails();
    let mut served = world.served_of(&first, 10).await.0;
    for _ in 0..180 {
        world.pass(RETRY);
        for customer in [&first, &second, &third] {
            served += world.served_of(customer, 1).await.0;
        }
    }
    let grace = world.grace_decisions("grace").await;
    assert_eq!((served, grace), (leased + 9, 9));
    assert!(world.counted("scoregate_lease_waits_total").await <= waits + 1);
    // The probe leases units for an application that needs them, and thereby charges the units delivered as grace.
    world.ledger_returns().await;
    assert_eq!(world.served_of(&third, 1).await.0, 1);
}

#[tokio::test]
async fn ledger_unreachable_an_unresponsive_ledger_delays_one_request_only() {
    let world = World::new().await;
    let customer = world.customer_with("pro", own(1_000, 300)).await;
    assert_eq!(world.served_of(&customer, 1).await.0, 1);
    world.has_leased(&customer).await;
    let leased = world.granted();
    // One leased unit is left. Its request starts a lease in advance, which finds the file locked.
    assert_eq!(world.served_of(&customer, leased - 2).await.0, leased - 2);
    let lock = Lock::on(world.directory.path());
    assert_eq!(world.served_of(&customer, 1).await.0, 1);
    let waiting = world.get(MODELS).key(&customer.key).begin().await;
    world.reaches("scoregate_lease_waits_total", 2).await;
    world.pass(Duration::from_secs(2));
    let mut waiting = waiting;
    assert_eq!(waiting.read(false).await.unwrap().status, 200);
    assert_eq!(world.served_of(&customer, 5).await.0, 2);
    assert_eq!(
        (
            world.grace_decisions("grace").await,
            world.grace_decisions("refused").await
        ),
        (3, 3)
    );
    drop(lock);
    // The blocked call succeeds in the end.
    while world.counted("scoregate_ledger_unreachable").await == 1 {
        tokio::task::yield_now().await;
    }
    let (after, _) = world.served_of(&customer, 400).await;
    assert_eq!(leased + 3 + after, 300);
}

#[tokio::test]
async fn ledger_unreachable_requests_that_wait_for_it_do_not_use_up_the_slots_of_cached_documents()
{
    let world = World::with("overload.cached_slots = 1\noverload.queue_length = 0", good).await;
    let ready = world.customer("pro").await;
    let without_units = world.customer("pro").await;
    assert_eq!(world.served_of(&ready, 1).await.0, 1);
    world.has_leased(&ready).await;
    let lock = Lock::on(world.directory.path());
    let mut waiting = world.get(MODELS).key(&without_units.key).begin().await;
    world.reaches("scoregate_lease_waits_total", 2).await;
    assert_eq!(world.served_of(&ready, 1).await.0, 1);
    drop(lock);
    assert_eq!(waiting.read(false).await.unwrap().status, 200);
}

#[tokio::test]
async fn ledger_unreachable_owed_units_are_charged_while_last_uses_of_keys_are_recorded() {
    let world = World::new().await;
    let customer = world.customer_with("pro", own(1_000, 300)).await;
    assert_eq!(world.served_of(&customer, 1).await.0, 1);
    world.has_leased(&customer).await;
    // A write that takes at least a minute, so that the pause after it is longer than three minutes.
    let lock = Lock::on(world.directory.path());
    for _ in 0..100 {
        world.pass(RETRY);
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    }
    drop(lock);
    while world
        .running
        .registrar
        .list(None, 1)
        .await
        .unwrap()
        .applications[0]
        .keys[0]
        .last_used_at
        .is_none()
    {
        tokio::task::yield_now().await;
    }
    world.has_leased(&customer).await;
    world.ledger_fails();
    let (served, _) = world.served_of(&customer, 5).await;
    world.ledger_works();
    world.pass(Duration::from_secs(30));
    for _ in 0..2_000 {
        if world
            .counted("scoregate_quota_units_total{use=\"leased\"}")
            .await
            > served
        {
            return;
        }
    }
    panic!("the units are not charged");
}

#[tokio::test]
async fn a_shutdown_does_not_wait_until_the_last_uses_of_all_keys_are_recorded() {
    const KEYS: u32 = 120;
    needs!("sqlite3");
    let world = World::new().await;
    for _ in 0..KEYS {
        let customer = world.customer("free").await;
        assert_eq!(world.get_as(&customer, MODELS).await.status, 200);
    }
    let slow = "CREATE TRIGGER slow BEFORE UPDATE OF last_used_at ON keys
                BEGIN SELECT count(a.digest || b.digest || c.name)
                      FROM keys a, keys b, (SELECT name FROM applications LIMIT 4) c; END;";
    sql(world.directory.path(), slow);
    let World {
        manual_clock,
        running,
        directory,
        ..
    } = world;
    let stopping = tokio::spawn(running.stop());
    // Less time passes than the interval of the periodic write.
    let mut moves = 0;
    while !stopping.is_finished() {
        if moves < 10 && is_locked(directory.path()) {
            moves += 1;
            manual_clock.advance(Duration::from_secs(2));
        }
        tokio::task::yield_now().await;
    }
    let recorded = sql(
        directory.path(),
        "SELECT count(*) FROM keys WHERE last_used_at IS NOT NULL",
    );
    assert!(recorded.trim().parse::<u32>().unwrap() < KEYS, "{recorded}");
}
