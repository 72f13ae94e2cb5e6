//! Keys of an application: adding a key, replacing all keys, cancelling an expiry, and names.

use std::time::Duration;

use super::browser::Browser;
use crate::world::World;

/// The expiry of each key, oldest first.
fn expiries(world: &World) -> Vec<String> {
    world.rows("SELECT coalesce(expires_at, 'never') FROM keys ORDER BY created_at")
}

#[tokio::test]
async fn a_key_that_is_added_changes_no_other() {
    let world = World::with_sign_up("admin.token = \"a-token-of-the-side-port\"").await;
    let mut ann = Browser::signed_in(&world, "ann@example.org").await;
    let (path, first) = ann.create("One").await;
    ann.visit(&path).await;
    assert_eq!(
        ann.submit(&format!("{path}/keys"), &[("key_name", "Station 7")])
            .await
            .status,
        200
    );
    assert!(!ann.page.contains("older keys"), "{}", ann.page);
    let second = ann.key();
    assert_eq!(expiries(&world), ["never", "never"]);
    world.pass(Duration::from_hours(24 * 30));
    for key in [&first, &second] {
        assert_eq!(world.get_by(key, "/api/v1/me").await.status, 200);
    }
    assert_eq!(
        world.rows("SELECT coalesce(name, '-') FROM keys ORDER BY created_at"),
        ["-", "Station 7"]
    );
    assert_eq!(
        world.rows("SELECT what FROM audit ORDER BY id DESC LIMIT 1"),
        ["add_key"]
    );
    assert_eq!(
        world.rows("SELECT count(*) FROM audit WHERE detail LIKE '%Station%'"),
        ["0"]
    );
    assert_eq!(
        world
            .counted("scoregate_account_changes_total{change=\"add_key\"}")
            .await,
        1
    );
    let read = async |target: String| {
        let token = [("Authorization", "Bearer a-token-of-the-side-port")];
        world.side("GET", &target, "", &token).await.json()
    };
    let id = path.rsplit('/').next().unwrap();
    assert_eq!(
        read(format!("/v1/keys/show?id={id}")).await["keys"][1]["name"],
        "Station 7"
    );
    assert_eq!(
        read("/v1/keys/export".into()).await["keys"][1]["key_name"],
        "Station 7"
    );
}

#[tokio::test]
async fn keys_are_replaced_only_with_a_confirmation_and_an_expiry_can_be_cancelled_until_it_has_passed()
 {
    let world = World::with_sign_up("").await;
    let mut ann = Browser::signed_in(&world, "ann@example.org").await;
    let (path, first) = ann.create("One").await;
    let rotate = format!("{path}/rotate");
    let keep = format!("{path}/keep");
    for fields in [
        &[("overlap", "1h")][..],
        &[("overlap", "1h"), ("replace", "no")],
        &[("replace", "yes")],
        &[("overlap", "2h"), ("replace", "yes")],
    ] {
        ann.visit(&path).await;
        assert_eq!(ann.submit(&rotate, fields).await.status, 422, "{fields:?}");
        assert!(
            ann.page.contains("<details class=\"replacement\" open>"),
            "{}",
            ann.page
        );
        assert_eq!(expiries(&world), ["never"]);
    }
    ann.visit(&path).await;
    let digest = ann.hidden("key");
    let fields = [("overlap", "1h"), ("replace", "yes"), ("new_name", "New")];
    assert_eq!(ann.submit(&rotate, &fields).await.status, 200);
    assert!(
        ann.page.contains("The older keys work until"),
        "{}",
        ann.page
    );
    assert_ne!(expiries(&world)[0], "never");

    ann.visit(&path).await;
    let kept = ann.submit(&keep, &[("key", &digest)]).await;
    assert_eq!(kept.header("location"), format!("{path}?done=kept"));
    assert_eq!(expiries(&world), ["never", "never"]);
    world.pass(Duration::from_hours(2));
    assert_eq!(world.get_by(&first, "/api/v1/me").await.status, 200);

    ann.visit(&path).await;
    ann.submit(&rotate, &[("overlap", "1h"), ("replace", "yes")])
        .await;
    ann.visit(&path).await;
    assert_eq!(ann.page.matches("Cancel expiry").count(), 2);
    world.pass(Duration::from_hours(1));
    assert_eq!(ann.submit(&keep, &[("key", &digest)]).await.status, 422);
    assert!(ann.page.contains("cannot be kept"), "{}", ann.page);
    assert_eq!(world.get_by(&first, "/api/v1/me").await.status, 401);
    // Cancelling an expiry neither restores a revoked key nor affects a key of another application.
    ann.visit(&path).await;
    assert_eq!(ann.submit(&keep, &[("key", "00")]).await.status, 404);
    assert_eq!(
        world
            .counted("scoregate_account_changes_total{change=\"keep_key\"}")
            .await,
        1
    );
}
