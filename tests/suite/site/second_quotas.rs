//! An account gets no second quota on the same day by closing applications, or by deletion and another sign-up.

use std::time::Duration;

use scoregate_base::keys::Digest;

use super::browser::Browser;
use crate::world::World;

const REFUSED: &str =
    "An application under your email address was closed today after it had used part of its quota.";
const WHEN: &str = "tomorrow, from 00:00 UTC";
/// From noon to the next day.
const TO_MIDNIGHT: Duration = Duration::from_hours(12);

impl World {
    /// Uses a unit of the daily quota.
    async fn use_key(&self, key: &str) {
        assert_eq!(self.get("/api/v1/models").key(key).send().await.status, 200);
    }
}

impl Browser<'_> {
    async fn close(&mut self, path: &str) {
        self.visit(path).await;
        assert!(self.page.contains(WHEN), "{}", self.page);
        let closed = self
            .submit(&format!("{path}/close"), &[("confirm", "yes")])
            .await;
        assert_eq!(
            closed.header("location"),
            "/account?done=closed",
            "{}",
            self.page
        );
    }

    async fn delete_account(&mut self) {
        self.visit("/account").await;
        assert!(
            self.page.contains(WHEN) && self.page.contains("SHA-256 hash of your address"),
            "{}",
            self.page
        );
        let deleted = self.submit("/account/delete", &[("confirm", "yes")]).await;
        assert_eq!(
            deleted.header("location"),
            "/account/sign-in?done=deleted",
            "{}",
            self.page
        );
    }

    /// On the next day the mailbox gets an application with a quota.
    async fn gets_a_quota_tomorrow(&mut self, world: &World) {
        world.pass(TO_MIDNIGHT);
        self.sign_in("ann@example.org").await;
        let (_, key) = self.create("Tomorrow").await;
        world.use_key(&key).await;
    }

    /// A creation is refused until the next day.
    async fn is_refused_until_tomorrow(&mut self) {
        self.visit("/account").await;
        let refused = self
            .submit("/account/applications", &[("name", "Another")])
            .await;
        assert_eq!(refused.status, 409);
        assert!(
            self.page.contains(REFUSED) && self.page.contains(WHEN),
            "{}",
            self.page
        );
    }
}

#[tokio::test]
async fn an_application_closed_after_use_is_replaced_on_the_next_day() {
    let world = World::with_sign_up("").await;
    let mut ann = Browser::signed_in(&world, "ann@example.org").await;
    let (path, key) = ann.create("One").await;
    world.use_key(&key).await;
    ann.close(&path).await;
    assert_eq!(world.get_by(&key, "/api/v1/me").await.status, 401);
    ann.is_refused_until_tomorrow().await;
    assert_eq!(world.rows("SELECT count(*) FROM applications"), ["1"]);
    assert_eq!(
        world
            .counted("scoregate_account_changes_total{change=\"create\"}")
            .await,
        1
    );
    assert_eq!(
        world
            .counted("scoregate_site_requests_total{class=\"4xx\"}")
            .await,
        1
    );

    ann.gets_a_quota_tomorrow(&world).await;
}

#[tokio::test]
async fn another_account_of_the_mailbox_gets_a_quota_on_the_next_day() {
    let world = World::with_sign_up("").await;
    let mut ann = Browser::signed_in(&world, "Ann@example.org").await;
    let (_, key) = ann.create("One").await;
    world.use_key(&key).await;
    ann.delete_account().await;
    let kept = world.rows("SELECT lower(hex(mailbox_digest)) FROM closed_applications");
    assert_eq!(kept, [Digest::of("ann@example.org").to_string()]);

    ann.sign_in("ann+again@example.org").await;
    ann.is_refused_until_tomorrow().await;
    let owner = world
        .rows("SELECT id FROM owners")
        .pop()
        .unwrap()
        .parse()
        .unwrap();
    world
        .running
        .keys
        .administration
        .owners
        .delete("test", owner)
        .await
        .unwrap();
    ann.sign_in("ann@example.org").await;
    ann.is_refused_until_tomorrow().await;
    let mut bob = Browser::signed_in(&world, "bob@example.org").await;
    bob.create("Bob's").await;

    ann.gets_a_quota_tomorrow(&world).await;
}
