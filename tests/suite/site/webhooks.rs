//! The webhooks of an owner on the account page.

use std::time::Duration;

use super::browser::Browser;
use crate::world::World;

const PATH: &str = "/account/webhooks";
const ON: &str = "site.webhooks = true\n";
const URL: &str = "https://hooks.example.org/in?a=1&b=2";

impl Browser<'_> {
    /// Sends the form of the first webhook on the account page.
    async fn change_webhook(&mut self, step: &str) -> u16 {
        self.visit("/account").await;
        let id = self.hidden("webhook");
        let rotated_at = self.hidden("rotated_at");
        self.submit(
            PATH,
            &[
                ("webhook", &id),
                ("rotated_at", &rotated_at),
                ("step", step),
            ],
        )
        .await
        .status
    }

    /// The secret on the page.
    fn secret(&self) -> String {
        let (_, rest) = self
            .page
            .split_once("<code>whsec_")
            .unwrap_or_else(|| panic!("{}", self.page));
        format!("whsec_{}", rest.split('<').next().unwrap())
    }
}

async fn signed_in(world: &World) -> Browser<'_> {
    let mut ann = Browser::of(world);
    ann.sign_in("ann@example.org").await;
    ann
}

#[tokio::test]
async fn an_owner_adds_two_webhooks_replaces_a_secret_and_removes_them() {
    let world = World::with_sign_up(ON).await;
    let mut ann = signed_in(&world).await;
    let added = ann.submit(PATH, &[("webhook_url", URL)]).await;
    assert_eq!(
        (added.status, added.header("cache-control")),
        (200, "no-store")
    );
    assert!(
        ann.page
            .contains("https://hooks.example.org/in?a=1&amp;b=2"),
        "{}",
        ann.page
    );
    let first = ann.secret();
    assert_eq!(
        world.rows("SELECT secret FROM owner_webhooks"),
        [first.as_str()]
    );
    ann.visit("/account").await;
    assert!(
        ann.page.contains("Not active") && !ann.page.contains("whsec_"),
        "{}",
        ann.page
    );

    world.rows("UPDATE owner_webhooks SET verified_at = 1");
    assert_eq!(ann.change_webhook("rotate").await, 200);
    let second = ann.secret();
    assert_ne!(first, second);
    let secrets = || world.rows("SELECT old_secret || ' ' || secret FROM owner_webhooks");
    assert_eq!(secrets(), [format!("{first} {second}")]);
    ann.visit("/account").await;
    let id = ann.hidden("webhook");
    let again = ann
        .submit(
            PATH,
            &[("webhook", &id), ("rotated_at", ""), ("step", "rotate")],
        )
        .await;
    assert_eq!(
        (again.status, again.header("location")),
        (303, "/account"),
        "the form was sent again"
    );
    assert_eq!(secrets(), [format!("{first} {second}")]);

    ann.visit("/account").await;
    assert!(
        ann.page.contains("Active.") && ann.page.contains("name=\"webhook_url\""),
        "{}",
        ann.page
    );
    assert_eq!(
        ann.submit(PATH, &[("webhook_url", "https://b.example.org:8443/")])
            .await
            .status,
        200
    );
    ann.visit("/account").await;
    assert!(!ann.page.contains("name=\"webhook_url\""), "{}", ann.page);
    let another = [("webhook_url", "https://c.example.org/")];
    let third = ann.submit(PATH, &another).await;
    assert!(
        third.status == 422 && ann.page.contains("may have two webhooks"),
        "{}",
        ann.page
    );
    for _ in 0..2 {
        assert_eq!(ann.change_webhook("remove").await, 303);
    }
    assert_eq!(world.rows("SELECT count(*) FROM owner_webhooks"), ["0"]);
    assert_eq!(
        world.rows("SELECT count(*) FROM mail_queue WHERE kind = 'webhook'"),
        ["0"]
    );

    let audited =
        "SELECT what FROM audit WHERE who LIKE 'owner:own_%' AND what LIKE '%_webhook' ORDER BY id";
    let expected = [
        "add_webhook",
        "rotate_webhook",
        "add_webhook",
        "remove_webhook",
        "remove_webhook",
    ];
    assert_eq!(world.rows(audited), expected);
    assert_eq!(
        world.rows("SELECT count(*) FROM audit WHERE detail LIKE '%whsec%' OR detail LIKE '%//%'"),
        ["0"]
    );
    assert_eq!(
        world
            .counted("scoregate_account_changes_total{change=\"change_webhook\"}")
            .await,
        5
    );
}

#[tokio::test]
async fn the_page_shows_why_a_webhook_cannot_be_contacted() {
    let world = World::with_sign_up(ON).await;
    let mut ann = signed_in(&world).await;
    ann.submit(PATH, &[("webhook_url", URL)]).await;
    // The clock has not advanced so far, so no message was sent.
    world.rows("UPDATE owner_webhooks SET url = 'https://127.0x1/'");
    let failed = || {
        world.rows("SELECT count(*) FROM mail_queue WHERE kind = 'webhook' AND last_error <> ''")
    };
    'waiting: for _ in 0..8 {
        world.pass(Duration::from_secs(1));
        for _ in 0..500 {
            if failed() == ["1"] {
                break 'waiting;
            }
            tokio::task::yield_now().await;
        }
    }
    ann.visit("/account").await;
    let reason = "The last message failed: the URL is not usable or not set.";
    assert!(
        ann.page.contains("Not active") && ann.page.contains(reason),
        "{}",
        ann.page
    );
}

#[tokio::test]
async fn urls_that_cannot_be_used_are_refused_and_nothing_is_injected() {
    let world = World::with_sign_up(ON).await;
    let mut ann = signed_in(&world).await;
    for url in [
        "",
        "http://hooks.example.org/",
        "https://127.0.0.1/",
        "https://0x7f.0x1/",
        "https://localhost./",
        "https://hooks.example.org:22/",
        "https://hooks.example.org/\"><script>alert(1)</script>",
        "https://hooks.example.org/\r\nHost: other.example",
    ] {
        ann.visit("/account").await;
        let refused = ann.submit(PATH, &[("webhook_url", url)]).await;
        assert!(
            refused.status == 422 && ann.page.contains("The URL must start with https://"),
            "{url}"
        );
        assert!(!ann.page.contains("<script"), "{}", ann.page);
    }
    ann.visit("/account").await;
    ann.submit(PATH, &[("webhook_url", URL)]).await;
    ann.visit("/account").await;
    assert_eq!(
        ann.submit(PATH, &[("webhook_url", URL)]).await.status,
        422,
        "a form that is sent again"
    );
    assert_eq!(world.rows("SELECT count(*) FROM owner_webhooks"), ["1"]);
}

#[tokio::test]
async fn an_owner_behind_changing_addresses_makes_30_changes_a_minute() {
    let proxied = format!("{ON}proxies.trusted = [\"127.0.0.1\"]\n");
    let world = World::with_sign_up(&proxied).await;
    let mut ann = signed_in(&world).await;
    ann.visit("/account").await;
    let csrf = ann.csrf();
    let mut statuses = Vec::new();
    for number in 0..40 {
        let address = format!("2001:db8:{number:x}::1");
        ann.fields = vec![("X-Forwarded-For", address)];
        let url = format!("https://hooks{number}.example.org/");
        let fields = [("webhook_url", url.as_str()), ("csrf", &csrf)];
        statuses.push(ann.submit_only(PATH, &fields).await.status);
        world.rows("DELETE FROM owner_webhooks");
    }
    let expected = [[200; 30].as_slice(), &[429; 10]].concat();
    assert_eq!(statuses, expected);
    let mut bob = Browser::signed_in(&world, "bob@example.org").await;
    bob.visit("/account").await;
    let added = bob.submit(PATH, &[("webhook_url", URL)]).await;
    assert_eq!(added.status, 200, "another owner is not affected");
}

#[tokio::test]
async fn webhooks_belong_to_their_owner_and_exist_only_if_the_service_allows_them() {
    let world = World::with_sign_up(ON).await;
    let mut ann = signed_in(&world).await;
    ann.submit(PATH, &[("webhook_url", URL)]).await;
    ann.visit("/account").await;
    let id = ann.hidden("webhook");
    let mut bob = Browser::signed_in(&world, "bob@example.org").await;
    for step in ["rotate", "remove"] {
        bob.visit("/account").await;
        let fields = [("webhook", id.as_str()), ("rotated_at", ""), ("step", step)];
        assert_eq!(bob.submit(PATH, &fields).await.status, 404, "{step}");
    }
    let forged = bob
        .submit_only(PATH, &[("webhook_url", URL), ("csrf", "x")])
        .await;
    assert_eq!(forged.status, 403);
    assert_eq!(
        world.rows("SELECT count(*) FROM owner_webhooks WHERE old_secret IS NULL"),
        ["1"]
    );

    let world = World::with_sign_up("").await;
    let mut ann = signed_in(&world).await;
    assert!(!ann.page.contains("ebhook"), "{}", ann.page);
    assert_eq!(ann.submit(PATH, &[("webhook_url", URL)]).await.status, 404);
}
