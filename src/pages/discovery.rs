//! Files for programs that look for the API: `robots.txt`, `llms.txt`, `/.well-known/api-catalog` (RFC 9727) and
//! `/.well-known/security.txt` (RFC 9116). The API description is in `openapi`.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};

use crate::cache::EncodedBodies;
use scoregate_base::{clock::Wall, routes::API_BASE};

use super::{
    page::{Page, REVALIDATED, TEXT},
    pages_config::PagesConfig,
    paths::{ACCOUNT, DOCS, DOCS_MARKDOWN, LLMS_TXT, MCP, OPENAPI, STATUS},
    sample,
    site_links::TERMS,
};

pub const SECURITY_TXT: &str = "/.well-known/security.txt";
pub const API_CATALOG: &str = "/.well-known/api-catalog";

pub const REGISTRY_AUTH: &str = "/.well-known/mcp-registry-auth";

/// The API in a sentence.
pub const SUMMARY: &str = "Benchmark data on AI models, read-only.";

/// Media type of the catalog. The profile says that the link set is an API catalog.
const LINKSET: &str =
    "application/linkset+json; profile=\"https://www.rfc-editor.org/info/rfc9727\"";
/// RFC 9727 requires this `Link` in the response to HEAD.
const CATALOG_LINK: &str = "</.well-known/api-catalog>; rel=\"api-catalog\"";
/// `Expires` is this long after the current day. RFC 9116 recommends less than a year.
const SECURITY_TXT_VALID: Duration = Duration::from_hours(180 * 24);

/// The file `robots.txt`. Longer rules take precedence over shorter rules. The exceptions come first for programs that
/// use the first match.
pub fn robots(config: &PagesConfig) -> String {
    let account = if config.sign_up {
        format!("Disallow: {ACCOUNT}\n")
    } else {
        String::new()
    };
    let status = if config.status_page {
        format!("Allow: {STATUS}\n")
    } else {
        String::new()
    };
    format!("User-agent: *\nDisallow: {API_BASE}/\n{account}Allow: {DOCS}\n{status}Allow: /\n")
}

/// The addresses that a language model needs, with a line about each. Addresses are absolute if the public address is
/// known.
pub fn llms(config: &PagesConfig) -> String {
    let root = config.root().unwrap_or_default();
    let endpoints = config.endpoints.iter().map(|row| {
        let path = row.segments.join("/");
        format!(
            "- [/{path}]({root}{DOCS}#endpoint-{}): {}\n",
            row.name, row.summary
        )
    });
    let mcp = if config.mcp {
        format!("- [Tools]({root}{MCP}): the same data over MCP\n")
    } else {
        String::new()
    };
    format!(
        "# {}\n\n> {SUMMARY} Each request below {} needs a key: `Authorization: Bearer KEY`.\n\n## Documentation\n\n\
         - [Documentation]({root}{DOCS_MARKDOWN}): endpoints, fields, parameters, errors, limits, and how to cache\n\
         - [API description]({root}{OPENAPI}): OpenAPI 3.1\n{mcp}\n## Endpoints\n\n{}",
        config.service,
        config.base(),
        endpoints.collect::<String>()
    )
}

/// The addresses of the API and of the tools.
fn interfaces(config: &PagesConfig, root: &str) -> Vec<Value> {
    let mcp = config.mcp.then(|| format!("{root}{MCP}"));
    [config.base()]
        .iter()
        .chain(&mcp)
        .map(|url| json!({ "href": url }))
        .collect()
}

/// The catalog, which contains the only API of this service. The links are absolute, so the public address is needed.
pub fn api_catalog(config: &PagesConfig) -> Option<Page> {
    let root = config.root()?;
    let own = |path: &str, media_type: &str| json!({ "href": format!("{root}{path}"), "type": media_type });
    let elsewhere = |url: &String| json!({ "href": url });
    let docs = [own(DOCS, "text/html"), own(LLMS_TXT, "text/plain")]
        .into_iter()
        .chain(config.links.docs_url.as_ref().map(elsewhere));
    let terms = config
        .links
        .terms_url
        .as_ref()
        .map_or_else(|| own(TERMS, "text/html"), elsewhere);
    let api = [
        ("anchor", json!(config.base())),
        ("service-desc", json!([own(OPENAPI, "application/json")])),
        ("service-doc", docs.collect()),
        ("terms-of-service", json!([terms])),
    ];
    let status = config
        .status_page
        .then(|| ("status", json!([own(STATUS, "text/html")])));
    let api: BTreeMap<&str, Value> = api.into_iter().chain(status).collect();
    let catalog = json!({
        "anchor": format!("{root}{API_CATALOG}"),
        "item": interfaces(config, root),
    });
    let text = sample::text_of(&json!({ "linkset": [catalog, api] }));
    let page = Page::new(LINKSET, REVALIDATED, text.as_bytes());
    Some(Page {
        link: Some(CATALOG_LINK),
        ..page
    })
}

/// The lines of `security.txt`, except for `Expires`.
#[derive(Clone, Debug)]
pub struct SecurityTxt {
    contact: String,
    rest: String,
}

impl SecurityTxt {
    /// Creates the file. `None` if there is no contact, which RFC 9116 requires.
    pub fn of(config: &PagesConfig) -> Option<Self> {
        let contact = format!("Contact: {}\n", config.links.security_contact.as_ref()?);
        // RFC 9116 requires that URLs in this file begin with https://.
        let root = config.root().filter(|root| root.starts_with("https://"));
        let canonical = root.map(|root| format!("Canonical: {root}{SECURITY_TXT}\n"));
        let policy = config
            .links
            .security_policy_url
            .as_ref()
            .map(|policy| format!("Policy: {policy}\n"));
        let lines = [
            Some("Preferred-Languages: en\n".to_owned()),
            canonical,
            policy,
        ];
        Some(Self {
            contact,
            rest: lines.into_iter().flatten().collect(),
        })
    }

    /// The file for the current day. It changes at 00:00 UTC.
    pub fn page(&self, now: Wall) -> Page {
        let expires = now.day().start().plus(SECURITY_TXT_VALID).rfc3339();
        let text = format!("{}Expires: {expires}\n{}", self.contact, self.rest);
        // The file is generated for each request, so it is not compressed.
        Page::of(
            TEXT,
            REVALIDATED,
            EncodedBodies::identity(text.as_bytes(), now),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::SiteLinks;

    const NOON: &str = "2026-11-25T12:00:00Z";

    fn text(page: &Page) -> &str {
        std::str::from_utf8(page.body()).unwrap()
    }

    fn security_txt(config: &PagesConfig, now: &str) -> Option<Page> {
        SecurityTxt::of(config).map(|file| file.page(Wall::parse_rfc3339(now).unwrap()))
    }

    fn links() -> SiteLinks {
        SiteLinks {
            security_contact: Some("mailto:security@example.org".into()),
            security_policy_url: Some("https://example.org/policy".into()),
            ..SiteLinks::default()
        }
    }

    #[test]
    fn security_txt_has_all_fields_and_expires_in_180_days() {
        let base_url = Some("https://api.example.org/api/v1/".into());
        let config = PagesConfig {
            links: links(),
            base_url,
            ..PagesConfig::default()
        };
        let page = security_txt(&config, NOON).unwrap();
        assert_eq!(
            text(&page),
            "Contact: mailto:security@example.org\nExpires: 2027-05-24T00:00:00Z\nPreferred-Languages: en\n\
             Canonical: https://api.example.org/.well-known/security.txt\nPolicy: https://example.org/policy\n"
        );
        assert_eq!(page.content_type, "text/plain; charset=utf-8");
    }

    #[test]
    fn security_txt_changes_once_a_day_and_expires_within_a_year() {
        let config = PagesConfig {
            links: links(),
            ..PagesConfig::default()
        };
        let tag = |now: &str| security_txt(&config, now).unwrap().body().clone();
        assert_eq!(tag("2026-11-25T00:00:00Z"), tag("2026-11-25T23:59:59Z"));
        assert_ne!(tag("2026-11-25T23:59:59Z"), tag("2026-11-26T00:00:00Z"));
        for now in [
            "1970-01-01T00:00:00Z",
            NOON,
            "2028-02-29T23:59:59Z",
            "2100-12-31T23:59:59Z",
        ] {
            let page = security_txt(&config, now).unwrap();
            let expires = text(&page)
                .lines()
                .find_map(|line| line.strip_prefix("Expires: "))
                .unwrap();
            let now = Wall::parse_rfc3339(now).unwrap();
            let ahead = Wall::parse_rfc3339(expires).unwrap().since(now);
            let days = Duration::from_hours(24 * 179)..Duration::from_hours(24 * 365);
            assert!(days.contains(&ahead), "{expires}");
        }
    }

    #[test]
    fn security_txt_needs_a_contact_and_states_only_https_addresses() {
        assert!(security_txt(&PagesConfig::default(), NOON).is_none());
        let base_url = Some("http://127.0.0.1:8080".into());
        let config = PagesConfig {
            links: links(),
            base_url,
            ..PagesConfig::default()
        };
        assert!(!text(&security_txt(&config, NOON).unwrap()).contains("Canonical"));
    }

    #[test]
    fn catalog_links_the_api_with_its_description_and_documentation() {
        assert!(
            api_catalog(&PagesConfig::default()).is_none(),
            "links must be absolute"
        );
        let base_url = Some("https://x.example/".into());
        let config = PagesConfig {
            base_url,
            ..PagesConfig::default()
        };
        let page = api_catalog(&config).unwrap();
        let catalog: Value = serde_json::from_slice(page.body()).unwrap();
        let html = |path: &str| json!([{ "href": format!("https://x.example{path}"), "type": "text/html" }]);
        assert_eq!(
            catalog,
            json!({ "linkset": [
                { "anchor": "https://x.example/.well-known/api-catalog", "item": [{ "href": "https://x.example/api/v1" }] },
                {
                    "anchor": "https://x.example/api/v1",
                    "service-desc": [{ "href": "https://x.example/openapi.json", "type": "application/json" }],
                    "service-doc": [
                        { "href": "https://x.example/docs", "type": "text/html" },
                        { "href": "https://x.example/llms.txt", "type": "text/plain" },
                    ],
                    "terms-of-service": html("/docs#terms"),
                },
            ] })
        );
        assert_eq!(
            page.link,
            Some("</.well-known/api-catalog>; rel=\"api-catalog\"")
        );
        assert_eq!(
            page.content_type,
            "application/linkset+json; profile=\"https://www.rfc-editor.org/info/rfc9727\""
        );
    }

    #[test]
    fn llms_txt_links_the_documentation_and_every_endpoint() {
        let base_url = Some("https://x.example".into());
        let config = PagesConfig {
            service: "Scores".into(),
            base_url,
            ..PagesConfig::default()
        };
        let text = llms(&config);
        let begin = "# Scores\n\n> Benchmark data on AI models, read-only. Each request below https://x.example/api/v1 \
            needs a key: `Authorization: Bearer KEY`.\n";
        assert!(text.starts_with(begin), "{text}");
        assert!(
            text.contains("](https://x.example/docs.md): ")
                && text.contains("](https://x.example/openapi.json): ")
        );
        for row in config.endpoints.iter() {
            let link = format!(
                "](https://x.example/docs#endpoint-{}): {}\n",
                row.name, row.summary
            );
            assert!(text.contains(&link), "{link}");
        }
        assert!(llms(&PagesConfig::default()).contains("](/docs.md): "));
    }

    #[test]
    fn a_language_model_finds_the_tools_if_there_are_any() {
        let config = |mcp| PagesConfig {
            base_url: Some("https://x.example".into()),
            mcp,
            ..PagesConfig::default()
        };
        assert!(llms(&config(true)).contains("](https://x.example/mcp): "));
        assert!(!llms(&config(false)).contains("/mcp"));
    }

    #[test]
    fn robots_may_read_all_pages_but_the_api_and_the_account() {
        let default = "User-agent: *\nDisallow: /api/v1/\nAllow: /docs\nAllow: /\n";
        assert_eq!(robots(&PagesConfig::default()), default);
        let config = PagesConfig {
            status_page: true,
            sign_up: true,
            ..PagesConfig::default()
        };
        let all = "User-agent: *\nDisallow: /api/v1/\nDisallow: /account\nAllow: /docs\nAllow: /status\nAllow: /\n";
        assert_eq!(robots(&config), all);
    }
}
