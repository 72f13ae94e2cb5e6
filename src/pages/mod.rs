//! The public pages, which need no key: landing page, docs, API description, icon, and the files of `discovery`.
//!
//! The pages are generated once at startup from the tables in `routes` and the configured tiers, so they always agree
//! with the gateway. They load only the icon, and no script, font or other image. The docs page also works without its
//! inline script, which sends requests to this service when the reader submits a form. The gateway answers `/healthz`.

pub mod account;
mod content_policy;
mod discovery;
mod docs;
mod escape;
mod html;
mod mail_html;
mod openapi;
mod page;
mod pages_config;
mod paths;
mod sample;
mod site_links;
mod site_pages;
pub mod status;
mod terms;

pub(crate) use html::fill;
pub(crate) use mail_html::mail_html;
pub use page::Page;
pub use pages_config::PagesConfig;
pub use paths::{ACCOUNT_SIGN_IN, MCP};
use paths::{DOCS, OPENAPI, STATUS};
pub use sample::EXAMPLE_MODEL;
pub use site_links::SiteLinks;
pub use site_pages::Pages;
pub use terms::default_terms;
