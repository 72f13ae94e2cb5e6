//! The whole gateway with the built-in backend: responses of all endpoints have the documented fields.

use crate::world::World;

#[tokio::test]
async fn builtin_the_hourly_refresh_is_detected_and_an_unknown_model_is_not_found() {
    let world = World::built_in().await;
    let pro = world.customer("pro").await;
    let before = world.get_as(&pro, "/api/v1/models").await;
    assert_eq!(before.json()["generated_at"], "2026-11-21T12:00:00Z");
    let missing = world.get_as(&pro, "/api/v1/models/nobody").await;
    assert_eq!(
        (missing.status, missing.code().as_str()),
        (404, "model_not_found")
    );

    world.pass(std::time::Duration::from_secs(3_601));
    let stale = world.get_as(&pro, "/api/v1/models").await;
    assert!(stale.header("cache-status").ends_with("detail=stale"));
    assert_eq!(stale.header("etag"), before.header("etag"));
    // The refresh belongs to no request; later requests see it once it is stored.
    world.settled().await;
    let after = world.get_as(&pro, "/api/v1/models").await;
    assert_eq!(after.json()["generated_at"], "2026-11-21T13:00:00Z");
    assert_ne!(after.header("etag"), before.header("etag"));
}
