//! Email links: recipients, content, and use.

use std::time::Duration;

use super::browser::Browser;
use crate::world::World;

#[tokio::test]
async fn known_and_unknown_addresses_get_the_same_answer() {
    let world = World::with_sign_up("").await;
    Browser::of(&world).sign_in("ann@example.org").await;
    let mut answers = Vec::new();
    for email in ["ann@example.org", "bob@example.org"] {
        let mut browser = Browser::of(&world);
        browser.visit("/account/sign-in").await;
        let sent = browser
            .submit("/account/sign-in", &[("email", email)])
            .await;
        let differs = ["date", "x-request-id"];
        let fields = sent
            .headers
            .iter()
            .filter(|(name, _)| !differs.contains(&name.as_str()));
        // The addresses have equal length, so that the pages have equal length.
        let fields: Vec<_> = fields.cloned().collect();
        answers.push((sent.status, fields, browser.page.replace(email, "ADDRESS")));
    }
    assert_eq!(answers[0], answers[1]);
    let mails = |email: &str| {
        let token = world.links(email).pop().unwrap();
        let text = world.rows(&format!(
            "SELECT subject || replace(text || html, char(10), ' ') FROM mail_queue WHERE recipient = '{email}' ORDER BY created_at DESC LIMIT 1"
        ));
        text[0].replace(&token, "TOKEN").replace(email, "ADDRESS")
    };
    assert_eq!(mails("ann@example.org"), mails("bob@example.org"));
}

#[tokio::test]
async fn a_new_account_queues_a_message_to_the_operator_without_its_address() {
    let operator = "operator.webhook = \"http://ops/\"\noperator.webhook_secret = \"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\"\n";
    let world = World::with_sign_up(operator).await;
    for _ in 0..2 {
        Browser::of(&world).sign_in("ann@example.org").await;
    }
    let told =
        world.rows("SELECT message_id || ' ' || text FROM mail_queue WHERE recipient = 'operator'");
    let owner = world.rows("SELECT id FROM owners").remove(0);
    assert_eq!(told.len(), 1);
    assert!(
        told[0].starts_with(&format!(
            "sign_up.{owner}@operator {{\"data\":{{\"owner\":\"{owner}\"}},"
        )),
        "{told:?}"
    );
    assert!(
        told[0].ends_with("\"type\":\"sign_up\"}") && !told[0].contains("ann@"),
        "{told:?}"
    );
}

#[tokio::test]
async fn a_link_is_used_once() {
    let world = World::with_sign_up("").await;
    let mut ann = Browser::of(&world);
    let mut other = Browser::of(&world);
    let token = ann.request_link("ann@example.org").await;
    assert_eq!(ann.use_link(&token).await.status, 303);
    let target = format!("/account/confirm?token={token}");
    assert_eq!(other.open(&target).await.status, 410);
    other.visit("/account/sign-in").await;
    let replayed = other.submit("/account/confirm", &[("token", &token)]).await;
    assert_eq!(replayed.status, 410);
    assert!(!other.cookies.contains_key("scoregate-session"));
    let invalid = "scoregate_sign_ins_total{result=\"invalid_link\"}";
    assert_eq!(world.counted(invalid).await, 2);
}

#[tokio::test]
async fn a_program_that_opens_links_does_not_use_them() {
    let world = World::with_sign_up("").await;
    let mut ann = Browser::of(&world);
    let token = ann.request_link("ann@example.org").await;
    let target = format!("/account/confirm?token={token}");
    for _ in 0..5 {
        let mut scanner = Browser::of(&world);
        assert_eq!(scanner.open(&target).await.status, 200);
        assert_eq!(scanner.send("HEAD", &target, None).await.status, 200);
    }
    assert_eq!(world.rows("SELECT count(*) FROM owners"), ["0"]);
    assert_eq!(ann.use_link(&token).await.header("location"), "/account");
}

#[tokio::test]
async fn a_link_expires_after_fifteen_minutes() {
    let world = World::with_sign_up("").await;
    let mut ann = Browser::of(&world);
    let token = ann.request_link("ann@example.org").await;
    let target = format!("/account/confirm?token={token}");
    world.pass(Duration::from_secs(15 * 60 - 1));
    assert_eq!(ann.open(&target).await.status, 200);
    world.pass(Duration::from_secs(1));
    assert_eq!(ann.open(&target).await.status, 410);
}

#[tokio::test]
async fn new_owners_accept_the_terms_and_all_do_after_a_change() {
    let world = World::with_sign_up("").await;
    let mut ann = Browser::of(&world);
    let token = ann.request_link("ann@example.org").await;
    ann.visit(&format!("/account/confirm?token={token}")).await;
    assert!(ann.page.contains("must be cited as the source"));
    for fields in [
        vec![("token", token.as_str())],
        vec![("token", token.as_str()), ("accept_terms", "yes")],
        vec![
            ("token", token.as_str()),
            ("accept_terms", "yes"),
            ("terms_version", "0"),
        ],
    ] {
        let refused = ann.submit("/account/confirm", &fields).await;
        assert_eq!(refused.status, 422, "{fields:?}");
    }
    assert_eq!(world.rows("SELECT count(*) FROM owners"), ["0"]);
    assert_eq!(ann.use_link(&token).await.status, 303);
    let accepted = "SELECT terms_version, terms_accepted_at = created_at FROM owners";
    assert_eq!(world.rows(accepted), ["1|1"]);

    let world = world
        .restarted_with("site.terms_version = \"2\"\nsite.terms = [\"Be <kind>.\"]")
        .await;
    let mut ann = Browser::of(&world);
    let token = ann.request_link("ann@example.org").await;
    ann.visit(&format!("/account/confirm?token={token}")).await;
    assert!(ann.page.contains("Be &lt;kind&gt;."));
    assert_eq!(
        ann.submit("/account/confirm", &[("token", &token)])
            .await
            .status,
        422
    );
    assert_eq!(ann.use_link(&token).await.status, 303);
    assert_eq!(world.rows("SELECT terms_version FROM owners"), ["2"]);
    let token = ann.request_link("ann@example.org").await;
    ann.visit(&format!("/account/confirm?token={token}")).await;
    assert!(!ann.page.contains("accept_terms"));
}

#[tokio::test]
async fn addresses_that_differ_in_case_or_tag_sign_in_to_one_account() {
    let world = World::with_sign_up("").await;
    Browser::of(&world).sign_in("ann@example.org").await;
    let mut tagged = Browser::of(&world);
    tagged.visit("/account/sign-in").await;
    tagged
        .submit("/account/sign-in", &[("email", "Ann+news@Example.org")])
        .await;
    assert!(
        tagged.page.contains("Ann+news@Example.org"),
        "the page does not reveal the address of the account"
    );
    assert!(
        world.links("Ann+news@Example.org").is_empty(),
        "the tag may be the mailbox of someone else"
    );
    let token = world.links("ann@example.org").pop().unwrap();
    assert_eq!(tagged.use_link(&token).await.status, 303);
    assert_eq!(world.rows("SELECT email FROM owners"), ["ann@example.org"]);
    for (result, count) in [("signed_up", 1), ("signed_in", 1)] {
        let series = format!("scoregate_sign_ins_total{{result=\"{result}\"}}");
        assert_eq!(world.counted(&series).await, count, "{result}");
    }
}

#[tokio::test]
async fn unusable_addresses_and_domains_are_refused_with_the_reason() {
    let world = World::with_sign_up("site.denied_mail_domains = [\"spam.example\"]").await;
    let mut ann = Browser::of(&world);
    ann.visit("/account/sign-in").await;
    for (email, words) in [
        ("", "Enter an email address"),
        ("ann", "Enter an email address"),
        ("änn@example.org", "Enter an address in ASCII"),
        (
            "ann@mail.spam.example",
            "Addresses of this domain are not accepted",
        ),
    ] {
        let refused = ann.submit("/account/sign-in", &[("email", email)]).await;
        assert_eq!(refused.status, 422, "{email}");
        assert!(ann.page.contains(words), "{email}: {}", ann.page);
    }
    assert_eq!(world.rows("SELECT count(*) FROM mail_queue"), ["0"]);
    assert_eq!(
        world
            .counted("scoregate_sign_in_links_total{result=\"domain\"}")
            .await,
        1
    );
}

#[tokio::test]
async fn a_suspended_account_cannot_sign_in_and_its_sessions_end() {
    let world = World::with_sign_up("").await;
    let mut ann = Browser::signed_in(&world, "ann@example.org").await;
    let (_, key) = ann.create("One").await;
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
        .suspend("test", owner)
        .await
        .unwrap();
    assert_eq!(world.get_by(&key, "/api/v1/me").await.status, 401);
    assert_eq!(ann.visit("/account").await, "/account/sign-in");
    let token = ann.request_link("ann@example.org").await;
    assert_eq!(ann.use_link(&token).await.status, 403);
    assert!(ann.page.contains("suspended"));
    assert_eq!(ann.visit("/account").await, "/account/sign-in");
    world
        .running
        .keys
        .administration
        .owners
        .resume("test", owner)
        .await
        .unwrap();
    ann.sign_in("ann@example.org").await;
}
