//! Documents of the simulated backend, and the fields that the items of each must have.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use serde_json::Value;

use scoregate_base::{
    clock::Wall,
    routes::{
        DocumentKey, Limit, ModelId, Period, Route, SortBy,
        shapes::{self, FieldShape, ItemField},
    },
};

use crate::{hour::Hour, *};

pub const HOUR: Duration = Duration::from_hours(1);

pub fn now() -> Wall {
    Wall::parse_rfc3339("2026-11-21T12:34:00Z").unwrap()
}

pub fn demo() -> Scoring {
    Scoring::demo(7, now())
}

pub fn limit(number: u8) -> Limit {
    Limit::parse(&number.to_string()).unwrap()
}

pub fn asked(scoring: &Scoring, key: &DocumentKey) -> Vec<Value> {
    serde_json::from_slice(&scoring.answer(key).unwrap().data).unwrap()
}

pub fn rankings(scoring: &Scoring, period: Period, sort_by: SortBy) -> Vec<Value> {
    asked(
        scoring,
        &DocumentKey {
            sort_by: Some(sort_by),
            ..DocumentKey::over(Route::Models, period)
        },
    )
}

/// Every query, with the expected fields of its items.
pub fn every_question(scoring: &Scoring) -> Vec<(DocumentKey, &'static [ItemField])> {
    let mut all: Vec<(DocumentKey, &'static [ItemField])> = vec![
        (DocumentKey::plain(Route::Index), shapes::INDEX),
        (DocumentKey::plain(Route::Alerts), shapes::ALERT),
        (DocumentKey::plain(Route::Providers), shapes::PROVIDER),
    ];
    for period in Period::ALL {
        for sort_by in SortBy::ALL {
            all.push((
                DocumentKey {
                    sort_by: Some(sort_by),
                    ..DocumentKey::over(Route::Models, period)
                },
                shapes::RANKING,
            ));
        }
        all.push((
            DocumentKey {
                limit: Some(limit(100)),
                ..DocumentKey::over(Route::Incidents, period)
            },
            shapes::INCIDENT,
        ));
        all.push((
            DocumentKey::over(Route::Degradations, period),
            shapes::DEGRADATION,
        ));
        all.push((
            DocumentKey::over(Route::Recommendations, period),
            shapes::RECOMMENDATION,
        ));
        all.push((
            DocumentKey::over(Route::ProviderReliability, period),
            shapes::RELIABILITY,
        ));
        all.push((
            DocumentKey::over(Route::Transparency, period),
            shapes::TRANSPARENCY,
        ));
        for id in scoring.model_ids() {
            all.push((
                DocumentKey {
                    id: Some(id),
                    ..DocumentKey::over(Route::History, period)
                },
                shapes::HISTORY,
            ));
        }
    }
    for id in scoring.model_ids() {
        all.push((
            DocumentKey::of_model(Route::Model, id.clone()),
            shapes::MODEL,
        ));
        all.push((DocumentKey::of_model(Route::Drift, id), shapes::DRIFT));
    }
    all
}

pub fn check_object(value: &Value, fields: &[ItemField], of: &str) {
    let found: BTreeSet<&str> = value
        .as_object()
        .expect(of)
        .keys()
        .map(String::as_str)
        .collect();
    let all: BTreeSet<&str> = fields.iter().map(|field| field.name).collect();
    assert!(found.is_subset(&all), "{of}: {found:?}");
    for field in fields {
        match value.get(field.name) {
            Some(value) => check_field(value, field, &format!("{of}.{}", field.name)),
            None => assert!(field.presence.may_be_absent(), "{of}.{}", field.name),
        }
    }
}

fn check_field(value: &Value, field: &ItemField, of: &str) {
    let good = match &field.shape {
        FieldShape::Text => value.is_string(),
        FieldShape::Instant => value
            .as_str()
            .is_some_and(|text| Wall::parse_rfc3339(text).is_some()),
        FieldShape::Number => value.is_number(),
        FieldShape::Score => value
            .as_f64()
            .is_some_and(|score| (0.0..=100.0).contains(&score)),
        FieldShape::Integer => value.is_u64(),
        FieldShape::Flag => value.is_boolean(),
        FieldShape::Words(words) => value.as_str().is_some_and(|word| words.contains(&word)),
        FieldShape::Texts => value
            .as_array()
            .is_some_and(|all| all.iter().all(Value::is_string)),
        FieldShape::Object(fields) => {
            check_object(value, fields, of);
            true
        }
        FieldShape::Objects(fields) => {
            value
                .as_array()
                .expect(of)
                .iter()
                .for_each(|item| check_object(item, fields, of));
            true
        }
    };
    assert!(good, "{of}: {value}");
}

/// Times within a month that together cover every behaviour of the simulator.
pub fn instants() -> impl Iterator<Item = Wall> {
    (0..10_u32).map(|step| now().plus(HOUR * 67 * step))
}

/// The runs of the simulator in the last 10 days, as measured runs.
pub fn measured() -> Vec<Run> {
    let range = Hour::of(now()).last(240);
    simulate::models(7)
        .iter()
        .flat_map(|model| model.runs(range).collect::<Vec<_>>())
        .collect()
}

/// Number of hours of runs in [`leveled_runs`].
pub const HOURS: u32 = 35 * 24;

/// The runs of models that are `distance` points apart, and the end of the runs. `noise` is the noise of a model in an
/// hour.
pub fn leveled_runs(
    models: u32,
    distance: f64,
    noise: impl Fn(u32, u32) -> f64,
) -> (Vec<Run>, Wall) {
    let first = Wall::from_seconds(1_000_080_000);
    let mut runs = Vec::new();
    for index in 0..models {
        let id = ModelId::new(&format!("m{index:02}")).unwrap();
        let model = Arc::new(TestedModel::new(id, "M", "p", None, None).unwrap());
        for hour in 0..HOURS {
            let mark = (70.0 - distance * f64::from(index) + noise(index, hour)) / 100.0;
            for suite in Suite::DEFAULT {
                let outcome =
                    RunOutcome::Scored(vec![Trial::new([mark; 7], 1_000.0, 0.01).unwrap()]);
                runs.push(
                    Run::new(Arc::clone(&model), suite, first.plus(HOUR * hour), outcome).unwrap(),
                );
            }
        }
    }
    (runs, first.plus(HOUR * HOURS))
}
