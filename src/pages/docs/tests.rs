//! Compares the pages for people with the tables, and checks that the pages load no external resources.

use std::collections::HashSet;

use data_encoding::BASE64;
use sha2::{Digest as _, Sha256};

use crate::pages::{
    PagesConfig,
    html::{capitalized, grouped, prose},
};
use scoregate_base::routes::{
    ENDPOINTS, Param, Period, SortBy,
    bodies::{ERROR, ERROR_SOMETIMES, LIMIT},
    codes::CODES,
    headers::HEADERS,
    prices::PRICES,
};

use super::{people_pages::SCRIPT, *};

pub fn default() -> String {
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
        "one request, and one in the JavaScript snippet"
    );
    assert!(
        SCRIPT.contains("fetch(ownBase + target"),
        "same origin only"
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
        "one link is the docs page as Markdown"
    );
    assert_eq!(
        html.matches("<link rel=\"icon\" href=\"/favicon.ico\">")
            .count(),
        2
    );
}

#[test]
fn the_policies_allow_the_script_and_the_style_sheets_of_the_pages_and_no_others() {
    // Browsers hash the text between the tags.
    let hash_of = |html: &str, begin: &str, end: &str| {
        let (_, rest) = html.split_once(begin).unwrap();
        let (inside, _) = rest.split_once(end).unwrap();
        BASE64.encode(&Sha256::digest(inside.as_bytes()))
    };
    for (html, content) in [
        (default(), CONTENT),
        (landing(&PagesConfig::default()), LANDING_CONTENT),
    ] {
        let policy = content.policy();
        assert_eq!(html.matches("<style").count(), 1);
        let style = hash_of(&html, "<style>", "</style>");
        let allowed = format!("; style-src 'sha256-{style}'; ");
        assert!(policy.contains(&allowed), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
    }
    let script = hash_of(&default(), "<script type=\"module\">", "</script>");
    let policy = CONTENT.policy();
    let allowed = format!("; script-src 'sha256-{script}'; ");
    assert!(policy.contains(&allowed), "{policy}");
    assert_eq!(policy.matches("script").count(), 1);
    assert!(policy.contains("; connect-src 'self'; "));
    assert!(!LANDING_CONTENT.policy().contains("script"));
    for change in [
        ".style",
        "setAttribute(\"style",
        "cssText",
        "createElement(\"style",
    ] {
        assert!(!SCRIPT.contains(change), "browsers block it: {change}");
    }
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
