//! The status page and its Atom feed, rendered from a [`ServiceStatus`]. Pure: what is shown is collected in `status`.
//!
//! Times are absolute, and nothing on the page changes with time alone: equal content has equal bytes.

mod availability;
mod chart;
mod feed;
mod threads;
mod view;

use std::sync::Arc;

use super::content_policy::AllowedContent;
use super::{Page, STATUS};
use crate::clock::Wall;
use crate::routes::API_BASE;
use crate::store::StatusMessage;

pub use availability::{DayAvailability, SHOWN_DAYS, last_days};

pub(super) const FEED: &str = "/status.atom";
const ATOM: &str = "application/atom+xml; charset=utf-8";

/// Reused for half a minute, also by shared caches: these pages are the same for all clients.
const BRIEFLY: &str = "public, max-age=30";

/// The service that the pages are about. All texts are escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusSite {
    /// Its name.
    pub service: String,
    /// Its public address, for absolute links in the feed.
    pub base_url: Option<String>,
    /// Whether callers can sign up.
    pub sign_up: bool,
}

/// The state of the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataState {
    /// The time of the newest data.
    pub newest: Option<Wall>,
    /// The next expected refresh.
    pub expected: Option<Wall>,
    /// The refresh that is overdue, if the data is stale.
    pub stale_since: Option<Wall>,
}

/// The state of the service, as one gateway knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceStatus {
    /// Whether this gateway serves requests.
    pub is_ready: bool,
    /// Whether the store of keys and quotas failed.
    pub store_fails: bool,
    /// Whether the backend fails.
    pub backend_fails: bool,
    /// The state of the data.
    pub data: DataState,
    /// The last days, oldest first.
    pub days: Vec<DayAvailability>,
    /// The end of the counted minutes; `None` before the history was read.
    pub counted_until: Option<Wall>,
    /// The first stored minute of all.
    pub begun: Option<Wall>,
    /// Messages of the operator, newest first.
    pub messages: Vec<StatusMessage>,
}

/// The rendered pages.
#[derive(Clone, Debug)]
pub struct StatusPages {
    html: Arc<Page>,
    atom: Arc<Page>,
    changed_at: Wall,
}

impl StatusPages {
    /// Renders the pages for the first time.
    pub fn new(site: &StatusSite, status: &ServiceStatus, now: Wall) -> Self {
        let allowed = AllowedContent { style: view::STYLE, ..AllowedContent::default() };
        let html = Page::html(BRIEFLY, allowed, &view::page(site, status, now));
        let atom = Page::new(ATOM, BRIEFLY, atom(site, status).as_bytes());
        Self { html: Arc::new(html), atom: Arc::new(atom), changed_at: now }
    }

    /// The pages with other content; `None` if nothing on them has changed.
    pub fn changed(&self, site: &StatusSite, status: &ServiceStatus, now: Wall) -> Option<Self> {
        let is_same = *self.html.body() == view::page(site, status, self.changed_at)
            && *self.atom.body() == atom(site, status);
        (!is_same).then(|| Self::new(site, status, now))
    }

    /// The page at exactly this path.
    pub fn find(&self, path: &str) -> Option<Arc<Page>> {
        match path {
            STATUS => Some(Arc::clone(&self.html)),
            FEED => Some(Arc::clone(&self.atom)),
            _ => None,
        }
    }
}

fn atom(site: &StatusSite, status: &ServiceStatus) -> String {
    feed::feed(site, &status.messages, status.begun.unwrap_or_default())
}

impl StatusSite {
    /// The address of a path: absolute if the public address is configured.
    fn url(&self, path: &str) -> String {
        let url = self.base_url.as_deref().unwrap_or_default().trim_end_matches('/');
        format!("{}{path}", url.strip_suffix(API_BASE).unwrap_or(url))
    }
}

#[cfg(test)]
mod tests;
