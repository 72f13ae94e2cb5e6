//! Attacks on the pages of accounts.

use std::time::Duration;

use scoregate_base::keys::ApplicationId;

use super::browser::Browser;
use crate::world::World;

/// A trusted proxy in front, so that a test can send requests from many networks.
const PROXIED: &str = "proxies.trusted = [\"127.0.0.1\"]\n";

impl Browser<'_> {
    /// Sets the client address of the browser.
    fn moved_to(&mut self, network: u32) {
        let address = std::net::Ipv4Addr::from_bits(0x0a00_0000 + network);
        self.fields.retain(|(name, _)| *name != "X-Forwarded-For");
        self.fields.push(("X-Forwarded-For", address.to_string()));
    }
}

#[tokio::test]
async fn a_mailbox_gets_five_mails_an_hour_from_any_number_of_networks() {
    let world = World::with_sign_up(PROXIED).await;
    let mut robot = Browser::of(&world);
    for number in 0..100 {
        robot.moved_to(number);
        robot.visit("/account/sign-in").await;
        let email = format!("Ann+{number}@example.org");
        let sent = robot.submit("/account/sign-in", &[("email", &email)]).await;
        assert_eq!(
            sent.status, 200,
            "the response does not reveal that the mailbox has reached its mail limit"
        );
    }
    let bombed = "SELECT count(*) FROM mail_queue";
    assert_eq!(world.rows(bombed), ["5"]);
    assert_eq!(
        world
            .counted("scoregate_sign_in_links_total{result=\"mailbox_limit\"}")
            .await,
        95
    );
    world.pass(Duration::from_hours(1));
    robot.visit("/account/sign-in").await;
    robot
        .submit("/account/sign-in", &[("email", "ann@example.org")])
        .await;
    assert_eq!(world.links("ann@example.org").len(), 1);
}

#[tokio::test]
async fn tokens_cannot_be_guessed() {
    let world = World::with_sign_up("").await;
    let mut ann = Browser::of(&world);
    let token = ann.request_link("ann@example.org").await;
    let mut guesser = Browser::of(&world);
    let one_off = format!(
        "{}{}",
        &token[..42],
        if token.ends_with('A') { 'B' } else { 'A' }
    );
    let digest = world
        .rows("SELECT lower(hex(digest)) FROM sign_in_links")
        .pop()
        .unwrap();
    for guess in [
        "",
        "A",
        &"A".repeat(43),
        &one_off,
        &token[..42],
        &token.to_lowercase(),
        &digest,
        "%00",
        "' OR 1=1 --",
    ] {
        let guess = form_urlencoded::byte_serialize(guess.as_bytes()).collect::<String>();
        assert_eq!(
            guesser
                .open(&format!("/account/confirm?token={guess}"))
                .await
                .status,
            410,
            "{guess}"
        );
    }
    let mut refused = 0;
    for _ in 0..300 {
        refused += u32::from(guesser.open("/account/confirm?token=guess").await.status == 429);
    }
    assert!(
        refused >= 60,
        "{refused} of 300 guesses in a moment were refused"
    );
    assert_eq!(
        world
            .counted("scoregate_sign_ins_total{result=\"signed_up\"}")
            .await,
        0
    );
}

#[tokio::test]
async fn a_session_that_an_attacker_planted_is_not_adopted() {
    let world = World::with_sign_up("").await;
    let mut mallory = Browser::signed_in(&world, "mallory@example.org").await;
    let planted = mallory.cookies["scoregate-session"].clone();
    let mut ann = Browser::of(&world);
    let token = ann.request_link("ann@example.org").await;
    ann.visit(&format!("/account/confirm?token={token}")).await;
    ann.cookies
        .insert("scoregate-session".into(), planted.clone());
    let version = ann.hidden("terms_version");
    let fields = [
        ("token", token.as_str()),
        ("accept_terms", "yes"),
        ("terms_version", &version),
    ];
    assert_eq!(ann.submit("/account/confirm", &fields).await.status, 303);
    assert_ne!(ann.cookies["scoregate-session"], planted);
    assert_eq!(
        mallory.visit("/account").await,
        "/account/sign-in",
        "the planted session has ended"
    );
    // An invented token does not become a session either.
    let mut made_up = Browser::of(&world);
    made_up
        .cookies
        .insert("scoregate-session".into(), "A".repeat(43));
    assert_eq!(made_up.visit("/account").await, "/account/sign-in");
}

#[tokio::test]
async fn forms_of_other_sites_change_nothing() {
    let world = World::with_sign_up("").await;
    let mut ann = Browser::signed_in(&world, "ann@example.org").await;
    let mut mallory = Browser::of(&world);
    let (path, key) = ann.create("One").await;
    ann.visit(&path).await;
    let own = ann.csrf();
    let digest = ann.hidden("key");
    mallory.sign_in("mallory@example.org").await;
    let foreign = mallory.csrf();
    let targets = [
        ("/account/delete".to_owned(), ("confirm", "yes")),
        (format!("{path}/close"), ("confirm", "yes")),
        (format!("{path}/revoke"), ("key", digest.as_str())),
        (format!("{path}/rotate"), ("overlap", "none")),
        (format!("{path}/keys"), ("key_name", "Mine")),
        (format!("{path}/keep"), ("key", digest.as_str())),
        (path.clone(), ("name", "Mine")),
        ("/account/applications".into(), ("name", "Mine")),
        ("/account/sign-out".into(), ("everywhere", "yes")),
    ];
    for (target, field) in &targets {
        world.pass(Duration::from_secs(20));
        for csrf in ["", &foreign, &own[1..], &own.to_uppercase()] {
            let sent = ann.submit_only(target, &[*field, ("csrf", csrf)]).await;
            assert_eq!(sent.status, 403, "{target} {csrf}");
        }
        for (name, value) in [
            ("Sec-Fetch-Site", "cross-site"),
            ("Sec-Fetch-Site", "same-site"),
            ("Origin", "https://evil.example"),
            ("Origin", "null"),
        ] {
            ann.fields = vec![(name, value.into())];
            let sent = ann.submit_only(target, &[*field, ("csrf", &own)]).await;
            assert_eq!(sent.status, 403, "{target} {name}: {value}");
        }
        ann.fields.clear();
    }
    assert_eq!(world.get_by(&key, "/api/v1/me").await.status, 200);
    assert_eq!(ann.visit(&path).await, path);
    // Another site can neither sign a browser in nor cause mail to be sent.
    let mut visitor = Browser::of(&world);
    let token = world.links("mallory@example.org").pop().unwrap();
    for target in ["/account/confirm", "/account/sign-in"] {
        let fields = [("token", token.as_str()), ("email", "eve@example.org")];
        assert_eq!(
            visitor.submit_only(target, &fields).await.status,
            403,
            "{target}"
        );
    }
    assert!(world.links("eve@example.org").is_empty());
}

#[tokio::test]
async fn applications_of_others_are_unknown() {
    let world = World::with_sign_up("").await;
    let mut ann = Browser::signed_in(&world, "ann@example.org").await;
    let mut mallory = Browser::of(&world);
    let (path, key) = ann.create("One").await;
    ann.visit(&path).await;
    let digest = ann.hidden("key");
    mallory.sign_in("mallory@example.org").await;
    let mut answers = Vec::new();
    let nobody = format!("/account/applications/{}", ApplicationId::mint().unwrap());
    for target in [&path, &nobody] {
        answers.push((mallory.open(target).await.status, mallory.page.clone()));
        for (form, field) in [
            ("", ("name", "Mine")),
            ("/rotate", ("overlap", "none")),
            ("/keys", ("key_name", "Mine")),
            ("/keep", ("key", digest.as_str())),
            ("/revoke", ("key", digest.as_str())),
            ("/close", ("confirm", "yes")),
        ] {
            mallory.visit("/account").await;
            let sent = mallory.submit(&format!("{target}{form}"), &[field]).await;
            assert_eq!(sent.status, 404, "{target}{form}");
        }
    }
    assert_eq!(answers[0], answers[1]);
    assert_eq!(world.get_by(&key, "/api/v1/me").await.status, 200);
    // A key of another application cannot be revoked through one's own application either.
    let (own, _) = mallory.create("Own").await;
    mallory.visit(&own).await;
    assert_eq!(
        mallory
            .submit(&format!("{own}/revoke"), &[("key", &digest)])
            .await
            .status,
        404
    );
    assert_eq!(world.get_by(&key, "/api/v1/me").await.status, 200);
}

#[tokio::test]
async fn redirects_stay_on_the_site() {
    let world = World::with_sign_up("").await;
    let mut ann = Browser::of(&world);
    for (name, value) in [
        ("Host", "evil.example"),
        ("X-Forwarded-Host", "evil.example"),
        ("Referer", "https://evil.example/"),
    ] {
        if name != "Host" {
            ann.fields.push((name, value.into()));
        }
    }
    ann.sign_in("ann@example.org").await;
    for target in [
        "/account/sign-in?next=https://evil.example",
        "/account/sign-in?done=//evil.example&return_to=//evil.example",
        "/account/sign-in?redirect=%2F%2Fevil.example",
    ] {
        let response = ann.open(target).await;
        assert_eq!(
            (response.status, response.header("location")),
            (303, "/account"),
            "{target}"
        );
    }
    for target in [
        "/account//evil.example",
        "/account/../evil",
        "/account/https://evil.example",
        "/account%2f",
    ] {
        let response = ann.open(target).await;
        assert_ne!(response.status, 303, "{target}");
        assert!(
            !ann.page.contains("evil.example\""),
            "{target}: {}",
            ann.page
        );
    }
    let signed_out = ann.open("/account?next=//evil.example").await;
    assert_eq!(signed_out.status, 200);
    ann.submit("/account/sign-out", &[("next", "https://evil.example")])
        .await;
    let response = ann.open("/account?next=//evil.example").await;
    assert_eq!(response.header("location"), "/account/sign-in");
}

#[tokio::test]
async fn links_in_mail_do_not_depend_on_the_host_of_the_request() {
    let world = World::with_sign_up("").await;
    let mut ann = Browser::of(&world);
    ann.fields = vec![
        ("X-Forwarded-Host", "evil.example".into()),
        ("Forwarded", "host=evil.example".into()),
    ];
    ann.visit("/account/sign-in").await;
    let csrf = ann.csrf();
    let body = format!("email=ann%40example.org&csrf={csrf}");
    let head = String::from_utf8(ann.request("POST", "/account/sign-in", Some(&body))).unwrap();
    let head = head.replace(&format!("Host: {}", world.address()), "Host: evil.example");
    let mut connection = world.connect().await;
    connection.write(head.as_bytes()).await;
    assert_eq!(connection.read(false).await.unwrap().status, 200);
    let text = world.rows("SELECT text || html FROM mail_queue").join("\n");
    assert!(
        text.contains("http://127.0.0.1:8080/account/confirm?token=") && !text.contains("evil"),
        "{text}"
    );
}
