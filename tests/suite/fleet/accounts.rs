//! Accounts on several gateways with one database: links, sessions, keys and limits are those of the database.

use super::*;
use crate::postgres::unprivileged;
use crate::site::browser::Browser;
use crate::site::leaked_keys::{Scanner, token};

const ON: [(&str, &str); 6] = [
    ("SCOREGATE_SITE_SIGN_UP", "true"),
    ("SCOREGATE_SITE_TIER", "pro"),
    ("SCOREGATE_SERVICE_BASE_URL", "http://127.0.0.1:8080"),
    // No mail leaves the queue, where the test reads it.
    ("SCOREGATE_MAIL_SERVER", "127.0.0.1:1"),
    ("SCOREGATE_MAIL_TLS", "none"),
    ("SCOREGATE_MAIL_FROM", "api@example.org"),
];

impl Site {
    fn rows(&self, query: &str) -> Vec<String> {
        let query = format!("SET search_path = {}; {query}", self.schema);
        let output = unprivileged("psql")
            .args(["-q", "-t", "-A", "-c", &query, &self.url])
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{query}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect()
    }

    /// The token of the newest link.
    fn link(&self) -> String {
        let text =
            self.rows("SELECT replace(text, chr(10), ' ') FROM mail_queue WHERE kind = 'sign_in' ORDER BY created_at DESC LIMIT 1");
        let (_, rest) = text[0].split_once("/account/confirm?token=").unwrap();
        rest.split(' ').next().unwrap().to_owned()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_a_session_and_a_key_of_one_gateway_are_valid_at_the_others() {
    needs!("postgresql");
    let site = Site::new();
    let one = site.gateway_with(&ON);
    let other = site.gateway_with(&ON);
    let mut ann = Browser::to(one.public);
    ann.visit("/account/sign-in").await;
    assert_eq!(
        ann.submit("/account/sign-in", &[("email", "ann@example.org")])
            .await
            .status,
        200
    );
    let token = site.link();
    ann.address = other.public;
    assert_eq!(ann.use_link(&token).await.header("location"), "/account");
    ann.address = one.public;
    assert_eq!(
        ann.open(&format!("/account/confirm?token={token}"))
            .await
            .status,
        410,
        "it was used elsewhere"
    );
    assert_eq!(ann.visit("/account").await, "/account");

    ann.address = other.public;
    let (path, key) = ann.create("Station").await;
    tokio::task::block_in_place(|| {
        one.reaches(&key, 200);
        other.reaches(&key, 200);
    });
    ann.address = one.public;
    ann.visit(&path).await;
    let digest = ann.hidden("key");
    assert_eq!(
        ann.submit(&format!("{path}/revoke"), &[("key", &digest)])
            .await
            .status,
        303
    );
    tokio::task::block_in_place(|| {
        one.reaches(&key, 401);
        other.reaches(&key, 401);
    });
    ann.visit("/account").await;
    ann.submit("/account/sign-out", &[("everywhere", "yes")])
        .await;
    ann.address = other.public;
    assert_eq!(ann.visit("/account").await, "/account/sign-in");
}

#[tokio::test]
async fn a_mailbox_gets_five_mails_an_hour_from_all_gateways() {
    needs!("postgresql");
    let site = Site::new();
    let gateways = [site.gateway_with(&ON), site.gateway_with(&ON)];
    for gateway in gateways.iter().cycle().take(8) {
        let mut robot = Browser::to(gateway.public);
        robot.visit("/account/sign-in").await;
        assert_eq!(
            robot
                .submit("/account/sign-in", &[("email", "ann@example.org")])
                .await
                .status,
            200
        );
    }
    assert_eq!(site.rows("SELECT count(*) FROM mail_queue"), ["5"]);
}

#[tokio::test]
async fn one_of_two_concurrent_uses_of_a_link_signs_in() {
    needs!("postgresql");
    let site = Site::new();
    let gateways = [site.gateway_with(&ON), site.gateway_with(&ON)];
    for round in 0..5 {
        let mut browsers = gateways
            .each_ref()
            .map(|gateway| Browser::to(gateway.public));
        browsers[0].visit("/account/sign-in").await;
        let email = format!("ann{round}@example.org");
        browsers[0]
            .submit("/account/sign-in", &[("email", &email)])
            .await;
        let token = site.link();
        for browser in &mut browsers {
            browser
                .visit(&format!("/account/confirm?token={token}"))
                .await;
        }
        let [one, other] = &mut browsers;
        let versions = [one.hidden("terms_version"), other.hidden("terms_version")];
        let fields = versions.each_ref().map(|version| {
            [
                ("token", token.as_str()),
                ("accept_terms", "yes"),
                ("terms_version", version.as_str()),
            ]
        });
        let first = one.submit("/account/confirm", &fields[0]);
        let second = other.submit("/account/confirm", &fields[1]);
        let (a, b) = tokio::join!(first, second);
        let mut statuses = [a.status, b.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [303, 410]);
    }
    assert_eq!(site.rows("SELECT count(*) FROM owners"), ["5"]);
    assert_eq!(site.rows("SELECT count(*) FROM owner_sessions"), ["5"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_application_closed_at_one_gateway_counts_at_the_others_until_the_day_ends() {
    needs!("postgresql");
    let site = Site::new();
    let one = site.gateway_with(&ON);
    let other = site.gateway_with(&ON);
    let mut ann = Browser::to(one.public);
    ann.visit("/account/sign-in").await;
    ann.submit("/account/sign-in", &[("email", "ann@example.org")])
        .await;
    ann.use_link(&site.link()).await;
    let (path, key) = ann.create("Station").await;
    tokio::task::block_in_place(|| other.reaches(&key, 200));
    let day = || Clock::system().now().wall.day();
    let began = day();
    ann.visit(&path).await;
    assert_eq!(
        ann.submit(&format!("{path}/close"), &[("confirm", "yes")])
            .await
            .status,
        303
    );
    ann.address = other.public;
    ann.visit("/account").await;
    let refused = ann
        .submit("/account/applications", &[("name", "Another")])
        .await;
    assert!(refused.status == 409 || day() != began, "{}", ann.page);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_that_two_gateways_receive_at_once_is_acted_on_once() {
    needs!("postgresql");
    let site = Site::new();
    let scanner = Scanner::new("one");
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("keys.json");
    std::fs::write(&file, scanner.published()).unwrap();
    let settings = [("SCOREGATE_LEAKS_PUBLIC_KEYS", file.to_str().unwrap())];
    let gateways = [site.gateway_with(&settings), site.gateway_with(&settings)];
    let keys: Vec<String> = (0..5).map(|_| site.create("100").1).collect();
    for (number, key) in keys.iter().enumerate() {
        let tokens = [token(
            key,
            "https://github.com/octocat/Hello-World/blob/1234/bar.txt",
        )];
        let [one, other] = gateways
            .each_ref()
            .map(|gateway| scanner.report(gateway.public, &tokens));
        let (one, other) = tokio::join!(one, other);
        for response in [one, other] {
            assert_eq!(
                (response.status, response.json()[0]["label"].as_str()),
                (200, Some("true_positive"))
            );
        }
        let acted = site.rows("SELECT count(*) FROM audit WHERE what = 'revoke_leaked_key'");
        assert_eq!(acted, [(number + 1).to_string()]);
    }
    tokio::task::block_in_place(|| {
        for (key, gateway) in keys
            .iter()
            .flat_map(|key| gateways.iter().map(move |gateway| (key, gateway)))
        {
            gateway.reaches(key, 401);
        }
    });
}
