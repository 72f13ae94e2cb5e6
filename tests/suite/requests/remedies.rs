//! Refusals state where to sign up and where to get a larger plan, if these addresses are configured, and when to try
//! again.

use scoregate_base::limits::{LimitSetting, OwnLimits};

use crate::{
    client::Response,
    world::{World, good},
};

const PLANS: &str = "https://example.org/plans";
const SETTINGS: &str = "service.base_url = \"https://api.example.org\"\nsite.upgrade_url = \"https://example.org/plans\"\n\
                        site.sign_up = true\nmail.server = \"127.0.0.1:1\"\nmail.tls = \"none\"\nmail.from = \"keys@example.org\"\n\
                        tiers.free = { minute = 2, day = 1, paid = false }\ntiers.pro = { minute = 1, day = 9, paid = true }";

/// The addresses for signing up and for plans in the body, and the header.
fn named(response: &Response) -> (Option<String>, Option<String>, String) {
    let body = response.json();
    let text = |name: &str| body[name].as_str().map(str::to_owned);
    (
        text("sign_up"),
        text("upgrade"),
        response.header("link").to_owned(),
    )
}

#[tokio::test]
async fn a_refusal_names_the_page_for_a_key_or_for_a_larger_plan() {
    let world = World::with(SETTINGS, good).await;
    let free = world.customer("free").await;
    let pro = world.customer("pro").await;
    let models = "/api/v1/models";
    let page = "https://api.example.org/account/sign-in";
    let sign_up = || {
        (
            Some(page.to_owned()),
            None,
            format!("<{page}>; rel=\"help\""),
        )
    };
    let upgrade = || {
        (
            None,
            Some(PLANS.to_owned()),
            format!("<{PLANS}>; rel=\"payment\""),
        )
    };
    let none = || (None, None, String::new());

    for key in ["", "wrong"] {
        let refused = world.get_by(key, models).await;
        assert_eq!(
            (refused.status, named(&refused)),
            (401, sign_up()),
            "{key:?}"
        );
        assert!(
            refused.json()["message"]
                .as_str()
                .unwrap()
                .starts_with(if key.is_empty() { "Send " } else { "Check " })
        );
    }
    let plan = world.get_as(&free, "/api/v1/models?period=latest").await;
    assert_eq!((plan.status, named(&plan)), (403, upgrade()));
    assert_eq!(world.get_as(&free, models).await.status, 200);
    assert_eq!(world.get_as(&pro, models).await.status, 200);
    for (key, code) in [
        (&free.key, "quota_exceeded"),
        (&pro.key, "rate_limit_exceeded"),
    ] {
        let limited = world.get_by(key, models).await;
        assert_eq!(
            (limited.code().as_str(), named(&limited)),
            (code, upgrade())
        );
        assert!(
            limited.json()["message"]
                .as_str()
                .unwrap()
                .starts_with("Wait "),
            "{code}"
        );
    }
    let missing = world.get_as(&pro, "/nothing").await;
    assert_eq!((missing.status, named(&missing)), (404, none()));
    let problem = world
        .get("/nothing")
        .key(&pro.key)
        .header("Accept", "application/problem+json");
    let problem = problem.send().await.json();
    assert_eq!(problem["type"], "https://api.example.org/docs#not_found");
}

#[tokio::test]
async fn a_refusal_names_the_page_of_the_plan_that_it_needs() {
    let plans = "site.plans = [\"pro=https://example.org/pro\", \"free=https://example.org/free\"]";
    let world = World::with(&format!("{plans}\n{SETTINGS}"), good).await;
    let free = world.customer("free").await;
    let pro = world.customer("pro").await;
    let models = "/api/v1/models";
    let upgrade = |url: &str| {
        let header = format!("<{url}>; rel=\"payment\"");
        (None, Some(url.to_owned()), header)
    };
    let plan = world.get_as(&free, "/api/v1/models?period=latest").await;
    assert_eq!(
        (plan.status, named(&plan)),
        (403, upgrade("https://example.org/pro"))
    );
    for customer in [&free, &pro] {
        assert_eq!(world.get_as(customer, models).await.status, 200);
    }
    let spent = world.get_as(&free, models).await;
    assert_eq!(spent.code(), "quota_exceeded");
    assert_eq!(named(&spent), upgrade("https://example.org/pro"));
    // With these settings, Free has a larger minute limit than Pro.
    let limited = world.get_as(&pro, models).await;
    assert_eq!(limited.code(), "rate_limit_exceeded");
    assert_eq!(named(&limited), upgrade("https://example.org/free"));
    let largest = OwnLimits::NONE
        .with(LimitSetting::Day, 10)
        .with(LimitSetting::Minute, 11);
    let largest = world.customer_with("pro", largest).await;
    for _ in 0..10 {
        assert_eq!(world.get_as(&largest, models).await.status, 200);
    }
    let spent = world.get_as(&largest, models).await;
    assert_eq!(
        (spent.code().as_str(), named(&spent)),
        ("quota_exceeded", upgrade(PLANS))
    );
    let docs = world.get("/docs").send().await;
    let link = "<a href=\"https://example.org/pro\">Included with the Pro plan</a>";
    assert!(String::from_utf8(docs.body).unwrap().contains(link));
}

#[tokio::test]
async fn the_link_of_a_refusal_is_before_that_of_the_deprecation() {
    let deprecated = "service.deprecated_at = \"2026-11-22T00:00:00Z\"\nservice.deprecation_link = \"https://example.org/end\"";
    let world = World::with(&format!("{SETTINGS}\n{deprecated}"), good).await;
    let free = world.customer("free").await;
    let refused = world.get_as(&free, "/api/v1/models?period=latest").await;
    let last = "<https://example.org/end>; rel=\"deprecation\"";
    assert_eq!(
        refused.header("link"),
        format!("<{PLANS}>; rel=\"payment\", {last}")
    );
    assert_eq!(
        world.get_as(&free, "/api/v1/models").await.header("link"),
        last
    );
}

#[tokio::test]
async fn without_such_addresses_a_refusal_names_none() {
    let world = World::new().await;
    let free = world.customer("free").await;
    for target in ["/api/v1/models", "/api/v1/models?period=latest"] {
        for key in ["", &free.key] {
            let response = world.get_by(key, target).await;
            if response.status != 200 {
                assert_eq!(
                    named(&response),
                    (None, None, String::new()),
                    "{target} {}",
                    response.status
                );
            }
        }
    }
}
