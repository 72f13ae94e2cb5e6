//! The endpoints' data, one file each: a snapshot becomes items with exactly the fields of `routes::shapes`. A field
//! without a value is omitted: a client reads `null` as zero.
//!
//! Rendered when a snapshot is made, never per query; only the list of incidents is cut to its limit per query.

mod alerts;
mod degradations;
mod drift;
mod history;
mod incidents;
mod index;
mod model;
mod models;
mod providers;
mod recommendations;
mod reliability;
mod transparency;

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};

use crate::clock::Wall;
use crate::routes::{DocumentKey, ModelId, Period, Route, SortBy};

use super::Answer;
use super::changes::ModelChanges;
use super::hour::{Hour, of_period};
use super::snapshot::Snapshot;

/// The rendered data of one snapshot.
#[derive(Debug)]
pub(super) struct SnapshotAnswers {
    made_in: Hour,
    at: Wall,
    imported: Option<Wall>,
    models: Vec<ModelId>,
    rendered: HashMap<DocumentKey, RenderedAnswer>,
    /// All incidents of each period, newest first, each rendered.
    incidents: [Vec<String>; 4],
}

#[derive(Debug)]
struct RenderedAnswer {
    data: Bytes,
    count: usize,
    etag: Arc<str>,
}

impl SnapshotAnswers {
    /// Renders all data of a snapshot.
    pub(super) fn render(snapshot: &Snapshot) -> Self {
        let mut rendered = HashMap::new();
        let mut put = |key, answer| rendered.insert(key, answer);
        let alerts = alerts::find(snapshot);
        let changes = ModelChanges::among(&snapshot.model_states);
        for period in Period::ALL {
            for sort_by in SortBy::ALL {
                let key = DocumentKey { sort_by: Some(sort_by), ..DocumentKey::over(Route::Models, period) };
                put(key, array(&models::items(snapshot, &changes, period, sort_by)));
            }
            let over = |route| DocumentKey::over(route, period);
            put(over(Route::Degradations), array(&degradations::items(snapshot, &changes, period)));
            put(over(Route::Recommendations), array(&recommendations::items(snapshot, period)));
            put(over(Route::ProviderReliability), array(&reliability::items(snapshot, period)));
            put(over(Route::Transparency), array(&transparency::items(snapshot, period)));
        }
        for model_state in &snapshot.model_states {
            let of = |route| DocumentKey::of_model(route, model_state.model.id().clone());
            put(of(Route::Model), array(&[model::item(model_state, changes.of(model_state))]));
            put(
                of(Route::Drift),
                array(&[drift::item(model_state, changes.of(model_state), &alerts, snapshot.hour)]),
            );
            for period in Period::ALL {
                let key = DocumentKey { period: Some(period), ..of(Route::History) };
                put(key, array(&history::items(model_state, period)));
            }
        }
        put(DocumentKey::plain(Route::Index), array(&[index::item(snapshot)]));
        put(DocumentKey::plain(Route::Alerts), array(&alerts::items(&alerts)));
        put(DocumentKey::plain(Route::Providers), array(&providers::items(snapshot)));
        Self {
            made_in: snapshot.made_in,
            at: snapshot.at,
            imported: snapshot.imported,
            models: snapshot.model_states.iter().map(|model_state| model_state.model.id().clone()).collect(),
            rendered,
            incidents: Period::ALL
                .map(|period| incidents::items(snapshot, period).iter().map(json).collect()),
        }
    }

    /// The hour they were made in.
    pub(super) fn hour(&self) -> Hour {
        self.made_in
    }

    /// The last import included.
    pub(super) fn imported(&self) -> Option<Wall> {
        self.imported
    }

    /// The ids of all models, sorted.
    pub(super) fn model_ids(&self) -> &[ModelId] {
        &self.models
    }

    /// The data of a document; `None` if its model does not exist.
    pub(super) fn answer(&self, key: &DocumentKey) -> Option<Answer> {
        if let DocumentKey { route: Route::Incidents, period: Some(period), limit: Some(limit), .. } = key {
            let all = of_period(*period, &self.incidents);
            let newest: Vec<&str> = all.iter().take(limit.get().into()).map(String::as_str).collect();
            return Some(self.stamped(&RenderedAnswer::new(format!("[{}]", newest.join(",")), newest.len())));
        }
        self.rendered.get(key).map(|rendered| self.stamped(rendered))
    }

    fn stamped(&self, RenderedAnswer { data, count, etag }: &RenderedAnswer) -> Answer {
        Answer {
            data: data.clone(),
            count: *count,
            generated_at: self.at,
            next_refresh: self.made_in.plus(1).start(),
            etag: Arc::clone(etag),
        }
    }
}

impl RenderedAnswer {
    fn new(data: String, count: usize) -> Self {
        let digest = Sha256::digest(data.as_bytes());
        let mut etag = String::from("\"");
        for byte in digest.iter().take(16) {
            write!(etag, "{byte:02x}").expect("writing to a string does not fail");
        }
        etag.push('"');
        Self { data: Bytes::from(data), count, etag: etag.into() }
    }
}

fn array<T: Serialize>(items: &[T]) -> RenderedAnswer {
    RenderedAnswer::new(json(items), items.len())
}

fn json<T: Serialize + ?Sized>(item: &T) -> String {
    serde_json::to_string(item).expect("items are plain structs of text and numbers")
}

/// Serializes a time in the API's format.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands fields over by reference")]
fn instant<S: Serializer>(at: &Wall, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&at.rfc3339())
}

/// Like [`instant`]. Fields without a value are omitted, so `None` does not occur.
#[expect(clippy::ref_option, reason = "serde hands fields over by reference")]
fn maybe_instant<S: Serializer>(at: &Option<Wall>, serializer: S) -> Result<S::Ok, S::Error> {
    at.map(Wall::rfc3339).serialize(serializer)
}
