//! Sessions: how they begin and end, and what they protect.

use std::time::Duration;

use super::browser::Browser;
use crate::world::World;

#[tokio::test]
async fn a_session_is_stored_as_a_digest_and_ends_after_twelve_hours() {
    let world = World::with_sign_up("").await;
    let mut ann = Browser::of(&world);
    ann.sign_in("ann@example.org").await;
    let token = ann.cookies["scoregate-session"].clone();
    let dump = world.rows("SELECT hex(digest) FROM owner_sessions UNION SELECT text FROM mail_queue");
    assert!(!dump.iter().any(|row| row.contains(&token)), "a session's token is stored");
    world.pass(Duration::from_secs(12 * 3_600 - 1));
    assert_eq!(ann.visit("/account").await, "/account");
    world.pass(Duration::from_secs(1));
    assert_eq!(ann.visit("/account").await, "/account/sign-in");
}

#[tokio::test]
async fn a_sign_out_ends_the_session_and_one_everywhere_ends_all() {
    let world = World::with_sign_up("").await;
    let (mut phone, mut laptop) = (Browser::of(&world), Browser::of(&world));
    phone.sign_in("ann@example.org").await;
    laptop.sign_in("ann@example.org").await;
    let copied = laptop.cookies.clone();
    assert_eq!(
        laptop.submit("/account/sign-out", &[]).await.header("location"),
        "/account/sign-in?done=signed-out"
    );
    laptop.cookies = copied;
    assert_eq!(laptop.visit("/account").await, "/account/sign-in", "the session ended, not the cookie only");
    laptop.cookies.clear();
    laptop.sign_in("ann@example.org").await;
    assert_eq!(phone.visit("/account").await, "/account");
    let everywhere = phone.submit("/account/sign-out", &[("everywhere", "yes")]).await;
    assert_eq!(everywhere.header("location"), "/account/sign-in?done=signed-out-everywhere");
    assert_eq!(laptop.visit("/account").await, "/account/sign-in");
}

#[tokio::test]
async fn steps_that_cannot_be_undone_need_a_recent_session() {
    let world = World::with_sign_up("").await;
    let mut ann = Browser::of(&world);
    ann.sign_in("ann@example.org").await;
    let (path, key) = ann.create("One").await;
    world.pass(Duration::from_mins(15));
    ann.visit(&path).await;
    let digest = ann.hidden("key");
    for (target, fields) in [
        (format!("{path}/revoke"), vec![("key", digest.as_str())]),
        (format!("{path}/rotate"), vec![("overlap", "none")]),
        (format!("{path}/close"), vec![("confirm", "yes")]),
        ("/account/delete".into(), vec![("confirm", "yes")]),
    ] {
        ann.visit(&path).await;
        assert_eq!(ann.submit(&target, &fields).await.status, 403, "{target}");
        assert!(ann.page.contains("action=\"/account/sign-in\""), "{}", ann.page);
    }
    assert_eq!(world.get("/api/v1/me").key(&key).send().await.status, 200);
    // The page has a form that sends a link.
    let before = world.links("ann@example.org").len();
    let sent = ann.submit("/account/sign-in", &[("email", &ann.hidden("email"))]).await;
    assert_eq!((sent.status, world.links("ann@example.org").len()), (200, before + 1));
    // What can be undone needs none.
    ann.visit(&path).await;
    assert_eq!(ann.submit(&format!("{path}/rotate"), &[("overlap", "1d")]).await.status, 200);
}

#[tokio::test]
async fn signing_in_again_replaces_the_session() {
    let world = World::with_sign_up("").await;
    let mut ann = Browser::of(&world);
    ann.sign_in("ann@example.org").await;
    let before = ann.cookies.clone();
    ann.visit("/account").await;
    let sent = ann.submit("/account/sign-in", &[("email", "ann@example.org")]).await;
    assert_eq!(sent.status, 200);
    let token = world.links("ann@example.org").pop().unwrap();
    assert_eq!(ann.use_link(&token).await.status, 303);
    assert_ne!(before["scoregate-session"], ann.cookies["scoregate-session"]);
    let mut thief = Browser { cookies: before, ..Browser::of(&world) };
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
        assert!(cookie.split("; ").any(|part| part == attribute), "{attribute}: {cookie}");
    }
    assert!(page.header("strict-transport-security").contains("max-age="));
    ann.sign_in("ann@example.org").await;
    assert!(ann.cookies.contains_key("__Host-scoregate-session"));
    ann.fields.clear();
    ann.fields.push(("X-Forwarded-Proto", "http".into()));
    let in_clear_text = ann.open("/account").await;
    assert_eq!(in_clear_text.status, 403);
    assert!(in_clear_text.headers.iter().all(|(name, _)| name != "strict-transport-security"));
}
