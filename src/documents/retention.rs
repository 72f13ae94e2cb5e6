//! How long documents are fresh, how long they may be served stale, and how long requests wait for them. The functions
//! are pure. `cache::freshness` decides whether a single document may be served.

use std::time::Duration;

use crate::cache::{
    EnvelopeFields, StaleWindows, StoredDocument, ToolResultWriter,
    freshness::{FreshnessDates, KnownRefresh, dates},
};
use scoregate_base::{
    clock::{Mono, Wall},
    plans::FieldSets,
    routes::{DocumentKey, EndpointTable, Route},
};

/// The retention of documents.
#[derive(Clone, Debug)]
pub struct Retention {
    /// The lifetime of documents.
    pub lifetime: Lifetime,
    /// Lifetimes for specific endpoints.
    pub by_endpoint: Vec<(Route, Lifetime)>,
    /// The configured refresh interval, used if the backend's responses do not state one.
    pub cadence: Duration,
    /// Maximum time that a request waits for a fetch.
    pub fetch_timeout: Duration,
    /// Whether a refresher polls the backend for refreshes.
    pub probing: bool,
    /// Whether the refresher polls even if no document is in use, so that it is always known whether the data is stale.
    pub polls_when_idle: bool,
    /// The endpoints whose documents are stored.
    pub endpoints: EndpointTable,
    /// The attribution notice in every document.
    pub license: String,
    /// The sets of fields that tiers see.
    pub field_sets: FieldSets,
    /// Builds the tool results that are stored with documents, if there are tools.
    pub tool_result: Option<ToolResultWriter>,
}

/// The lifetime of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// How long a document may be served after its refresh was due.
    pub windows: StaleWindows,
    /// If set, a refresh is due this long after the document was confirmed, regardless of the backend's refreshes.
    pub ttl: Option<Duration>,
}

impl Retention {
    /// The envelope of a document.
    pub(super) fn label<'a>(&'a self, key: &'a DocumentKey) -> EnvelopeFields<'a> {
        let Self {
            license,
            field_sets,
            tool_result,
            ..
        } = self;
        EnvelopeFields {
            key,
            license,
            field_sets,
            tool_result: *tool_result,
        }
    }

    /// The lifetime of an endpoint's documents.
    pub fn lifetime(&self, route: Route) -> &Lifetime {
        self.by_endpoint
            .iter()
            .find(|(of, _)| *of == route)
            .map_or(&self.lifetime, |(_, lifetime)| lifetime)
    }

    /// The document, if any, that is kept current even when no request uses it.
    pub(super) fn polled_when_idle(&self) -> Option<DocumentKey> {
        let candidates = [
            DocumentKey::list_of_models(),
            DocumentKey::plain(Route::Providers),
        ];
        candidates
            .into_iter()
            .find(|key| self.lifetime(key.route).follows_the_backend())
            .filter(|_| self.probing && self.polls_when_idle)
    }

    /// The dates of a document that was confirmed at `now`.
    pub(super) fn dates(
        &self,
        route: Route,
        known: KnownRefresh,
        generated_at: Wall,
        now: Wall,
    ) -> FreshnessDates {
        match self.lifetime(route).ttl.map(|ttl| now.plus(ttl)) {
            Some(due) => FreshnessDates {
                due,
                revalidate_at: due,
            },
            None => dates(known, generated_at, self.cadence, now),
        }
    }
}

impl Lifetime {
    /// Whether a document's refresh is due when the backend refreshes.
    pub fn follows_the_backend(&self) -> bool {
        self.ttl.is_none()
    }

    /// Whether the backend has refreshed since a document was confirmed.
    pub(super) fn is_outdated(&self, stored: &StoredDocument, refreshed_at: Mono) -> bool {
        self.follows_the_backend() && stored.confirmed < refreshed_at
    }

    /// The time at which a document's refresh is or was due. The refresh of an outdated document was due when the backend
    /// refreshed, or earlier.
    pub(super) fn due(&self, stored: &StoredDocument, refreshed_at: Mono) -> Mono {
        if self.is_outdated(stored, refreshed_at) {
            stored.due.min(refreshed_at)
        } else {
            stored.due
        }
    }
}
