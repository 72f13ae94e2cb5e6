//! The usage that owners download.

use std::time::Duration;

use super::browser::Browser;
use crate::world::World;

/// Waits until a query on the store returns this number. The clock advances second by second.
async fn reaches(world: &World, query: &str, number: &str) {
    while world.rows(query) != [number] {
        world.pass(Duration::from_secs(10));
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_owner_downloads_the_units_of_own_applications_in_a_month() {
    let world = World::with_sign_up("").await;
    let mut bob = Browser::signed_in(&world, "bob@example.org").await;
    let (_, key_of_bob) = bob.create("Other").await;
    let mut ann = Browser::signed_in(&world, "ann@example.org").await;
    let (path, key) = ann.create("One").await;
    let uses = async |key: &str| {
        assert_eq!(world.get_by(key, "/api/v1/models").await.status, 200);
        world.pass(Duration::from_mins(1));
    };
    for key in [&key, &key_of_bob, &key] {
        uses(key).await;
    }
    reaches(&world, "SELECT sum(requests) FROM request_nodes", "3").await;
    world.pass(Duration::from_hours(4 * 24));
    // The first lease of a later day closes the days before it.
    uses(&key_of_bob).await;
    let unmerged = "SELECT count(*) FROM request_nodes WHERE day < '2026-11-25'";
    reaches(&world, unmerged, "0").await;

    ann.sign_in("ann@example.org").await;
    ann.visit("/account").await;
    assert!(ann.page.contains("action=\"/account/usage\""));
    let id = path.rsplit('/').next().unwrap();
    let owner = world
        .rows("SELECT id FROM owners WHERE email LIKE 'ann%'")
        .remove(0);
    let file = ann.send("GET", "/account/usage?month=2026-11", None).await;
    assert_eq!(file.status, 200);
    assert_eq!(
        String::from_utf8(file.body.clone()).unwrap(),
        format!(
            "account,application,day,id,tier,units\n{owner},{id},2026-11-21,2026-11-21_{id},free,2\n"
        )
    );
    assert_eq!(file.header("content-type"), "text/csv; charset=utf-8");
    assert_eq!(
        file.header("content-disposition"),
        "attachment; filename=\"usage-2026-11-not-closed.csv\""
    );
    for month in ["", "2026-12", "2026-08", "2026-13", "2026-11-01", "x"] {
        let target = format!("/account/usage?month={month}");
        assert_eq!(ann.send("GET", &target, None).await.status, 404, "{month}");
    }
    let signed_out = Browser::of(&world)
        .send("GET", "/account/usage?month=2026-11", None)
        .await;
    assert_eq!(signed_out.header("location"), "/account/sign-in");
}
