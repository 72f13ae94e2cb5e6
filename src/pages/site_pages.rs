//! All pages, which are generated once at startup.

use std::{collections::HashMap, sync::Arc};

use scoregate_base::clock::Wall;

use super::{
    discovery::{self, API_CATALOG, REGISTRY_AUTH, SECURITY_TXT, SecurityTxt},
    docs, openapi,
    page::{ICON, JSON, MARKDOWN, Page, REUSED, REVALIDATED, TEXT},
    pages_config::PagesConfig,
    paths::{DOCS, DOCS_MARKDOWN, LLMS_TXT, OPENAPI},
};

/// All pages.
#[derive(Clone, Debug)]
pub struct Pages {
    by_path: HashMap<&'static str, Arc<Page>>,
    /// The content of `security.txt` depends on the day.
    security_txt: Option<SecurityTxt>,
}

impl Pages {
    /// Generates all pages. Takes milliseconds, and is done once.
    pub fn build(config: &PagesConfig) -> Self {
        let docs = docs::page(config);
        let landing = docs::landing(config);
        let pages = [
            (
                "/",
                Page::html(REVALIDATED, docs::LANDING_CONTENT, &landing),
            ),
            (DOCS, Page::html(REVALIDATED, docs::CONTENT, &docs)),
            (DOCS_MARKDOWN, file(MARKDOWN, &docs::markdown(&docs))),
            (LLMS_TXT, file(TEXT, &discovery::llms(config))),
            (OPENAPI, file(JSON, &openapi::document(config))),
            ("/robots.txt", file(TEXT, &discovery::robots(config))),
            (
                "/favicon.ico",
                Page::new(ICON, REUSED, include_bytes!("favicon.ico")),
            ),
        ];
        let catalog = discovery::api_catalog(config).map(|page| (API_CATALOG, page));
        let proof = config.registry_auth.as_ref();
        let proof = proof.map(|text| (REGISTRY_AUTH, file(TEXT, text)));
        let pages = pages.into_iter().chain(catalog).chain(proof);
        Self {
            by_path: pages.map(|(path, page)| (path, Arc::new(page))).collect(),
            security_txt: SecurityTxt::of(config),
        }
    }

    /// The Markdown form of a page that also has an HTML form.
    pub fn find_markdown(&self, path: &str) -> Option<Arc<Page>> {
        let has_markdown = ["/", DOCS].contains(&path);
        self.by_path
            .get(DOCS_MARKDOWN)
            .filter(|_| has_markdown)
            .cloned()
    }

    /// The page at exactly this path.
    pub fn find(&self, path: &str, now: Wall) -> Option<Arc<Page>> {
        match &self.security_txt {
            Some(file) if path == SECURITY_TXT => Some(Arc::new(file.page(now))),
            _ => self.by_path.get(path).cloned(),
        }
    }

    /// The path to which this path permanently redirects.
    pub fn moved(path: &str) -> Option<&'static str> {
        (path == "/docs/").then_some(DOCS)
    }
}

fn file(content_type: &'static str, text: &str) -> Page {
    Page::new(content_type, REVALIDATED, text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::ContentCoding;
    use crate::pages::page::HTML;

    const NOW: Wall = Wall::from_seconds(0);

    #[test]
    fn pages_are_found_by_their_exact_path_only() {
        let pages = Pages::build(&PagesConfig::default());
        for (path, kind) in [
            ("/", HTML),
            ("/docs", HTML),
            ("/docs.md", MARKDOWN),
            ("/llms.txt", TEXT),
            ("/openapi.json", JSON),
            ("/robots.txt", TEXT),
            ("/favicon.ico", ICON),
        ] {
            assert_eq!(pages.find(path, NOW).unwrap().content_type, kind, "{path}");
        }
        for path in [
            "",
            "/docs/",
            "/Docs",
            "/robots.txt/",
            "/favicon.ico/",
            "/favicon.png",
            "/openapi",
            "/index.html",
            "//",
            "/api/v1",
        ] {
            assert!(pages.find(path, NOW).is_none(), "{path}");
        }
    }

    #[test]
    fn bytes_and_tags_depend_only_on_the_settings() {
        let one = Pages::build(&PagesConfig::default());
        let two = Pages::build(&PagesConfig::default());
        let other = Pages::build(&PagesConfig {
            service: "other".into(),
            ..PagesConfig::default()
        });
        for path in ["/", "/docs", "/openapi.json"] {
            for encoding in [
                ContentCoding::Identity,
                ContentCoding::Gzip,
                ContentCoding::Brotli,
            ] {
                let [one, two, other] =
                    [&one, &two, &other].map(|pages| pages.find(path, NOW).unwrap());
                let [one, two, other] = [&one, &two, &other].map(|page| page.choose(encoding));
                assert_eq!((&one.body, &one.etag), (&two.body, &two.etag));
                assert_ne!(one.etag, other.etag);
            }
        }
    }

    #[test]
    fn large_pages_are_a_fifth_of_their_size_with_gzip_and_brotli() {
        let pages = Pages::build(&PagesConfig::default());
        for path in ["/docs", "/openapi.json"] {
            let page = pages.find(path, NOW).unwrap();
            for (encoding, name) in [(ContentCoding::Gzip, "gzip"), (ContentCoding::Brotli, "br")] {
                let encoded = page.choose(encoding);
                assert_eq!(encoded.encoding.as_ref().unwrap(), name);
                assert!(
                    encoded.body.len() * 5 < page.body().len(),
                    "{path}: {}",
                    encoded.body.len()
                );
            }
        }
    }

    #[test]
    fn base_url_ends_with_the_base_path() {
        for (url, base) in [
            (None, "/api/v1"),
            (Some("https://x.example"), "https://x.example/api/v1"),
            (
                Some("https://x.example/api/v1/"),
                "https://x.example/api/v1",
            ),
        ] {
            let config = PagesConfig {
                base_url: url.map(Into::into),
                ..PagesConfig::default()
            };
            assert_eq!(config.base(), base);
        }
    }
}
