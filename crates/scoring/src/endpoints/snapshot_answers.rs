//! All answers of one snapshot, rendered.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use data_encoding::HEXLOWER;
use serde::Serialize;
use sha2::{Digest, Sha256};

use scoregate_base::clock::Wall;
use scoregate_base::routes::{DocumentKey, ModelId, Period, Route, SortBy};

use super::super::answer::Answer;
use super::super::changes::ModelChanges;
use super::super::hour::{Hour, of_period};
use super::super::snapshot::Snapshot;
use super::{
    alerts, degradations, drift, history, incidents, index, model, models, providers, recommendations,
    reliability, transparency,
};

/// The rendered data of one snapshot.
#[derive(Debug)]
pub(in super::super) struct SnapshotAnswers {
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
    pub(in super::super) fn render(snapshot: &Snapshot) -> Self {
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
        let ranked = models::of_day(snapshot);
        for model_state in &snapshot.model_states {
            let of = |route| DocumentKey::of_model(route, model_state.model.id().clone());
            put(of(Route::Model), array(&[model::item(model_state, changes.of(model_state), &ranked)]));
            put(
                of(Route::Drift),
                array(&[drift::item(model_state, changes.of(model_state), &alerts, snapshot.hour)]),
            );
            for period in Period::ALL {
                let key = DocumentKey { period: Some(period), ..of(Route::History) };
                put(key, array(&history::items(model_state, period)));
            }
        }
        put(
            DocumentKey::plain(Route::Index),
            array(&[index::item(snapshot, ranked.first().map(|best| best.id()))]),
        );
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
    pub(in super::super) fn hour(&self) -> Hour {
        self.made_in
    }

    /// The last import included.
    pub(in super::super) fn imported(&self) -> Option<Wall> {
        self.imported
    }

    /// The ids of all models, sorted.
    pub(in super::super) fn model_ids(&self) -> &[ModelId] {
        &self.models
    }

    /// The data of a document; `None` if its model does not exist.
    pub(in super::super) fn answer(&self, key: &DocumentKey) -> Option<Answer> {
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
        let etag = format!("\"{}\"", HEXLOWER.encode(digest.get(..16).unwrap_or_default()));
        Self { data: Bytes::from(data), count, etag: etag.into() }
    }
}

fn array<T: Serialize>(items: &[T]) -> RenderedAnswer {
    RenderedAnswer::new(json(items), items.len())
}

fn json<T: Serialize + ?Sized>(item: &T) -> String {
    serde_json::to_string(item).expect("items are plain structs of text and numbers")
}
