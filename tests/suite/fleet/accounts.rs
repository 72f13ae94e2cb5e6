//! Accounts on several gateways with one database, which share links, sessions, keys and limits.

use super::*;
use crate::{postgres::unprivileged, site::browser::Browser};

const ON: [(&str, &str); 6] = [
    ("SCOREGATE_SITE_SIGN_UP", "true"),
    ("SCOREGATE_SITE_TIER", "pro"),
    ("SCOREGATE_SERVICE_BASE_URL", "http://127.0.0.1:8080"),
    // No mail leaves the queue, so the test can read it there.
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
        "the link was used at the other gateway"
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
