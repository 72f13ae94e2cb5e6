//! Limits of an account that apply to all its applications together.

use std::time::Duration;

use serde_json::{Value, json};

use super::browser::Browser;
use crate::{client::Response, world::World};

const SETTINGS: &str = "site.applications_per_account = 3
[tiers.pro]
minute = 1000
day = 5
owner_day = 7
owner_month = 12
paid = true
";

impl World {
    /// Changes limits of an account over the side port.
    pub(super) async fn set_account(&self, owner: &str, limits: &Value) {
        let body = json!({"id": owner, "limits": limits}).to_string();
        let path = "/v1/accounts/set-limits";
        let token = ("Authorization", "Bearer a-token-of-the-side-port");
        let changed = self.side("POST", path, &body, &[token]).await;
        assert_eq!(changed.status, 200, "{}", changed.json());
    }

    async fn models(&self, key: &str) -> Response {
        self.get("/api/v1/models?period=24h").key(key).send().await
    }
}

async fn used(world: &World, key: &str, requests: u32) {
    for _ in 0..requests {
        assert_eq!(world.models(key).await.status, 200);
    }
}

fn refused_by(response: &Response) -> String {
    assert_eq!(
        (response.status, response.code()),
        (429, "quota_exceeded".into())
    );
    let limit = response.json()["limit"]["name"].clone();
    assert_eq!(response.header("x-ratelimit-resource"), limit);
    limit.as_str().unwrap().to_owned()
}

#[tokio::test]
async fn applications_of_an_account_share_its_day_and_its_month() {
    let world = World::with_sign_up(SETTINGS).await;
    let mut ann = Browser::of(&world);
    ann.sign_in("ann@example.org").await;
    let (_, one) = ann.create("one").await;
    let (_, other) = ann.create("other").await;
    let alone = world.customer("pro").await;

    used(&world, &one, 4).await;
    let last = world.models(&other).await;
    assert_eq!(
        last.header("ratelimit-policy"),
        "\"minute\";q=1000;w=60, \"day\";q=5;w=86400, \"owner_day\";q=7;w=86400, \"owner_month\";q=12;w=2592000"
    );
    let standing = last.header("ratelimit");
    for left in ["\"day\";r=4;", "\"owner_day\";r=2;", "\"owner_month\";r=7;"] {
        assert!(standing.contains(left), "{standing}");
    }
    used(&world, &other, 2).await;
    let spent = world.models(&other).await;
    assert_eq!(refused_by(&spent), "owner_day");
    assert_eq!(
        spent.json()["message"],
        "Wait until 2026-11-22T00:00:00Z. The daily quota of 7 requests for all applications of the account is spent."
    );
    assert_eq!(refused_by(&world.models(&one).await), "owner_day");

    used(&world, &alone.key, 5).await;
    let without_an_owner = world.models(&alone.key).await;
    assert_eq!(refused_by(&without_an_owner), "day");
    assert!(
        !without_an_owner
            .header("ratelimit-policy")
            .contains("owner")
    );

    world.pass(Duration::from_hours(24));
    used(&world, &one, 5).await;
    assert_eq!(refused_by(&world.models(&other).await), "owner_month");
    world.pass(Duration::from_hours(24 * 9));
    used(&world, &other, 5).await;
}

#[tokio::test]
async fn limits_of_an_account_are_in_force_at_once_for_present_and_new_applications() {
    let world = World::with_sign_up("site.applications_per_account = 3\nsite.tier = \"pro\"\nadmin.token = \"a-token-of-the-side-port\"\n").await;
    let mut ann = Browser::of(&world);
    ann.sign_in("ann@example.org").await;
    let (_, one) = ann.create("one").await;
    used(&world, &one, 2).await;
    let owner = world.rows("SELECT id FROM owners").remove(0);
    world.set_account(&owner, &json!({"owner_day": 5})).await;
    // The application returns the units that it leased before the limit was set.
    used(&world, &one, 1).await;
    let (_, other) = ann.create("other").await;
    used(&world, &other, 2).await;
    for key in [&one, &other] {
        assert_eq!(refused_by(&world.models(key).await), "owner_day");
    }
    world.set_account(&owner, &json!({"owner_day": null})).await;
    used(&world, &other, 1).await;
    let policy = world.models(&one).await;
    assert!(!policy.header("ratelimit-policy").contains("owner"));
}
