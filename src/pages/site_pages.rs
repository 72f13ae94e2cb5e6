//! All pages, generated once at start.

use std::sync::Arc;

use scoregate_base::clock::Wall;

use super::discovery::{
    API_CATALOG, REGISTRY_AUTH, SECURITY_TXT, SERVER_CARD, SERVER_JSON, SecurityTxt,
};
use super::page::{ICON, JSON, MARKDOWN, Page, REUSED, REVALIDATED, TEXT};
use super::pages_config::PagesConfig;
use super::paths::{DOCS, DOCS_MARKDOWN, LLMS_TXT, OPENAPI};
use super::{discovery, docs, openapi};

/// All pages.
#[derive(Clone, Debug)]
pub struct Pages {
    landing: Arc<Page>,
    docs: Arc<Page>,
    docs_markdown: Arc<Page>,
    openapi: Arc<Page>,
    llms: Arc<Page>,
    robots: Arc<Page>,
    icon: Arc<Page>,
    api_catalog: Option<Arc<Page>>,
    security_txt: Option<SecurityTxt>,
    /// Description and card of the service for language models.
    mcp: Option<[Arc<Page>; 2]>,
    registry_auth: Option<Arc<Page>>,
}

impl Pages {
    /// Generates them. Takes milliseconds; done once.
    pub fn build(config: &PagesConfig) -> Self {
        let docs = docs::page(config);
        Self {
            landing: Arc::new(Page::html(
                REVALIDATED,
                docs::LANDING_CONTENT,
                &docs::landing(config),
            )),
            docs: Arc::new(Page::html(REVALIDATED, docs::CONTENT, &docs)),
            docs_markdown: Arc::new(Page::new(
                MARKDOWN,
                REVALIDATED,
                docs::markdown(&docs).as_bytes(),
            )),
            llms: Arc::new(Page::new(
                TEXT,
                REVALIDATED,
                discovery::llms(config).as_bytes(),
            )),
            openapi: Arc::new(Page::new(
                JSON,
                REVALIDATED,
                openapi::document(config).as_bytes(),
            )),
            robots: Arc::new(Page::new(
                TEXT,
                REVALIDATED,
                discovery::robots(config).as_bytes(),
            )),
            icon: Arc::new(Page::new(ICON, REUSED, include_bytes!("favicon.ico"))),
            api_catalog: discovery::api_catalog(config).map(Arc::new),
            security_txt: SecurityTxt::of(config),
            mcp: discovery::mcp_documents(config).map(|documents| documents.map(Arc::new)),
            registry_auth: config
                .registry_auth
                .as_ref()
                .map(|text| Arc::new(Page::new(TEXT, REVALIDATED, text.as_bytes()))),
        }
    }

    /// The Markdown for a path that has HTML too.
    pub fn find_markdown(&self, path: &str) -> Option<Arc<Page>> {
        ["/", DOCS]
            .contains(&path)
            .then(|| Arc::clone(&self.docs_markdown))
    }

    /// The page at exactly this path. The content of one depends on the day.
    pub fn find(&self, path: &str, now: Wall) -> Option<Arc<Page>> {
        match path {
            "/" => Some(&self.landing),
            DOCS => Some(&self.docs),
            DOCS_MARKDOWN => Some(&self.docs_markdown),
            LLMS_TXT => Some(&self.llms),
            OPENAPI => Some(&self.openapi),
            "/robots.txt" => Some(&self.robots),
            "/favicon.ico" => Some(&self.icon),
            API_CATALOG => self.api_catalog.as_ref(),
            REGISTRY_AUTH => self.registry_auth.as_ref(),
            SERVER_JSON => self.mcp.as_ref().map(|[server, _]| server),
            SERVER_CARD => self.mcp.as_ref().map(|[_, card]| card),
            SECURITY_TXT => {
                return self
                    .security_txt
                    .as_ref()
                    .map(|file| Arc::new(file.page(now)));
            }
            _ => None,
        }
        .cloned()
    }

    /// The page that this path permanently redirects to.
    pub fn moved(path: &str) -> Option<&'static str> {
        (path == "/docs/").then_some(DOCS)
    }
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
