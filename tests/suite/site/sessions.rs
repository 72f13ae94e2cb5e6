//! Sessions: start, end, and the actions that require one.

use std::time::Duration;

use super::browser::Browser;
use crate::world::World;

#[tokio::test]
async fn a_session_is_stored_as_a_digest_and_ends_after_twelve_hours() {
    let world = World::with_sign_up("").await;
    let mut ann = Browser::signed_in(&world, "ann@example.org").await;
    let token = ann.cookies["scoregate-session"].clone();
    let dump =
        world.rows("SELECT hex(digest) FROM owner_sessions UNION SELECT text FROM mail_queue");
    assert!(
        !dump.iter().any(|row| row.contains(&token)),
        "a session's token is stored"
    );
    world.pass(Duration::from_secs(12 * 3_600 - 1));
    assert_eq!(ann.visit("/account").await, "/account");
    world.pass(Duration::from_secs(1));
    assert_eq!(ann.visit("/account").await, "/account/sign-in");
}

#[tokio::test]
async fn a_sign_out_ends_the_session_and_one_everywhere_ends_all() {
    let world = World::with_sign_up("").await;
    let mut phone = Browser::signed_in(&world, "ann@example.org").await;
    let mut laptop = Browser::of(&world);
    laptop.sign_in("ann@example.org").await;
    let copied = laptop.cookies.clone();
    assert_eq!(
        laptop
            .submit("/account/sign-out", &[])
            .await
            .header("location"),
        "/account/sign-in?done=signed-out"
    );
    laptop.cookies = copied;
    assert_eq!(
        laptop.visit("/account").await,
        "/account/sign-in",
        "the session ended, not just the cookie"
    );
    laptop.cookies.clear();
    laptop.sign_in("ann@example.org").await;
    assert_eq!(phone.visit("/account").await, "/account");
    let everywhere = phone
        .submit("/account/sign-out", &[("everywhere", "yes")])
        .await;
    assert_eq!(
        everywhere.header("location"),
        "/account/sign-in?done=signed-out-everywhere"
    );
    assert_eq!(laptop.visit("/account").await, "/account/sign-in");
}

#[tokio::test]
async fn steps_that_cannot_be_undone_need_a_recent_session() {
    let world = World::with_sign_up("").await;
    let mut ann = Browser::signed_in(&world, "ann@example.org").await;
    let (path, key) = ann.create("One").await;
    world.pass(Duration::from_mins(15));
    ann.visit(&path).await;
    let digest = ann.hidden("key");
    for (target, fields) in [
        (format!("{path}/revoke"), vec![("key", digest.as_str())]),
        (
            format!("{path}/rotate"),
            vec![("overlap", "none"), ("replace", "yes")],
        ),
        (format!("{path}/close"), vec![("confirm", "yes")]),
        ("/account/delete".into(), vec![("confirm", "yes")]),
    ] {
        ann.visit(&path).await;
        assert_eq!(ann.submit(&target, &fields).await.status, 403, "{target}");
        assert!(
            ann.page.contains("action=\"/account/sign-in\""),
            "{}",
            ann.page
        );
    }
    assert_eq!(world.get_by(&key, "/api/v1/me").await.status, 200);
    // The page has a form that sends a link.
    let links = || {
        world
            .rows("SELECT count(*) FROM sign_in_links")
            .pop()
            .unwrap()
    };
    assert_eq!(links(), "1");
    let sent = ann
        .submit("/account/sign-in", &[("email", &ann.hidden("email"))])
        .await;
    assert_eq!((sent.status, links().as_str()), (200, "2"));
    // Actions that can be undone do not need a recent session.
    ann.visit(&path).await;
    let replaced = ann
        .submit(
            &format!("{path}/rotate"),
            &[("overlap", "1d"), ("replace", "yes")],
        )
        .await;
    assert_eq!(replaced.status, 200);
    ann.visit(&path).await;
    assert_eq!(
        ann.submit(&format!("{path}/keep"), &[("key", &digest)])
            .await
            .status,
        303
    );
    ann.visit(&path).await;
    assert_eq!(ann.submit(&format!("{path}/keys"), &[]).await.status, 200);
}

#[tokio::test]
async fn an_owner_who_is_signed_in_gets_links_after_others_used_up_those_of_the_mailbox() {
    let world = World::with_sign_up("").await;
    let mut ann = Browser::signed_in(&world, "Ann+x@example.org").await;
    let mut mallory = Browser::of(&world);
    let (path, key) = ann.create("One").await;
    mallory.sign_in("mallory@example.org").await;
    world.pass(Duration::from_mins(61));
    let hour = world
        .rows("SELECT max(created_at) FROM sign_in_links")
        .pop()
        .unwrap();
    let sent = || {
        let mailbox = "mailbox = 'ann@example.org'";
        let query =
            format!("SELECT count(*) FROM sign_in_links WHERE {mailbox} AND created_at > {hour}");
        world.rows(&query).pop().unwrap()
    };
    // A session of another account allows no more links than no session.
    for _ in 0..7 {
        mallory.visit("/account").await;
        assert_eq!(
            mallory
                .submit("/account/sign-in", &[("email", "ann@example.org")])
                .await
                .status,
            200
        );
    }
    assert_eq!(sent(), "5");

    ann.visit(&path).await;
    let digest = ann.hidden("key");
    assert_eq!(
        ann.submit(&format!("{path}/revoke"), &[("key", &digest)])
            .await
            .status,
        403
    );
    let email = ann.hidden("email");
    assert_eq!(
        ann.submit("/account/sign-in", &[("email", &email)])
            .await
            .status,
        200
    );
    assert_eq!(sent(), "6");
    let token = world.links("Ann+x@example.org").pop().unwrap();
    assert_eq!(ann.use_link(&token).await.status, 303);
    ann.visit(&path).await;
    ann.submit(&format!("{path}/revoke"), &[("key", &digest)])
        .await;
    assert_eq!(world.get_by(&key, "/api/v1/me").await.status, 401);
    // These links are limited too, and expire with the session.
    for _ in 0..6 {
        ann.visit("/account").await;
        ann.submit("/account/sign-in", &[("email", "ann@example.org")])
            .await;
    }
    assert_eq!(sent(), "10");
    world.pass(Duration::from_hours(12));
    ann.visit("/account/sign-in").await;
    assert!(
        ann.cookies.contains_key("scoregate-session"),
        "the test would prove nothing"
    );
    for _ in 0..7 {
        ann.submit("/account/sign-in", &[("email", "ann@example.org")])
            .await;
        ann.visit("/account/sign-in").await;
    }
    assert_eq!(sent(), "15");
}

#[tokio::test]
async fn signing_in_again_replaces_the_session() {
    let world = World::with_sign_up("").await;
    let mut ann = Browser::signed_in(&world, "ann@example.org").await;
    let before = ann.cookies.clone();
    ann.visit("/account").await;
    let sent = ann
        .submit("/account/sign-in", &[("email", "ann@example.org")])
        .await;
    assert_eq!(sent.status, 200);
    let token = world.links("ann@example.org").pop().unwrap();
    assert_eq!(ann.use_link(&token).await.status, 303);
    assert_ne!(
        before["scoregate-session"],
        ann.cookies["scoregate-session"]
    );
    let mut thief = Browser {
        cookies: before,
        ..Browser::of(&world)
    };
    assert_eq!(thief.visit("/account").await, "/account/sign-in");
}

#[tokio::test]
async fn cookies_are_bound_to_the_host_over_https() {
    let proxied = "service.base_url = \"https://api.example\"\nproxies.trusted = [\"127.0.0.1\"]";
    let world = World::with_sign_up(proxied).await;
    let mut ann = Browser::of(&world);
    ann.fields.push(("X-Forwarded-Proto", "https".into()));
    let page = ann.open("/account/sign-in").await;
    let cookie = page.header("set-cookie");
    assert!(cookie.starts_with("__Host-scoregate-visitor="), "{cookie}");
    for attribute in ["Path=/", "HttpOnly", "SameSite=Lax", "Secure"] {
        assert!(
            cookie.split("; ").any(|part| part == attribute),
            "{attribute}: {cookie}"
        );
    }
    assert!(
        page.header("strict-transport-security")
            .contains("max-age=")
    );
    ann.sign_in("ann@example.org").await;
    assert!(ann.cookies.contains_key("__Host-scoregate-session"));
    ann.fields.clear();
    ann.fields.push(("X-Forwarded-Proto", "http".into()));
    let in_clear_text = ann.open("/account").await;
    assert_eq!(in_clear_text.status, 403);
    assert!(
        in_clear_text
            .headers
            .iter()
            .all(|(name, _)| name != "strict-transport-security")
    );
}
