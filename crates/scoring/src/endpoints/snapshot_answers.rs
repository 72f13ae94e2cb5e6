//! All rendered answers of one snapshot.

use std::collections::HashMap;

use bytes::Bytes;
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use scoregate_base::{
    clock::Wall,
    routes::{DocumentKey, ModelId, Period, Route, SortBy},
};

use super::{
    Item, alerts, degradations, drift, history, incidents, index, model, models, providers,
    recommendations, reliability, transparency,
};
use crate::{
    answer::Answer,
    hour::{Hour, of_period},
    losses::SureLoss,
    method,
    model_state::ModelState,
    ranks::parallel,
    snapshot::Snapshot,
    student::TailQuantiles,
};

/// Minimum number of models per thread that makes it worth starting a thread and filling its quantile table.
const MODELS_OF_A_THREAD: usize = 64;

/// The rendered data of one snapshot.
#[derive(Debug)]
pub struct SnapshotAnswers {
    /// The hour in which the snapshot was made.
    pub made_in: Hour,
    at: Wall,
    /// The last import included.
    pub imported: Option<Wall>,
    /// The ids of all models, sorted.
    pub models: Vec<ModelId>,
    documents: HashMap<DocumentKey, Answer>,
    /// All incidents of each period, newest first.
    incidents: [Vec<Item>; 4],
}

impl SnapshotAnswers {
    /// Renders all data of a snapshot.
    pub fn render(snapshot: &Snapshot) -> Self {
        let mut answers = Self {
            made_in: snapshot.made_in,
            at: snapshot.at,
            imported: snapshot.imported,
            models: snapshot
                .model_states
                .iter()
                .map(|model_state| model_state.model.id().clone())
                .collect(),
            documents: HashMap::new(),
            incidents: Period::ALL.map(|period| incidents::items(snapshot, period)),
        };
        for period in Period::ALL {
            answers.put_period(snapshot, period);
        }
        let ranked = models::of_day(snapshot);
        let alerts = alerts::find(snapshot);
        let of_models = answers.of_models(snapshot, &ranked, &alerts);
        answers.documents.extend(of_models.into_iter().flatten());
        let index = [index::item(snapshot, models::best(snapshot))];
        answers.put(DocumentKey::plain(Route::Index), &index);
        answers.put(DocumentKey::plain(Route::Alerts), &alerts::items(&alerts));
        let providers = providers::items(snapshot);
        answers.put(DocumentKey::plain(Route::Providers), &providers);
        answers
    }

    /// Renders the documents about all models over a period.
    fn put_period(&mut self, snapshot: &Snapshot, period: Period) {
        for sort_by in SortBy::ALL {
            let key = DocumentKey {
                sort_by: Some(sort_by),
                ..DocumentKey::over(Route::Models, period)
            };
            self.put(key, &models::items(snapshot, period, sort_by));
        }
        for (route, items) in [
            (Route::Degradations, degradations::items(snapshot, period)),
            (
                Route::Recommendations,
                recommendations::items(snapshot, period),
            ),
            (
                Route::ProviderReliability,
                reliability::items(snapshot, period),
            ),
            (Route::Transparency, transparency::items(snapshot, period)),
        ] {
            self.put(DocumentKey::over(route, period), &items);
        }
    }

    /// Renders the documents of all models, using all processors.
    fn of_models(
        &self,
        snapshot: &Snapshot,
        ranked: &[&ModelState],
        alerts: &[SureLoss<'_>],
    ) -> Vec<Vec<(DocumentKey, Answer)>> {
        let parts: Vec<&[ModelState]> = snapshot.model_states.chunks(MODELS_OF_A_THREAD).collect();
        let hour = snapshot.hour;
        parallel::map(&parts, |part| {
            let quantiles = TailQuantiles::of(method::INTERVAL_TAIL);
            let mut documents = Vec::new();
            for model_state in *part {
                let detail = model::item(model_state, ranked, &quantiles);
                let drift = drift::item(model_state, alerts, hour);
                documents.extend(self.of_model(model_state, detail, drift));
            }
            documents
        })
    }

    /// Renders the documents of a model.
    fn of_model(
        &self,
        model_state: &ModelState,
        detail: Item,
        drift: Item,
    ) -> impl Iterator<Item = (DocumentKey, Answer)> {
        let key = |route| DocumentKey::of_model(route, model_state.model.id().clone());
        let histories = Period::ALL.map(|period| {
            let key = DocumentKey {
                period: Some(period),
                ..key(Route::History)
            };
            (key, self.rendered(&history::items(model_state, period)))
        });
        let items = [(Route::Model, detail), (Route::Drift, drift)];
        items
            .map(|(route, item)| (key(route), self.rendered(&[item])))
            .into_iter()
            .chain(histories)
    }

    /// The data of a document; `None` if its model does not exist.
    pub fn answer(&self, key: &DocumentKey) -> Option<Answer> {
        if let DocumentKey {
            route: Route::Incidents,
            period: Some(period),
            limit: Some(limit),
            ..
        } = key
        {
            let all = of_period(*period, &self.incidents);
            return Some(self.rendered(all.get(..limit.get().into()).unwrap_or(all)));
        }
        self.documents.get(key).cloned()
    }

    fn put(&mut self, key: DocumentKey, items: &[Item]) {
        self.documents.insert(key, self.rendered(items));
    }

    fn rendered(&self, items: &[Item]) -> Answer {
        let data = Item::list(items);
        let digest = Sha256::digest(&data);
        Answer {
            data: Bytes::from(data),
            count: items.len(),
            generated_at: self.at,
            next_refresh: self.made_in.plus(1).start(),
            etag: format!(
                "\"{}\"",
                HEXLOWER.encode(digest.get(..16).unwrap_or_default())
            )
            .into(),
        }
    }
}
