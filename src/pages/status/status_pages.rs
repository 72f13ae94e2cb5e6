//! The rendered status page and its feed.

use std::sync::Arc;

use scoregate_base::clock::Wall;

use super::{
    feed,
    service_status::{ServiceStatus, StatusSite},
    view,
};
use crate::pages::{Page, STATUS, content_policy::AllowedContent};

pub const FEED: &str = "/status.atom";
const ATOM: &str = "application/atom+xml; charset=utf-8";

/// `Cache-Control` of these pages. They are the same for all clients, so even shared caches may reuse them for half a
/// minute.
const BRIEFLY: &str = "public, max-age=30";

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
        let allowed = AllowedContent {
            style: view::STYLE,
            ..AllowedContent::default()
        };
        let html = Page::html(BRIEFLY, allowed, &view::page(site, status, now));
        let atom = Page::new(ATOM, BRIEFLY, atom(site, status).as_bytes());
        Self {
            html: Arc::new(html),
            atom: Arc::new(atom),
            changed_at: now,
        }
    }

    /// Renders the pages with new content. `None` if nothing on the pages has changed.
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
