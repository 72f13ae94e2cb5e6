//! The use of an account, from sign-up to deletion.

use std::time::Duration;

use scoregate::registry::{DescriptionChange, FieldChange};

use super::browser::Browser;
use crate::{quotas::ledger_unreachable::Lock, world::World};

impl World {
    /// Checks the counters of changes by owners.
    async fn changes_are(&self, expected: &[(&str, u32)]) {
        for (step, count) in expected {
            let series = format!("scoregate_account_changes_total{{change=\"{step}\"}}");
            assert_eq!(self.counted(&series).await, *count, "{step}");
        }
    }
}

#[tokio::test]
async fn a_person_signs_up_uses_rotates_and_revokes_a_key_and_deletes_the_account() {
    let world = World::with_sign_up("").await;
    let landing = String::from_utf8(world.get("/").send().await.body).unwrap();
    assert!(landing.contains("href=\"/account/sign-in\""));
    let mut ann = Browser::of(&world);
    assert_eq!(ann.visit("/account").await, "/account/sign-in");
    ann.sign_in("ann@example.org").await;
    assert!(ann.page.contains("ann@example.org"));

    let (path, first) = ann.create("Dashboard").await;
    let shown_once = ann.page.clone();
    assert!(shown_once.contains("curl"));
    assert_eq!(world.get_by(&first, "/api/v1/models").await.status, 200);
    assert_eq!(
        world.get_by(&first, "/api/v1/me").await.json()["data"][0]["tier"],
        "free"
    );
    ann.visit(&path).await;
    assert!(!ann.page.contains(&first), "the key is shown once");
    assert!(ann.page.contains("1 of 10"), "{}", ann.page);

    ann.submit(
        &format!("{path}/rotate"),
        &[("overlap", "1h"), ("replace", "yes")],
    )
    .await;
    let second = ann.key();
    assert_ne!(first, second);
    for key in [&first, &second] {
        assert_eq!(world.get_by(key, "/api/v1/me").await.status, 200);
    }
    world.pass(Duration::from_hours(1));
    assert_eq!(
        world.get_by(&first, "/api/v1/me").await.code(),
        "invalid_api_key"
    );
    assert_eq!(world.get_by(&second, "/api/v1/me").await.status, 200);

    // Steps that cannot be undone need a recent session.
    ann.visit(&path).await;
    let revoke = format!("{path}/revoke");
    let digest = ann.hidden("key");
    assert_eq!(ann.submit(&revoke, &[("key", &digest)]).await.status, 403);
    assert_eq!(world.get_by(&second, "/api/v1/me").await.status, 200);
    ann.sign_in("ann@example.org").await;
    ann.visit(&path).await;
    let revoked = ann.submit(&revoke, &[("key", &digest)]).await;
    assert_eq!(revoked.header("location"), format!("{path}?done=revoked"));
    assert_eq!(world.get_by(&second, "/api/v1/me").await.status, 401);

    ann.visit(&path).await;
    ann.submit(
        &format!("{path}/rotate"),
        &[("overlap", "none"), ("replace", "yes")],
    )
    .await;
    let third = ann.key();
    assert_eq!(world.get_by(&third, "/api/v1/me").await.status, 200);
    ann.visit("/account").await;
    let deleted = ann.submit("/account/delete", &[("confirm", "yes")]).await;
    assert_eq!(deleted.header("location"), "/account/sign-in?done=deleted");
    assert_eq!(world.get_by(&third, "/api/v1/me").await.status, 401);
    assert_eq!(ann.visit("/account").await, "/account/sign-in");

    world
        .changes_are(&[("create", 1), ("rotate", 2), ("revoke", 1), ("delete", 1)])
        .await;
    let audit = world.rows("SELECT what FROM audit WHERE who LIKE 'owner:own_%' ORDER BY id");
    assert_eq!(
        audit,
        [
            "create_account",
            "create",
            "rotate",
            "revoke_key",
            "rotate",
            "close",
            "delete_account"
        ]
    );
    let personal = world.rows("SELECT count(*) FROM audit WHERE detail LIKE '%ann%'");
    assert_eq!(personal, ["0"]);
}

#[tokio::test]
async fn an_owner_describes_and_closes_applications() {
    let world = World::with_sign_up("site.applications_per_account = 2").await;
    let mut ann = Browser::signed_in(&world, "ann@example.org").await;
    let (path, key) = ann.create("One").await;
    ann.visit(&path).await;
    let fields = [
        ("name", "First"),
        ("url", "https://first.example"),
        ("contact", "#first on chat"),
    ];
    let saved = ann.submit(&path, &fields).await;
    assert_eq!(saved.header("location"), format!("{path}?done=saved"));
    ann.visit(&path).await;
    for (_, value) in fields {
        assert!(ann.page.contains(value), "{value}");
    }
    for (fields, words) in [
        ([("name", ""), ("url", "")], "The name must be"),
        (
            [("name", "First"), ("url", "javascript:alert(1)")],
            "The website",
        ),
    ] {
        let refused = ann.submit(&path, &fields).await;
        assert_eq!(refused.status, 422);
        assert!(ann.page.contains(words), "{words}: {}", ann.page);
        ann.visit(&path).await;
        assert!(
            ann.page.contains("https://first.example"),
            "nothing was lost"
        );
    }
    ann.create("Two").await;
    ann.visit("/account").await;
    assert!(
        !ann.page.contains("action=\"/account/applications\""),
        "no form beyond the limit"
    );
    let third = ann
        .submit("/account/applications", &[("name", "Three")])
        .await;
    assert_eq!(third.status, 409);

    ann.visit(&path).await;
    assert_eq!(ann.submit(&format!("{path}/close"), &[]).await.status, 422);
    ann.visit(&path).await;
    let closed = ann
        .submit(&format!("{path}/close"), &[("confirm", "yes")])
        .await;
    assert_eq!(closed.header("location"), "/account?done=closed");
    assert_eq!(world.get_by(&key, "/api/v1/me").await.status, 401);
    assert_eq!(ann.open(&path).await.status, 404);
    ann.create("Three").await;
}

#[tokio::test]
async fn an_owner_cannot_change_the_columns_of_operators() {
    let world = World::with_sign_up("").await;
    let mut ann = Browser::signed_in(&world, "ann@example.org").await;
    ann.visit("/account").await;
    let entered = [("name", "One"), ("contact", "ann"), ("note", "trusted")];
    assert_eq!(
        ann.submit("/account/applications", &entered).await.status,
        200
    );
    let [id] = &world.rows("SELECT application FROM owned_applications")[..] else {
        panic!("no application")
    };
    let columns =
        || world.rows("SELECT contact || ', ' || coalesce(note, 'no note') FROM applications");
    assert_eq!(columns(), ["ann, no note"]);

    let change = DescriptionChange {
        note: FieldChange::Set("good".into()),
        ..DescriptionChange::default()
    };
    world
        .running
        .registrar
        .describe("test", id.parse().unwrap(), change)
        .await
        .unwrap();
    for note in ["trusted", ""] {
        let path = format!("/account/applications/{id}");
        ann.visit(&path).await;
        assert!(!ann.page.contains("name=\"note\""), "{}", ann.page);
        let entered = [("name", "One"), ("contact", "bob"), ("note", note)];
        assert_eq!(
            ann.submit(&path, &entered).await.header("location"),
            format!("{path}?done=saved")
        );
        assert_eq!(columns(), ["bob, good"]);
    }
}

#[tokio::test]
async fn the_account_shows_use_and_requests_of_its_applications() {
    let world = World::with_sign_up("").await;
    let mut ann = Browser::signed_in(&world, "ann@example.org").await;
    let (path, key) = ann.create("Dashboard").await;
    assert_eq!(world.get_by(&key, "/api/v1/models").await.status, 200);
    assert_eq!(world.get_by(&key, "/api/v1/models").await.status, 429);
    ann.visit("/account").await;
    assert!(
        ann.page.contains("1 of 10") && ann.page.contains("1 of 1"),
        "{}",
        ann.page
    );
    let cookies = std::mem::take(&mut ann.cookies);
    let world = world.restarted().await;
    let mut ann = Browser {
        cookies,
        ..Browser::of(&world)
    };
    ann.visit(&path).await;
    assert!(
        ann.page.contains("<svg") && ann.page.contains("models"),
        "{}",
        ann.page
    );
}

#[tokio::test]
async fn an_operator_moves_an_account_to_a_tier_for_its_applications() {
    let world = World::with_sign_up("site.applications_per_account = 2").await;
    let mut ann = Browser::signed_in(&world, "ann@example.org").await;
    let (_, first) = ann.create("One").await;
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
        .set_tier("test", owner, Some("pro".into()))
        .await
        .unwrap();
    let (_, second) = ann.create("Two").await;
    for key in [first, second] {
        assert_eq!(
            world.get_by(&key, "/api/v1/me").await.json()["data"][0]["tier"],
            "pro"
        );
    }
}

#[tokio::test]
async fn a_change_takes_effect_although_its_client_disconnects_before_it_is_stored() {
    let world = World::with_sign_up("site.tier = \"enterprise\"").await;
    let mut ann = Browser::signed_in(&world, "ann@example.org").await;
    let (path, key) = ann.create("One").await;
    ann.visit(&path).await;
    let body = format!("confirm=yes&csrf={}", ann.csrf());
    let lock = Lock::on(world.directory.path());
    let mut connection = world.connect().await;
    connection
        .write(&ann.request("POST", &format!("{path}/close"), Some(&body)))
        .await;
    connection.finish().await;
    assert!(connection.is_closed().await, "no response");
    assert_eq!(world.get_by(&key, "/api/v1/me").await.status, 200);
    drop(lock);
    let mut tries = 0;
    while world.get_by(&key, "/api/v1/me").await.status != 401 {
        tries += 1;
        assert!(tries < 900, "the key of a closed application works");
    }
    assert_eq!(world.rows("SELECT count(*) FROM owned_applications"), ["0"]);
}

#[tokio::test]
async fn an_application_has_at_most_ten_active_keys_and_twenty_new_ones_a_day() {
    let world = World::with_sign_up("").await;
    let mut ann = Browser::signed_in(&world, "ann@example.org").await;
    let (path, _) = ann.create("One").await;
    let add = format!("{path}/keys");
    let rotate = format!("{path}/rotate");
    for number in 2..=11 {
        ann.visit(&path).await;
        let created = ann.submit(&add, &[]).await;
        assert_eq!(
            created.status,
            if number <= 10 { 200 } else { 422 },
            "{number}: {}",
            ann.page
        );
    }
    assert!(ann.page.contains("limit of 10 active keys"));
    for key in world.rows("SELECT lower(hex(digest)) FROM keys") {
        world.pass(Duration::from_secs(10));
        ann.visit(&path).await;
        ann.submit(&format!("{path}/revoke"), &[("key", &key)])
            .await;
    }
    for number in 11..=21 {
        world.pass(Duration::from_secs(10));
        ann.visit(&path).await;
        let created = ann
            .submit(&rotate, &[("overlap", "none"), ("replace", "yes")])
            .await;
        assert_eq!(
            created.status,
            if number <= 20 { 200 } else { 422 },
            "{number}: {}",
            ann.page
        );
    }
    assert!(ann.page.contains("limit of 20 new keys"));
}

#[tokio::test]
async fn a_form_sent_again_creates_no_second_key_and_no_second_application() {
    let world = World::with_sign_up("site.applications_per_account = 3").await;
    let mut ann = Browser::signed_in(&world, "ann@example.org").await;
    let account = ann.page.clone();
    let (path, _) = ann.create("One").await;
    ann.page = account;
    let again = ann
        .submit("/account/applications", &[("name", "One")])
        .await;
    assert_eq!(again.status, 422);
    assert!(
        ann.page.contains("The applications have changed"),
        "{}",
        ann.page
    );
    assert!(
        ann.page.contains("value=\"One\""),
        "the form keeps the entered name"
    );
    assert_eq!(world.rows("SELECT count(*) FROM applications"), ["1"]);

    ann.visit(&path).await;
    let application = ann.page.clone();
    let rotate = format!("{path}/rotate");
    assert_eq!(
        ann.submit(&rotate, &[("overlap", "1d"), ("replace", "yes")])
            .await
            .status,
        200
    );
    ann.page = application;
    assert_eq!(
        ann.submit(&rotate, &[("overlap", "1d"), ("replace", "yes")])
            .await
            .status,
        422
    );
    assert!(ann.page.contains("The keys have changed"), "{}", ann.page);
    assert_eq!(world.rows("SELECT count(*) FROM keys"), ["2"]);
    // The page with the refusal shows the current keys, so its form can be sent.
    assert_eq!(
        ann.submit(&rotate, &[("overlap", "1d"), ("replace", "yes")])
            .await
            .status,
        200
    );
}
