//! Untrusted text in headers, in HTML and in mail.

use super::browser::Browser;
use crate::world::World;

const HOSTILE: [&str; 7] = [
    "\"><script>alert(1)</script>",
    "'><img src=x onerror=alert(1)>",
    "{{csrf}}{{service}}",
    "a\r\nSet-Cookie: scoregate-session=x",
    "a\r\nBcc: victim@example.org\r\n\r\nbody",
    "</title><svg/onload=alert(1)>",
    "&lt;b&gt;&amp;",
];

/// Whether a page contains the markup of a hostile text.
fn is_injected(page: &str) -> bool {
    ["<script>alert", "<img src=x", "<svg/onload"]
        .iter()
        .any(|markup| page.contains(markup))
}

#[tokio::test]
async fn texts_in_addresses_and_queries_are_escaped_or_refused() {
    let world = World::with_sign_up("").await;
    let mut ann = Browser::of(&world);
    for text in HOSTILE {
        ann.visit("/account/sign-in").await;
        for email in [
            text.to_owned(),
            format!("{text}@example.org"),
            format!("ann@example.org{text}"),
        ] {
            ann.visit("/account/sign-in").await;
            let sent = ann.submit("/account/sign-in", &[("email", &email)]).await;
            let is_address = email.starts_with("{{") && email.ends_with("}}@example.org");
            assert_eq!(sent.status, if is_address { 200 } else { 422 }, "{email}");
            assert!(!is_injected(&ann.page), "{email}: {}", ann.page);
        }
        let encoded = form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        for target in [
            format!("/account/confirm?token={encoded}"),
            format!("/account/sign-in?done={encoded}"),
            format!("/account/{encoded}"),
        ] {
            let response = ann.open(&target).await;
            assert!(!is_injected(&ann.page), "{target}: {}", ann.page);
            assert!(
                response
                    .headers
                    .iter()
                    .all(|(name, value)| name != "set-cookie" || !value.contains("=x"))
            );
        }
    }
    // Valid addresses may contain markup.
    ann.visit("/account/sign-in").await;
    let odd = "a'&{b}@example.org";
    assert_eq!(
        ann.submit("/account/sign-in", &[("email", odd)])
            .await
            .status,
        200
    );
    assert!(
        ann.page.contains("a&#39;&amp;{b}@example.org")
            || ann.page.contains("a'&amp;{b}@example.org"),
        "{}",
        ann.page
    );
    assert_eq!(world.rows("SELECT count(*) FROM mail_queue"), ["2"]);
}

#[tokio::test]
async fn pages_forbid_everything_that_they_do_not_need() {
    let world = World::with_sign_up("").await;
    let mut ann = Browser::signed_in(&world, "ann@example.org").await;
    for target in [
        "/account",
        "/account/sign-in",
        "/account/applications/app_00000000001",
        "/account/confirm?token=x",
    ] {
        let response = ann.open(target).await;
        let policy = response.header("content-security-policy");
        for part in [
            "default-src 'none'",
            "frame-ancestors 'none'",
            "form-action 'self'",
            "base-uri 'none'",
        ] {
            assert!(policy.contains(part), "{target}: {policy}");
        }
        assert!(
            !policy.contains("unsafe") && !policy.contains("script-src"),
            "{policy}"
        );
        for (name, value) in [
            ("cache-control", "no-store"),
            ("referrer-policy", "strict-origin"),
            ("x-content-type-options", "nosniff"),
            ("cross-origin-opener-policy", "same-origin"),
        ] {
            assert_eq!(response.header(name), value, "{target}");
        }
        assert!(
            !ann.page.contains("<script") && !ann.page.contains(" style="),
            "{target}"
        );
    }
    // Only the page of a new key has a script, and its content security policy allows no other script.
    ann.visit("/account").await;
    let issued = ann
        .submit("/account/applications", &[("name", "One")])
        .await;
    let policy = issued.header("content-security-policy");
    assert!(
        policy.contains("script-src 'sha256-") && !policy.contains("unsafe"),
        "{policy}"
    );
    assert_eq!(ann.page.matches("<script>").count(), 1);
}

#[tokio::test]
async fn a_link_of_another_site_shows_no_message_about_a_finished_step() {
    let world = World::with_sign_up("").await;
    let mut ann = Browser::of(&world);
    for (from, is_shown) in [
        ("same-origin", true),
        ("cross-site", false),
        ("same-site", false),
        ("none", false),
    ] {
        ann.fields = vec![("Sec-Fetch-Site", from.into())];
        ann.visit("/account/sign-in?done=deleted").await;
        assert_eq!(
            ann.page.contains("The account is deleted"),
            is_shown,
            "{from}"
        );
    }
}
