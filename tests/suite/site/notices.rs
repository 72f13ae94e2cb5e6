//! Notices to owners by mail.

use std::time::Duration;

use scoregate_base::{
    keys::ApplicationId,
    limits::{LimitChanges, LimitSetting},
};

use serde_json::json;

use super::browser::Browser;
use crate::world::World;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);

/// The ids of the queued notices whose id begins with `kind`.
fn notices(world: &World, kind: &str) -> Vec<String> {
    world.rows(&format!(
        "SELECT id FROM notices WHERE id LIKE '{kind}%' ORDER BY at, id"
    ))
}

/// Lets the background tasks run until these notices are queued.
async fn until(world: &World, kind: &str, expected: &[String]) {
    for _ in 0..1_000 {
        if notices(world, kind) == expected {
            return;
        }
        world.pass(SECOND);
        tokio::task::yield_now().await;
    }
    assert_eq!(notices(world, kind), expected);
}

/// Subject, text and HTML of the newest mail of a kind, for its recipient.
fn newest(world: &World, kind: &str) -> String {
    mail_where(world, &format!("kind = '{kind}'"))
}

/// The newest mail that matches this condition.
fn mail_where(world: &World, condition: &str) -> String {
    let columns = "recipient || ' ' || message_id || ' ' || subject || ' ' || text || ' ' || html";
    world.rows(&format!(
        "SELECT replace({columns}, char(10), ' ') FROM mail_queue WHERE {condition} ORDER BY created_at DESC LIMIT 1"
    )).pop().unwrap_or_default()
}

fn id_of(path: &str) -> ApplicationId {
    path.rsplit('/').next().unwrap().parse().unwrap()
}

/// The statuses of requests on one connection. The clock does not advance meanwhile, because the connection would be
/// closed.
async fn statuses(world: &World, key: &str, requests: usize) -> Vec<u16> {
    let request = format!(
        "GET /api/v1/models HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {key}\r\n\r\n",
        world.address()
    );
    let mut connection = world.connect().await;
    let mut statuses = Vec::new();
    for _ in 0..requests {
        connection.write(request.as_bytes()).await;
        statuses.push(connection.read(false).await.expect("a response").status);
    }
    statuses
}

#[tokio::test]
async fn an_owner_gets_the_chosen_notices_and_no_others() {
    let world = World::with_sign_up("").await;
    let mut ann = Browser::signed_in(&world, "ann@example.org").await;
    let (path, _) = ann.create("Station").await;
    ann.visit("/account").await;
    assert!(
        ann.page.contains("name=\"quota_80\"") && !ann.page.contains(" checked"),
        "{}",
        ann.page
    );
    assert_eq!(notices(&world, ""), [""; 0], "no notices in free tiers");

    let chosen = [
        ("key_changed", "yes"),
        ("new_sign_in", "yes"),
        ("sign_in", "yes"),
        ("quota_80", "no"),
    ];
    let saved = ann.submit("/account/notices", &chosen).await;
    assert_eq!(
        (saved.status, saved.header("location")),
        (303, "/account?done=notices")
    );
    ann.visit("/account").await;
    let checked = |name: &str| {
        ann.page
            .contains(&format!("name=\"{name}\" value=\"yes\" checked"))
    };
    assert_eq!(
        ["key_changed", "new_sign_in", "quota_80"].map(checked),
        [true, true, false]
    );
    let what = "SELECT what || ': ' || substr(detail, 18) FROM audit ORDER BY id DESC LIMIT 1";
    assert_eq!(
        world.rows(what),
        ["set_notices: notices key_changed,new_sign_in"]
    );

    ann.visit(&path).await;
    assert_eq!(
        ann.submit(&format!("{path}/keys"), &[("key_name", "")])
            .await
            .status,
        200,
        "{}",
        ann.page
    );
    let mail = newest(&world, "key_changed");
    let key = ann.key();
    assert!(
        mail.starts_with(&format!("ann@example.org key_changed.{}.", id_of(&path))),
        "{mail}"
    );
    assert!(mail.contains(&key[..12]) && !mail.contains(&key), "{mail}");
    // As text, and as a link in HTML.
    let page = format!("http://127.0.0.1:8080{path}");
    assert_eq!(mail.matches(&page).count(), 3, "{mail}");
    assert!(mail.contains(&format!("<a href=\"{page}\">")), "{mail}");

    let mut other = Browser::signed_in(&world, "ann@example.org").await;
    assert!(newest(&world, "new_sign_in").starts_with("ann@example.org new_sign_in."));
    let before = notices(&world, "");
    assert_eq!(before.len(), 2, "{before:?}");

    ann.visit("/account").await;
    ann.submit("/account/notices", &[]).await;
    ann.visit(&path).await;
    ann.submit(&format!("{path}/close"), &[("confirm", "yes")])
        .await;
    other.sign_in("ann@example.org").await;
    assert_eq!(notices(&world, ""), before);
    assert_eq!(
        world.rows("SELECT '[' || notices || ']' FROM owners"),
        ["[]"],
        "the owner chose no notices"
    );
}

#[tokio::test]
async fn the_notice_of_80_percent_is_queued_before_83_percent_are_used_at_a_request_a_second() {
    let world = World::with_sign_up("site.tier = \"pro\"\n").await;
    let mut ann = Browser::signed_in(&world, "ann@example.org").await;
    let (path, key) = ann.create("Station").await;
    for _ in 0..130 {
        assert_eq!(statuses(&world, &key, 60).await, [200; 60]);
        world.pass(MINUTE);
    }
    let mut used = 60 * 130;
    let expected = format!("quota_80.{}.day.2026-11-21", id_of(&path));
    let is_queued = || notices(&world, "quota_80").contains(&expected);
    assert!(!is_queued(), "{used}");
    while !is_queued() && used < 8_300 {
        assert_eq!(statuses(&world, &key, 1).await, [200]);
        used += 1;
        world.pass(SECOND);
        tokio::task::yield_now().await;
    }
    assert!((8_000..8_300).contains(&used), "{used}");
    let mail = newest(&world, "quota_80");
    assert!(
        mail.contains("80 % of the daily quota is used")
            && mail.contains(" of 10000 requests have been used since 2026-11-21 "),
        "{mail}"
    );
}

#[tokio::test]
async fn a_day_has_one_notice_of_its_first_refusal() {
    let world = World::with_sign_up("site.tier = \"pro\"\n").await;
    let mut ann = Browser::signed_in(&world, "ann@example.org").await;
    let (path, key) = ann.create("Station").await;
    let id = id_of(&path);
    let registrar = &world.running.registrar;
    let ten = LimitChanges::default().with(LimitSetting::Day, 10);
    registrar.set_limits("test", id, ten, None).await.unwrap();
    assert_eq!(notices(&world, "").len(), 1, "the key was created");
    let mut expected: Vec<String> = Vec::new();
    for day in ["2026-11-21", "2026-11-22"] {
        assert_eq!(
            statuses(&world, &key, 11).await,
            [[200; 10].as_slice(), &[429]].concat()
        );
        expected.push(format!("quota_100.{id}.day.{day}"));
        until(&world, "quota_100", &expected).await;
        for _ in 0..5 {
            world.pass(MINUTE);
            assert_eq!(statuses(&world, &key, 1).await, [429]);
            assert_eq!(notices(&world, "quota_100"), expected, "once a day");
        }
        let mail = newest(&world, "quota_100");
        assert!(
            mail.contains("all of the daily quota is used")
                && mail.contains(&format!(
                    "10 of 10 requests have been used since {day} 00:00 UTC"
                )),
            "{mail}"
        );
        world.pass(24 * HOUR);
    }
}

#[tokio::test]
async fn a_month_and_the_pool_of_an_account_have_notices_with_their_reset() {
    let world =
        World::with_sign_up("site.tier = \"pro\"\nadmin.token = \"a-token-of-the-side-port\"\n")
            .await;
    let mut ann = Browser::signed_in(&world, "ann@example.org").await;
    let (path, key) = ann.create("Station").await;
    let id = id_of(&path);
    let owner = world.rows("SELECT id FROM owners").remove(0);
    let month = LimitChanges::default().with(LimitSetting::Month, 10);
    let registrar = &world.running.registrar;
    registrar.set_limits("test", id, month, None).await.unwrap();
    world.set_account(&owner, &json!({"owner_month": 12})).await;
    assert_eq!(
        statuses(&world, &key, 11).await,
        [[200; 10].as_slice(), &[429]].concat()
    );
    let of_month = format!("quota_100.{id}.month.2026-11-01");
    until(&world, "quota_100", &[of_month]).await;
    let mail = newest(&world, "quota_100");
    for words in [
        "all of the monthly quota is used",
        "10 of 10 requests have been used since 2026-11-01 00:00 UTC",
        "with the limit `month` until 2026-12-01T00:00:00Z",
    ] {
        assert!(mail.contains(words), "{mail}");
    }
    let of_owner = format!("quota_80.{owner}.owner_month.2026-11-01");
    // The sweep before the one that detects the refusal may also have queued a notice about 80 % of the monthly quota.
    let mut mail_of_owner = String::new();
    for _ in 0..1_000 {
        mail_of_owner = mail_where(&world, &format!("message_id LIKE '{of_owner}%'"));
        if !mail_of_owner.is_empty() {
            break;
        }
        world.pass(SECOND);
        tokio::task::yield_now().await;
    }
    let mail = mail_of_owner;
    assert!(
        mail.contains("of all applications of your account"),
        "{mail}"
    );
}
