//! Keys of an application: adding one, replacing all, cancelling an expiry, and their names.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::Barrier;

use super::browser::Browser;
use crate::client::Connection;
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
    // Nor does it bring back a revoked key, or reach a key of another application.
    ann.visit(&path).await;
    assert_eq!(ann.submit(&keep, &[("key", "00")]).await.status, 404);
    assert_eq!(
        world
            .counted("scoregate_account_changes_total{change=\"keep_key\"}")
            .await,
        1
    );
}

#[tokio::test]
async fn a_name_of_a_key_has_visible_characters_and_ends_with_the_application() {
    let world = World::with_sign_up("").await;
    let mut ann = Browser::signed_in(&world, "ann@example.org").await;
    let (path, _) = ann.create("One").await;
    for (form, field, more) in [
        ("keys", "key_name", None),
        (
            "rotate",
            "new_name",
            Some([("overlap", "none"), ("replace", "yes")]),
        ),
    ] {
        for (name, more_text) in [
            ("a\u{200b}b", "; remove U+200B"),
            ("a\u{202e}b", "; remove U+202E"),
            ("a\nb", "; remove U+000A"),
            (&*"x".repeat(201), ""),
        ] {
            ann.visit(&path).await;
            let fields: Vec<_> = [(field, name)]
                .into_iter()
                .chain(more.into_iter().flatten())
                .collect();
            assert_eq!(
                ann.submit(&format!("{path}/{form}"), &fields).await.status,
                422,
                "{name:?}"
            );
            let message = format!("The name must be 1 to 200 printable characters{more_text}.");
            assert!(ann.page.contains(&message), "{message}: {}", ann.page);
            // It can be corrected, and the form beside it is still empty.
            let value = |field: &str| {
                let (_, input) = ann.page.split_once(&format!("name=\"{field}\"")).unwrap();
                input
                    .split('>')
                    .next()
                    .unwrap()
                    .contains(&format!("value=\"{name}\""))
            };
            assert_eq!(
                (value("key_name"), value("new_name")),
                (form == "keys", form == "rotate"),
                "{name:?}"
            );
            let overlap = if form == "keys" { "1d" } else { "none" };
            assert!(
                ann.page.contains(&format!("value=\"{overlap}\" selected")),
                "{name:?}"
            );
        }
    }
    assert_eq!(world.rows("SELECT count(*) FROM keys"), ["1"]);
    ann.visit(&path).await;
    ann.submit(&format!("{path}/keys"), &[("key_name", "<b>Station</b>")])
        .await;
    ann.visit(&path).await;
    assert!(ann.page.contains("&lt;b&gt;Station&lt;/b&gt;") && !ann.page.contains("<b>Station"));
    ann.submit(&format!("{path}/close"), &[("confirm", "yes")])
        .await;
    assert_eq!(
        world.rows("SELECT count(*) FROM keys WHERE name IS NOT NULL"),
        ["0"]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_forms_sent_at_the_same_time_one_creates_a_key() {
    let world = World::with_sign_up("").await;
    let mut ann = Browser::signed_in(&world, "ann@example.org").await;
    let (path, _) = ann.create("One").await;
    for (form, fields, keys) in [
        ("keys", "", "2"),
        ("rotate", "&overlap=7d&replace=yes", "3"),
    ] {
        ann.visit(&path).await;
        let body = format!(
            "csrf={}&existing={}{fields}",
            ann.csrf(),
            ann.hidden("existing")
        );
        let request = ann.request("POST", &format!("{path}/{form}"), Some(&body));
        // Each request is complete but for its last byte before the first one is complete.
        let address = world.address();
        let all_wait = Arc::new(Barrier::new(8));
        let sent = (0..8).map(|_| {
            let request = request.clone();
            let all_wait = Arc::clone(&all_wait);
            tokio::spawn(async move {
                let mut connection = Connection::open(address).await;
                let (last, rest) = request.split_last().unwrap();
                connection.write(rest).await;
                all_wait.wait().await;
                connection.write(&[*last]).await;
                let response = connection.read(false).await.expect("a response");
                (response.status, String::from_utf8(response.body).unwrap())
            })
        });
        let mut statuses = Vec::new();
        for sent in join_all(sent).await {
            let (status, page) = sent.unwrap();
            assert_eq!(
                status == 422,
                page.contains("The keys have changed since this page was opened"),
                "{page}"
            );
            statuses.push(status);
        }
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 422, 422, 422, 422, 422, 422, 422], "{form}");
        assert_eq!(world.rows("SELECT count(*) FROM keys"), [keys]);
    }
}
