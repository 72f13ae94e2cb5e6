//! All answers of one snapshot, rendered.

use std::collections::HashMap;

use bytes::Bytes;
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use scoregate_base::clock::Wall;
use scoregate_base::routes::{DocumentKey, ModelId, Period, Route, SortBy};

use super::{
    Item, alerts, degradations, drift, history, incidents, index, model, models, providers,
    recommendations, reliability, transparency,
};
use crate::answer::Answer;
use crate::hour::{Hour, of_period};
use crate::method;
use crate::model_state::ModelState;
use crate::ranks::parallel;
use crate::snapshot::Snapshot;
use crate::student::TailQuantiles;

/// Enough that a thread and its quantiles are worth their start.
const MODELS_OF_A_THREAD: usize = 64;

/// The rendered data of one snapshot.
#[derive(Debug)]
pub(crate) struct SnapshotAnswers {
    /// The hour they were made in.
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
    pub(crate) fn render(snapshot: &Snapshot) -> Self {
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
            for sort_by in SortBy::ALL {
                let key = DocumentKey {
                    sort_by: Some(sort_by),
                    ..DocumentKey::over(Route::Models, period)
                };
                answers.put(key, &models::items(snapshot, period, sort_by));
            }
            let mut put =
                |route, items: &[Item]| answers.put(DocumentKey::over(route, period), items);
            put(Route::Degradations, &degradations::items(snapshot, period));
            put(
                Route::Recommendations,
                &recommendations::items(snapshot, period),
            );
            put(
                Route::ProviderReliability,
                &reliability::items(snapshot, period),
            );
            put(Route::Transparency, &transparency::items(snapshot, period));
        }
        let hour = snapshot.hour;
        let ranked = models::of_day(snapshot);
        let alerts = alerts::find(snapshot);
        let parts: Vec<&[ModelState]> = snapshot.model_states.chunks(MODELS_OF_A_THREAD).collect();
        let documents = parallel::map(&parts, |part| {
            let quantiles = TailQuantiles::of(method::INTERVAL_TAIL);
            let of_model = |model_state: &ModelState| {
                let of = |route| DocumentKey::of_model(route, model_state.model.id().clone());
                let history = |period| {
                    (
                        Some(period),
                        Route::History,
                        history::items(model_state, period),
                    )
                };
                let [latest, day, week, month] = Period::ALL.map(history);
                let detail = vec![model::item(model_state, &ranked, &quantiles)];
                let drift = vec![drift::item(model_state, &alerts, hour)];
                [
                    (None, Route::Model, detail),
                    (None, Route::Drift, drift),
                    latest,
                    day,
                    week,
                    month,
                ]
                .map(|(period, route, items)| {
                    (
                        DocumentKey {
                            period,
                            ..of(route)
                        },
                        answers.rendered(&items),
                    )
                })
            };
            part.iter().flat_map(of_model).collect::<Vec<_>>()
        });
        answers.documents.extend(documents.into_iter().flatten());
        let best = ranked.first().map(|best| best.id());
        answers.put(
            DocumentKey::plain(Route::Index),
            &[index::item(snapshot, best)],
        );
        answers.put(DocumentKey::plain(Route::Alerts), &alerts::items(&alerts));
        answers.put(
            DocumentKey::plain(Route::Providers),
            &providers::items(snapshot),
        );
        answers
    }

    /// The data of a document; `None` if its model does not exist.
    pub(crate) fn answer(&self, key: &DocumentKey) -> Option<Answer> {
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
