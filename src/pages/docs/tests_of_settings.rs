//! Compares the pages for people with the settings of the service.

use crate::pages::{PagesConfig, SiteLinks, default_terms, html::grouped};
use scoregate_base::{
    limits::{CalendarLimits, LimitRule},
    plans::{Rights, Tier, TierLimits},
    routes::{Param, PublishedField, PublishedKind, Route, SourceDescription},
};

use super::{tests::default, *};

fn listed(name: &str, kind: PublishedKind) -> PublishedField {
    PublishedField {
        name: name.into(),
        kind,
    }
}

fn constant(text: &str) -> PublishedKind {
    PublishedKind::Constant(serde_json::Value::from(text).to_string())
}

#[test]
fn fields_of_a_mapped_endpoint_are_those_that_the_mapping_lists() {
    let score = Route::Models
        .endpoint()
        .item
        .iter()
        .find(|field| field.name == "currentScore")
        .unwrap();
    let fields = [
        (Route::Index, vec![]),
        (
            Route::Models,
            vec![
                listed("currentScore", PublishedKind::Standard(score)),
                listed("rank", PublishedKind::Number),
                listed("code", PublishedKind::Text),
                listed("unit", constant("points")),
                listed("other", PublishedKind::Any),
            ],
        ),
    ];
    let ignored = [(Route::Models, vec![Param::Period])].into();
    let source = SourceDescription {
        fields: fields.into(),
        ignored,
    };
    let html = page(&PagesConfig {
        source,
        ..PagesConfig::default()
    });
    assert_eq!(
        html.matches("The data source ignores <code>period</code>")
            .count(),
        1
    );
    let section = |name: &str| {
        let from = html
            .split(&format!("id=\"endpoint-{name}\""))
            .nth(1)
            .unwrap();
        from.split("</section>").next().unwrap().to_owned()
    };
    let models = section("models");
    assert!(models.contains("Items have the fields of the data source"));
    for part in [
        "currentScore",
        "rank",
        "number, or",
        "string, or",
        "always <code>&quot;points&quot;",
        "other",
    ] {
        assert!(models.contains(part), "{part} in {models}");
    }
    assert!(
        !models.contains("confidenceLower") && !models.contains("lastUpdated"),
        "{models}"
    );
    let index = section("index");
    assert!(
        index.contains("Items have the fields of the data source") && !index.contains("bestModel")
    );
    assert!(!section("drift").contains("fields of the data source"));
}

#[test]
fn text_from_the_settings_is_escaped() {
    let evil = "<script>\"'&{{license}}";
    let limits = TierLimits {
        minute: 1,
        day: 2,
        calendar: CalendarLimits::NONE,
    };
    let config = PagesConfig {
        service: evil.into(),
        license: evil.into(),
        version: evil.into(),
        base_url: Some(evil.into()),
        key_prefix: evil.into(),
        tiers: vec![Tier {
            name: evil.into(),
            rights: Rights::PAID,
            limits,
        }],
        example_model: Some(evil.into()),
        guard_per_minute: 7,
        source: SourceDescription {
            fields: [(
                Route::Models,
                vec![
                    listed(evil, PublishedKind::Any),
                    listed("x", constant(evil)),
                ],
            )]
            .into(),
            ..SourceDescription::default()
        },
        status_page: true,
        sign_up: true,
        terms: vec![evil.into()],
        links: SiteLinks {
            contact_name: Some(evil.into()),
            contact_email: Some(evil.into()),
            contact_url: Some(evil.into()),
            terms_url: Some(evil.into()),
            docs_url: Some(evil.into()),
            upgrade_url: Some(evil.into()),
            plans: vec![("pro".into(), evil.into())],
            security_contact: Some(evil.into()),
            security_policy_url: Some(evil.into()),
        },
        ..PagesConfig::default()
    };
    for html in [page(&config), landing(&config)] {
        assert!(!html.contains("<script>\"") && !html.contains("\"'&{{"));
        assert!(html.contains("&lt;script&gt;&quot;&#39;&amp;{{license}}"));
    }
    assert!(page(&config).contains("7 refused requests a minute"));
}

#[test]
fn contact_terms_and_documentation_are_linked_if_they_are_set() {
    let none = default();
    for words in ["Contact:", "terms of service", "further documentation"] {
        assert!(!none.contains(words), "{words}");
    }
    let links = SiteLinks {
        contact_name: Some("API team".into()),
        contact_email: Some("api@example.org".into()),
        terms_url: Some("https://example.org/terms".into()),
        docs_url: Some("https://example.org/guide".into()),
        ..SiteLinks::default()
    };
    let html = page(&PagesConfig {
        links,
        ..PagesConfig::default()
    });
    for part in [
        "Contact: API team, <a href=\"mailto:api@example.org\">api@example.org</a>",
        "<a href=\"https://example.org/terms\">terms of service</a>",
        "<a href=\"https://example.org/guide\">further documentation</a>",
    ] {
        assert!(html.contains(part), "{part}");
    }
}

#[test]
fn the_terms_are_those_that_people_accept() {
    let section = |config: &PagesConfig| {
        let html = page(config);
        let from = html.split_once("<section id=\"terms\"").unwrap().1;
        from.split_once("</section>").unwrap().0.to_owned()
    };
    let service = "Scores".to_owned();
    let default = section(&PagesConfig {
        terms: default_terms(&service),
        service: service.clone(),
        ..PagesConfig::default()
    });
    assert_eq!(default.matches("<li>").count(), 4);
    assert!(
        default.contains("Scores must be cited as the source") && default.contains("as a mirror")
    );
    let terms = vec!["Be <kind> & fair.".into(), "Cite us.".into()];
    let own = section(&PagesConfig {
        service,
        terms,
        ..PagesConfig::default()
    });
    let list = "<ol>\n<li>Be &lt;kind&gt; &amp; fair.</li>\n<li>Cite us.</li>\n</ol>";
    assert!(
        own.contains(list) && !own.contains("as a mirror") && !own.contains("competing"),
        "{own}"
    );
}

#[test]
fn limits_of_months_and_accounts_are_described_if_a_tier_has_them() {
    let limits = |calendar| {
        let mut config = PagesConfig::default();
        config.tiers[0].limits.calendar = calendar;
        let html = page(&config);
        let from = html.split_once("<section id=\"limits\"").unwrap().1;
        from.split_once("</section>").unwrap().0.to_owned()
    };
    let without = limits(CalendarLimits::NONE);
    let with = limits(
        CalendarLimits::NONE
            .with(LimitRule::Month, 5)
            .with(LimitRule::OwnerDay, 7),
    );
    for term in ["<dt>Month</dt>", "<dt>Account</dt>"] {
        assert!(!without.contains(term) && with.contains(term), "{term}");
    }
    assert!(!with.contains('\\'), "{with}");
}

#[test]
fn without_sign_up_the_page_says_that_keys_come_from_the_operator() {
    let markup = |sign_up| {
        let html = page(&PagesConfig {
            sign_up,
            ..PagesConfig::default()
        });
        html.split_once("<script").unwrap().0.to_owned()
    };
    let without = markup(false);
    let with = markup(true);
    for words in ["Sign up", "your account"] {
        assert!(!without.contains(words) && with.contains(words), "{words}");
    }
    for words in [
        "Ask the operator of this service for a key, and send it",
        ">From the operator<",
    ] {
        assert!(without.contains(words) && !with.contains(words), "{words}");
    }
}

#[test]
fn sign_up_is_linked_if_callers_can_sign_up() {
    let links = |sign_up| {
        let html = page(&PagesConfig {
            sign_up,
            ..PagesConfig::default()
        });
        let markup = html.split_once("<script").unwrap().0;
        markup.matches("href=\"/account/sign-in\"").count()
    };
    assert_eq!(
        (links(false), links(true)),
        (0, 2),
        "in the header and in the quick start"
    );
}

#[test]
fn sign_up_is_the_primary_action_of_the_landing_page_if_callers_can_sign_up() {
    let primary = |sign_up| {
        let html = landing(&PagesConfig {
            sign_up,
            ..PagesConfig::default()
        });
        assert_eq!(
            html.matches("class=\"button\"").count(),
            1,
            "one primary action"
        );
        let tiers = PagesConfig::default().tiers;
        assert!(
            tiers
                .iter()
                .all(|tier| html.contains(&format!(">{}</t", grouped(tier.limits.day))))
        );
        assert!(html.contains("currentScore"), "a response");
        html.split_once("<a class=\"button\" href=\"")
            .unwrap()
            .1
            .split('"')
            .next()
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        (primary(false).as_str(), primary(true).as_str()),
        ("/docs", "/account/sign-in")
    );
}

#[test]
fn recipes_and_generated_clients_have_the_address_of_the_service() {
    let config = PagesConfig {
        base_url: Some("https://x.example".into()),
        ..PagesConfig::default()
    };
    let html = page(&config);
    assert!(!html.contains("BASE_ADDRESS") && !html.contains("DESCRIPTION_ADDRESS"));
    assert_eq!(
        html.matches("https://x.example/openapi.json").count(),
        3,
        "one in each generated client"
    );
    let section = html
        .split_once("<section id=\"caching\"")
        .unwrap()
        .1
        .split_once("</section>")
        .unwrap()
        .0;
    for client in [
        "requests-cache",
        "hishel",
        "CacheControl",
        "got",
        "axios-cache-interceptor",
        "make-fetch-happen",
        "curl",
    ] {
        assert!(
            section.contains(&format!("<summary>{client} (")),
            "{client}"
        );
    }
    assert_eq!(
        section.matches("https://x.example/api/v1").count(),
        8,
        "one in each recipe"
    );
}
