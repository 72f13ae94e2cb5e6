//! The webhooks of an owner on the page of the account.

use std::time::Duration;

use super::browser::Browser;
use crate::world::World;

const PATH: &str = "/account/webhooks";
const ON: &str = "site.webhooks = true\n";
/// The last part of the name is hexadecimal, so the resolver of the operating system takes it for a loopback address.
const LOOPBACK: &str = "https://127.0x1/in?a=1&b=2";

impl Browser<'_> {
    /// Sends the form of the webhook that the page of the account shows first.
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
    let added = ann.submit(PATH, &[("webhook_url", LOOPBACK)]).await;
    assert_eq!(
        (added.status, added.header("cache-control")),
        (200, "no-store")
    );
    assert!(
        ann.page.contains("https://127.0x1/in?a=1&amp;b=2"),
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
        ann.submit(PATH, &[("webhook_url", "https://127.0x2:8443/")])
            .await
            .status,
        200
    );
    ann.visit("/account").await;
    assert!(!ann.page.contains("name=\"webhook_url\""), "{}", ann.page);
    let third = ann
        .submit(PATH, &[("webhook_url", "https://127.0x3/")])
        .await;
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
        world.rows(
            "SELECT count(*) FROM audit WHERE detail LIKE '%whsec%' OR detail LIKE '%127.0x%'"
        ),
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
async fn a_webhook_whose_host_is_in_this_network_is_not_contacted_and_the_page_shows_why() {
    let world = World::with_sign_up(ON).await;
    let mut ann = signed_in(&world).await;
    ann.submit(PATH, &[("webhook_url", LOOPBACK)]).await;
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
    let reason = "The last message failed: the host name has an address that is not public.";
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
    ann.submit(PATH, &[("webhook_url", LOOPBACK)]).await;
    ann.visit("/account").await;
    assert_eq!(
        ann.submit(PATH, &[("webhook_url", LOOPBACK)]).await.status,
        422,
        "a form that is sent again"
    );
    assert_eq!(world.rows("SELECT count(*) FROM owner_webhooks"), ["1"]);
}

#[tokio::test]
async fn webhooks_belong_to_their_owner_and_exist_only_if_the_service_allows_them() {
    let world = World::with_sign_up(ON).await;
    let mut ann = signed_in(&world).await;
    ann.submit(PATH, &[("webhook_url", LOOPBACK)]).await;
    ann.visit("/account").await;
    let id = ann.hidden("webhook");
    let mut bob = Browser::of(&world);
    bob.sign_in("bob@example.org").await;
    for step in ["rotate", "remove"] {
        bob.visit("/account").await;
        let fields = [("webhook", id.as_str()), ("rotated_at", ""), ("step", step)];
        assert_eq!(bob.submit(PATH, &fields).await.status, 404, "{step}");
    }
    let forged = bob
        .submit_only(PATH, &[("webhook_url", LOOPBACK), ("csrf", "x")])
        .await;
    assert_eq!(forged.status, 403);
    assert_eq!(
        world.rows("SELECT count(*) FROM owner_webhooks WHERE old_secret IS NULL"),
        ["1"]
    );

    let world = World::with_sign_up("").await;
    let mut ann = signed_in(&world).await;
    assert!(!ann.page.contains("ebhook"), "{}", ann.page);
    assert_eq!(
        ann.submit(PATH, &[("webhook_url", LOOPBACK)]).await.status,
        404
    );
}
