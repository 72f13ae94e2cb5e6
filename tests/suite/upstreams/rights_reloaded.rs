//! Rights of tiers that change while documents are stored: by a reload, by a restart, and for a caller's stored copy.

use scoregate_base::routes::Period;

use super::rights_of_tiers::{SETTINGS, backend};
use crate::{
    balances::wide,
    client::Response,
    world::{Customer, World},
};

const PRICES: &str = "/api/v1/prices?period=7d";
const MODEL: &str = "/api/v1/models/atlas";

/// A paid tier with further settings.
fn tier(name: &str, more: &str) -> String {
    format!("[tiers.{name}]\nminute = 60\nday = 9000\npaid = true\n{more}\n")
}

/// The reserved fields in the responses of both endpoints that have such fields.
async fn fields(world: &World, customer: &Customer) -> Vec<&'static str> {
    let mut text = String::new();
    for target in [PRICES, MODEL] {
        let got = world.get_as(customer, target).await;
        assert_eq!(got.status, 200);
        text.push_str(&String::from_utf8(got.body).unwrap());
    }
    let named = ["latestScore", "margin", "rebate", "undeclared"];
    let found: Vec<_> = named
        .into_iter()
        .filter(|name| text.contains(name))
        .collect();
    for (name, value) in [
        ("latestScore", "7.5"),
        ("margin", "\"margin\":7.125"),
        ("rebate", "7.25"),
    ] {
        assert_eq!(text.contains(value), found.contains(&name), "{text}");
    }
    found
}

#[tokio::test]
async fn a_tier_that_a_reload_adds_sees_no_field_that_it_may_not_see() {
    let mut world = World::with(SETTINGS, backend).await;
    let [pro, trial] = [
        world.customer_with("pro", wide()).await,
        world.customer_with("trial", wide()).await,
    ];
    let before = [fields(&world, &pro).await, fields(&world, &trial).await];
    assert_eq!(before[0], ["latestScore", "margin", "rebate", "undeclared"]);
    // The new names sort before and after the names of the other tiers. The sets of the other tiers stay unchanged.
    let added = [
        tier("a_none", "fields = []"),
        tier(
            "a_new",
            "fields = [\"model.latestScore\", \"prices.margin\"]",
        ),
        tier(
            "z_known",
            "fields = [\"prices.seller.rebate\", \"prices.margin\"]",
        ),
    ];
    // At most four sets are possible, so the set of `seller` is removed.
    let settings = SETTINGS.replace("\"model.latestScore\", \"prices.seller.rebate\"", "");
    let changed = world
        .reload(&format!("{settings}{}", added.concat()))
        .await
        .unwrap();
    assert_eq!(changed.at_next_start, ["tiers.a_new.fields"]);
    for (tier, expected) in [
        ("a_none", &[][..]),
        ("a_new", &[]),
        ("z_known", &["margin", "rebate"]),
    ] {
        let customer = world.customer_with(tier, wide()).await;
        assert_eq!(fields(&world, &customer).await, expected, "{tier}");
    }
    assert_eq!(
        [fields(&world, &pro).await, fields(&world, &trial).await],
        before
    );
}

#[tokio::test]
async fn a_reload_that_removes_or_narrows_a_tier_gives_no_other_tier_its_fields() {
    let mut world = World::with(SETTINGS, backend).await;
    let mut customers = Vec::new();
    for tier in ["pro", "trial", "free"] {
        customers.push(world.customer_with(tier, wide()).await);
    }
    let [pro, trial, free] = &customers[..] else {
        unreachable!()
    };
    let whole = world.get_as(pro, PRICES).await;
    assert_eq!(fields(&world, trial).await, ["margin", "rebate"]);
    // The set of `seller` came before the set of `trial`.
    let (rest, _) = SETTINGS.split_once("[tiers.seller]").unwrap();
    let (_, of_trial) = SETTINGS.split_once("[tiers.trial]").unwrap();
    let narrowed = rest.replace(
        "day = 10000\npaid = true",
        "day = 10000\npaid = true\nfields = []",
    );
    let changed = world
        .reload(&format!("{narrowed}[tiers.trial]{of_trial}"))
        .await
        .unwrap();
    assert!(changed.at_next_start.is_empty(), "{changed:?}");
    assert!(
        changed.at_once.contains(&"tiers.pro.fields".to_owned()),
        "{changed:?}"
    );
    assert_eq!(fields(&world, trial).await, ["margin", "rebate"]);
    assert!(fields(&world, free).await.is_empty() && fields(&world, pro).await.is_empty());
    // The caller still has a copy of the whole form and its tag.
    let again = world
        .get(PRICES)
        .key(&pro.key)
        .header("If-None-Match", whole.header("etag"))
        .send()
        .await;
    assert_eq!(
        (again.status, again.header("etag")),
        (200, world.get_as(free, PRICES).await.header("etag"))
    );
}

#[tokio::test]
async fn a_set_of_fields_that_was_unknown_at_the_start_applies_after_a_restart() {
    let mut world = World::with(SETTINGS, backend).await;
    let seller = world.customer_with("seller", wide()).await;
    assert_eq!(fields(&world, &seller).await, ["latestScore", "rebate"]);
    let settings = SETTINGS.replace(
        "\"model.latestScore\", \"prices.seller.rebate\"",
        "\"model.latestScore\"",
    );
    for _ in 0..2 {
        let changed = world.reload(&settings).await.unwrap();
        assert_eq!(
            (changed.at_next_start, changed.at_once),
            (vec!["tiers.seller.fields".to_owned()], vec![])
        );
        assert!(fields(&world, &seller).await.is_empty());
    }
    let fetched = world.backend.received().len();
    let world = world.restarted_as(&settings).await;
    assert_eq!(fields(&world, &seller).await, ["latestScore"]);
    assert_eq!(
        world.backend.received().len(),
        fetched + 2,
        "documents with other forms are fetched again"
    );
}

#[tokio::test]
async fn a_tier_that_is_no_longer_paid_has_the_rights_of_a_free_one_at_the_next_request() {
    let mut world = World::with(SETTINGS, backend).await;
    let seller = world.customer_with("seller", wide()).await;
    let latest = format!("/api/v1/models?period={}", Period::Latest.word());
    assert_eq!(world.get_as(&seller, &latest).await.status, 200);
    assert_eq!(fields(&world, &seller).await, ["latestScore", "rebate"]);
    let (before, rest) = SETTINGS.split_once("[tiers.seller]").unwrap();
    let (_, after) = rest.split_once("[tiers.trial]").unwrap();
    let seller_table = "[tiers.seller]\nminute = 60\nday = 5000\npaid = false\n";
    world
        .reload(&format!("{before}{seller_table}[tiers.trial]{after}"))
        .await
        .unwrap();
    assert!(fields(&world, &seller).await.is_empty());
    let refused: Response = world.get_as(&seller, &latest).await;
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (403, "latest_requires_plan")
    );
}
