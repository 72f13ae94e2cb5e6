//! The public pages that need no key: landing page, docs, API description, icon, and the files of `discovery`.
//!
//! Generated once at start from the tables in `routes` and the configured tiers, so they always agree with the
//! gateway. They load nothing but the icon: no script, no font, no image. The docs page contains one inline script,
//! which it works without; the script sends requests to this service when the reader says so. `/healthz` is answered by the gateway.

pub mod account;
mod colour;
mod content_policy;
mod discovery;
mod docs;
mod escape;
mod html;
mod icon;
mod openapi;
mod sample;
pub mod status;
mod terms;

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderValue;

use crate::cache::{ContentCoding, EncodedBodies, Representation};
use crate::clock::Wall;
use crate::keys::{Tier, standard_tiers};
use crate::routes::{API_BASE, Endpoint, Param, PublishedField, SourceDescription};
use content_policy::{AllowedContent, FILE_POLICY};
use discovery::{API_CATALOG, SECURITY_TXT, SecurityTxt};
use sample::SampleAnswer;

pub use discovery::SiteLinks;
pub(crate) use escape::escape;
pub use terms::default_terms;

const HTML: &str = "text/html; charset=utf-8";
const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";
const ICON: &str = "image/x-icon";

/// A page is revalidated before each use. No shared cache may store it: it has the limit headers of one client.
const REVALIDATED: &str = "private, no-cache";
/// The icon is reused for a day.
const REUSED: &str = "private, max-age=86400";

const DOCS: &str = "/docs";
const OPENAPI: &str = "/openapi.json";
const STATUS: &str = "/status";
/// Paths of accounts begin with this.
const ACCOUNT: &str = "/account";
const ACCOUNT_SIGN_IN: &str = "/account/sign-in";

/// The values on the pages besides the tables. All are escaped.
#[derive(Clone, Debug)]
pub struct PagesConfig {
    /// The service's name.
    pub service: String,
    /// The attribution sentence, as in the envelope.
    pub license: String,
    /// The data API's version, as in the envelope.
    pub version: String,
    /// The tiers, lowest first.
    pub tiers: Vec<Tier>,
    /// The address for clients, with or without a trailing `/api/v1`. Without it, the pages show `/api/v1` without a
    /// host.
    pub base_url: Option<String>,
    /// The address of the port if only this machine reaches it, for examples without a `base_url`.
    pub local_url: Option<String>,
    /// Prefix of keys, for examples.
    pub key_prefix: String,
    /// A model for the examples, if the backend is known to have one.
    pub example_model: Option<String>,
    /// Refusals per minute allowed by the guard.
    pub guard_per_minute: u32,
    /// Documented properties of a mapped data source.
    pub source: SourceDescription,
    /// Whether the service has a status page.
    pub status_page: bool,
    /// Whether callers can sign up.
    pub sign_up: bool,
    /// The terms of use, one sentence each.
    pub terms: Vec<String>,
    /// Contacts and links of the operator.
    pub links: SiteLinks,
}

impl Default for PagesConfig {
    fn default() -> Self {
        Self {
            service: "scoregate".into(),
            license: "Data by scoregate. Wherever it is shown, the source must be cited with a link.".into(),
            version: "1.0.0".into(),
            tiers: standard_tiers(),
            base_url: None,
            local_url: None,
            key_prefix: "sg_live".into(),
            example_model: None,
            guard_per_minute: 60,
            source: SourceDescription::default(),
            status_page: false,
            sign_up: false,
            terms: default_terms("scoregate"),
            links: SiteLinks::default(),
        }
    }
}

/// The model in the examples; the simulated data always contains it.
pub const EXAMPLE_MODEL: &str = sample::MODEL;

/// A prepared page.
#[derive(Clone, Debug)]
pub struct Page {
    /// Its media type.
    pub content_type: &'static str,
    /// Its `Cache-Control`.
    pub cache_control: &'static str,
    /// Its `Link`.
    pub link: Option<&'static str>,
    /// Its `Content-Security-Policy`.
    pub content_policy: HeaderValue,
    /// Its bytes in all encodings. Equal bytes have equal tags on every machine.
    encoded: EncodedBodies,
}

/// All pages.
#[derive(Clone, Debug)]
pub struct Pages {
    landing: Arc<Page>,
    docs: Arc<Page>,
    openapi: Arc<Page>,
    robots: Arc<Page>,
    icon: Arc<Page>,
    api_catalog: Option<Arc<Page>>,
    security_txt: Option<SecurityTxt>,
}

impl Pages {
    /// Generates them. Takes milliseconds; done once.
    pub fn build(config: &PagesConfig) -> Self {
        Self {
            landing: Arc::new(Page::html(REVALIDATED, docs::LANDING_CONTENT, &docs::landing(config))),
            docs: Arc::new(Page::html(REVALIDATED, docs::CONTENT, &docs::page(config))),
            openapi: Arc::new(Page::new(JSON, REVALIDATED, openapi::document(config).as_bytes())),
            robots: Arc::new(Page::new(TEXT, REVALIDATED, discovery::robots(config).as_bytes())),
            icon: Arc::new(Page::new(ICON, REUSED, &icon::file())),
            api_catalog: discovery::api_catalog(config).map(Arc::new),
            security_txt: SecurityTxt::of(config),
        }
    }

    /// The page at exactly this path. The content of one depends on the day.
    pub fn find(&self, path: &str, now: Wall) -> Option<Arc<Page>> {
        match path {
            "/" => Some(&self.landing),
            DOCS => Some(&self.docs),
            OPENAPI => Some(&self.openapi),
            "/robots.txt" => Some(&self.robots),
            "/favicon.ico" => Some(&self.icon),
            API_CATALOG => self.api_catalog.as_ref(),
            SECURITY_TXT => return self.security_txt.as_ref().map(|file| Arc::new(file.page(now))),
            _ => None,
        }
        .cloned()
    }

    /// The page that this path permanently redirects to.
    pub fn moved(path: &str) -> Option<&'static str> {
        (path == "/docs/").then_some(DOCS)
    }
}

impl Page {
    /// Encodes the body: for pages that are stored.
    fn new(content_type: &'static str, cache_control: &'static str, body: &[u8]) -> Self {
        Self::of(content_type, cache_control, EncodedBodies::new(body, Wall::default()))
    }

    fn of(content_type: &'static str, cache_control: &'static str, encoded: EncodedBodies) -> Self {
        let content_policy = HeaderValue::from_static(FILE_POLICY);
        Self { content_type, cache_control, encoded, link: None, content_policy }
    }

    /// Its bytes without encoding.
    pub fn body(&self) -> &Bytes {
        self.encoded.plain()
    }

    /// The representation for a client that prefers `encoding`.
    pub fn choose(&self, encoding: ContentCoding) -> &Representation {
        self.encoded.choose(encoding)
    }

    /// Whether shared caches may store it.
    pub fn is_public(&self) -> bool {
        self.cache_control.starts_with("public")
    }

    fn html(cache_control: &'static str, allowed: AllowedContent<'_>, body: &str) -> Self {
        let policy = HeaderValue::try_from(allowed.policy()).expect("the policy is visible ASCII");
        Self { content_policy: policy, ..Self::new(HTML, cache_control, body.as_bytes()) }
    }
}

impl PagesConfig {
    /// The listed fields of an endpoint whose items have the shape of the data source.
    fn listed(&self, endpoint: &Endpoint) -> Option<&[PublishedField]> {
        self.source.fields.get(&endpoint.route).map(Vec::as_slice)
    }

    /// The parameters of an endpoint that the data source ignores.
    fn ignored(&self, endpoint: &Endpoint) -> &[Param] {
        self.source.ignored.get(&endpoint.route).map_or(&[], Vec::as_slice)
    }

    /// A whole response of an endpoint.
    fn sample(&self, endpoint: &Endpoint) -> SampleAnswer<'_> {
        SampleAnswer::of(endpoint, &self.version, &self.license).listing(self.listed(endpoint))
    }

    /// The public address of `/`, without the slash.
    fn root(&self) -> Option<&str> {
        let url = self.base_url.as_deref()?.trim_end_matches('/');
        Some(url.strip_suffix(API_BASE).unwrap_or(url))
    }

    /// The base address of all data paths, ending in `/api/v1`; without a host if none is configured.
    fn base(&self) -> String {
        format!("{}{API_BASE}", self.root().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Wall = Wall::from_seconds(0);

    #[test]
    fn pages_are_found_by_their_exact_path_only() {
        let pages = Pages::build(&PagesConfig::default());
        for (path, kind) in [
            ("/", HTML),
            ("/docs", HTML),
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
        let (one, two) = (Pages::build(&PagesConfig::default()), Pages::build(&PagesConfig::default()));
        let other = Pages::build(&PagesConfig { service: "other".into(), ..PagesConfig::default() });
        for path in ["/", "/docs", "/openapi.json"] {
            for encoding in [ContentCoding::Identity, ContentCoding::Gzip, ContentCoding::Brotli] {
                let [one, two, other] = [&one, &two, &other].map(|pages| pages.find(path, NOW).unwrap());
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
                assert!(encoded.body.len() * 5 < page.body().len(), "{path}: {}", encoded.body.len());
            }
        }
    }

    #[test]
    fn base_url_ends_with_the_base_path() {
        for (url, base) in [
            (None, "/api/v1"),
            (Some("https://x.example"), "https://x.example/api/v1"),
            (Some("https://x.example/api/v1/"), "https://x.example/api/v1"),
        ] {
            let config = PagesConfig { base_url: url.map(Into::into), ..PagesConfig::default() };
            assert_eq!(config.base(), base);
        }
    }
}
