//! Compares the pages for people with the tables, and checks that they load no external resource.

use std::collections::HashSet;

use sha2::{Digest as _, Sha256};

use crate::pages::html::{capitalized, grouped, prose};
use crate::pages::{PagesConfig, SiteLinks, default_terms};
use scoregate_base::plans::{Rights, Tier, TierLimits};
use scoregate_base::routes::bodies::{ERROR, ERROR_SOMETIMES, LIMIT};
use scoregate_base::routes::codes::CODES;
use scoregate_base::routes::headers::HEADERS;
use scoregate_base::routes::prices::PRICES;
use scoregate_base::routes::{
    ENDPOINTS, Param, Period, PublishedField, PublishedKind, Route, SortBy, SourceDescription,
};

use super::people_pages::SCRIPT;
use super::*;

fn default() -> String {
    page(&PagesConfig::default())
}

/// The values of these attributes on both pages.
fn attributes(name: &str) -> Vec<String> {
    let html = default() + &landing(&PagesConfig::default());
    let lead = format!(" {name}=\"");
    html.split(&lead)
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap().to_owned())
        .collect()
}

#[test]
fn every_code_has_its_anchor_with_its_status_and_remedy() {
    let html = default();
    for row in &CODES {
        let (_, section) = html.split_once(&format!("id=\"{}\"", row.word)).unwrap();
        let section = section.split_once("</section>").unwrap().0;
        assert!(section.contains(row.status.as_str()), "{}", row.word);
        assert!(section.contains(&prose(row.condition)), "{}", row.word);
        assert_eq!(
            section.contains(&prose(row.remedy)),
            row.word != "invalid_api_key",
            "{}",
            row.word
        );
    }
}

#[test]
fn page_contains_all_endpoints_parameters_headers_tiers_and_prices() {
    let html = default();
    for row in &ENDPOINTS {
        assert!(
            html.contains(&row.documented_path().replace("{id}", ":id")),
            "{}",
            row.name
        );
        assert!(html.contains(&prose(row.summary)), "{}", row.name);
        for field in row.item {
            assert!(
                html.contains(&format!("<code>{}</code>", field.name)),
                "{} {}",
                row.name,
                field.name
            );
        }
    }
    assert_eq!(
        Param::ALL
            .into_iter()
            .find(|param| !html.contains(&prose(param.meaning()))),
        None
    );
    let words = Period::ALL
        .map(Period::word)
        .into_iter()
        .chain(SortBy::ALL.map(SortBy::word));
    for word in words.chain(HEADERS.iter().map(|header| header.name)) {
        assert!(html.contains(&format!("<code>{word}</code>")), "{word}");
    }
    for tier in PagesConfig::default().tiers {
        for text in [
            capitalized(&tier.name),
            grouped(tier.limits.day),
            grouped(tier.limits.minute),
        ] {
            assert!(html.contains(&format!(">{text}</t")), "{text}");
        }
    }
    for price in &PRICES {
        assert!(html.contains(&prose(price.outcome)), "{}", price.outcome);
    }
}

#[test]
fn internal_links_resolve_and_anchors_are_unique() {
    let html = default();
    let ids = html
        .split(" id=\"")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap());
    let (ids, unique): (Vec<_>, HashSet<_>) = ids.map(|id| (id, id)).unzip();
    assert_eq!(ids.len(), unique.len());
    for link in attributes("href") {
        if let Some(anchor) = link.strip_prefix('#') {
            assert!(unique.contains(anchor), "{link}");
        }
    }
}

#[test]
fn pages_load_only_the_icon() {
    let html = default() + &landing(&PagesConfig::default());
    assert_eq!(
        html.matches("<script").count(),
        2,
        "the script of the docs page and its data"
    );
    assert!(html.contains("<script type=\"module\">") && !SCRIPT.contains("http"));
    assert_eq!(
        SCRIPT.matches("fetch(").count(),
        2,
        "one request, and one in the snippet of JavaScript"
    );
    assert!(
        SCRIPT.contains("fetch(ownBase + target"),
        "of its own origin"
    );
    for banned in [
        "innerHTML",
        "outerHTML",
        "insertAdjacent",
        "eval(",
        "Storage",
        "cookie =",
        "</script",
    ] {
        assert!(!SCRIPT.contains(banned), "{banned}");
    }
    let banned = [
        "<img",
        "<iframe",
        " src=",
        " style=",
        "@import",
        "url(",
        "@font-face",
    ];
    for banned in [&banned[..], &[" onclick=", " onload=", " onerror="]].concat() {
        assert!(!html.replace(SCRIPT, "").contains(banned), "{banned}");
    }
    for link in attributes("href")
        .into_iter()
        .filter(|link| link.contains(':'))
    {
        let documents = [
            "https://www.rfc-editor.org/rfc/",
            "https://datatracker.ietf.org/doc/",
        ];
        assert!(
            documents.iter().any(|lead| link.starts_with(lead)),
            "{link}"
        );
    }
    assert_eq!(
        html.matches("<link ").count(),
        3,
        "one is the docs page as Markdown"
    );
    assert_eq!(
        html.matches("<link rel=\"icon\" href=\"/favicon.ico\">")
            .count(),
        2
    );
}

#[test]
fn the_policy_allows_the_script_of_the_page_and_no_other() {
    // Browsers hash the text between the tags.
    let html = default();
    let script = html
        .split_once("<script type=\"module\">")
        .unwrap()
        .1
        .split_once("</script>")
        .unwrap()
        .0;
    let hash = base64(&Sha256::digest(script.as_bytes()));
    let policy = CONTENT.policy();
    assert!(
        policy.contains(&format!("; script-src 'sha256-{hash}'; ")),
        "{policy}"
    );
    assert_eq!(policy.matches("script").count(), 1);
    assert!(policy.contains("; connect-src 'self'; "));
    assert!(
        !LANDING_CONTENT.policy().contains("script"),
        "the landing page has none"
    );
}

#[test]
fn the_policies_allow_the_style_sheets_of_the_pages_and_no_other_styles() {
    for (html, content) in [
        (default(), CONTENT),
        (landing(&PagesConfig::default()), LANDING_CONTENT),
    ] {
        assert_eq!(html.matches("<style").count(), 1);
        let style = html
            .split_once("<style>")
            .unwrap()
            .1
            .split_once("</style>")
            .unwrap()
            .0;
        let hash = base64(&Sha256::digest(style.as_bytes()));
        let policy = content.policy();
        assert!(
            policy.contains(&format!("; style-src 'sha256-{hash}'; ")),
            "{policy}"
        );
        assert!(!policy.contains("unsafe"), "{policy}");
    }
    for change in [
        ".style",
        "setAttribute(\"style",
        "cssText",
        "createElement(\"style",
    ] {
        assert!(!SCRIPT.contains(change), "browsers block it: {change}");
    }
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for part in bytes.chunks(3) {
        let number = part.iter().enumerate().fold(0u32, |sum, (at, byte)| {
            sum | u32::from(*byte) << (16 - 8 * at)
        });
        for at in 0..4 {
            let letter = LETTERS[(number >> (18 - 6 * at) & 63) as usize];
            text.push(if at <= part.len() {
                char::from(letter)
            } else {
                '='
            });
        }
    }
    text
}

#[test]
fn an_unknown_example_model_is_shown_as_a_placeholder() {
    let unknown = default();
    assert!(
        unknown.contains("/models/MODEL_ID/history")
            && unknown.contains("<code>MODEL_ID</code> is a placeholder")
    );
    assert!(!unknown.contains("/drift/atlas"));
    let known = page(&PagesConfig {
        example_model: Some("m-1".into()),
        ..PagesConfig::default()
    });
    let markup = known.split_once("<script").unwrap().0;
    assert!(markup.contains("/models/m-1/history") && !markup.contains("MODEL_ID"));
}

#[test]
fn every_placeholder_of_a_template_is_filled() {
    for html in [default(), landing(&PagesConfig::default())] {
        assert!(!html.contains("{{"));
        assert!(!html.contains("}}"));
    }
}

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
    let limits = TierLimits { minute: 1, day: 2 };
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

#[test]
fn missing_features_are_named_and_errors_refer_to_them() {
    let html = default();
    let section = html
        .split_once("<section id=\"not-available\"")
        .unwrap()
        .1
        .split_once("</section>")
        .unwrap()
        .0;
    for feature in ["Pagination", "CSV", "Webhooks"] {
        assert!(section.contains(&format!(">{feature}</dt>")), "{feature}");
    }
    let remedy = |word| CODES.iter().find(|row| row.word == word).unwrap().remedy;
    assert!(remedy("not_found").contains("Pagination and CSV are not available"));
    assert!(remedy("invalid_limit").contains("Pagination is not available"));
}

#[test]
fn the_example_of_an_error_has_the_fields_of_the_table() {
    let example: serde_json::Value =
        serde_json::from_str(&errors::example(&PagesConfig::default())).unwrap();
    for field in ERROR {
        assert!(example.get(field.name).is_some(), "{}", field.name);
    }
    let known: Vec<_> = ERROR
        .iter()
        .chain(ERROR_SOMETIMES)
        .map(|field| field.name)
        .collect();
    assert!(
        example
            .as_object()
            .unwrap()
            .keys()
            .all(|name| known.contains(&name.as_str()))
    );
    let limit: HashSet<_> = example["limit"]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(limit, LIMIT.iter().map(|field| field.name).collect());
}

#[test]
fn the_headers_differ_only_in_the_marked_link() {
    let header = |html: &str, path: &str| {
        let header = html.split_once("<header>").unwrap().1;
        let header = header.split_once("</header>").unwrap().0;
        let marked = format!("<a href=\"{path}\" aria-current=\"page\">");
        assert_eq!(header.matches(&marked).count(), 1, "{path}");
        header.replace(" aria-current=\"page\"", "")
    };
    let landing = landing(&PagesConfig::default());
    assert_eq!(header(&landing, "/"), header(&default(), "/docs"));
}

#[test]
fn headings_skip_no_level() {
    let html = default();
    let mut last = 0;
    for rest in html.split("<h").skip(1) {
        let Some(level) = rest.chars().next().and_then(|c| c.to_digit(10)) else {
            continue;
        };
        assert!(
            level <= last + 1,
            "{}",
            rest.chars().take(60).collect::<String>()
        );
        last = level;
    }
}
