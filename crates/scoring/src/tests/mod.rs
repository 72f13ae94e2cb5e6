//! Real responses against the promises of the backend: fields, intervals, determinism, refreshes.

mod cadence;
mod corrected;
mod dump;
mod failures;
mod incident_scan;
mod meaning;
mod properties;
mod reference;
mod simulated;
mod stated;
mod suites;

use scoregate_base::clock::Wall;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::Value;

use super::hour::Hour;
use super::*;
use scoregate_base::routes::shapes::{self, FieldShape, ItemField};
use scoregate_base::routes::{DocumentKey, ENDPOINTS, Limit, ModelId, Period, Query, Route, SortBy};

const HOUR: Duration = Duration::from_hours(1);

fn now() -> Wall {
    Wall::parse_rfc3339("2026-11-21T12:34:00Z").unwrap()
}

fn demo() -> Scoring {
    Scoring::demo(7, now())
}

fn limit(number: u8) -> Limit {
    Limit::parse(&number.to_string()).unwrap()
}

fn asked(scoring: &Scoring, key: &DocumentKey) -> Vec<Value> {
    serde_json::from_slice(&scoring.answer(key).unwrap().data).unwrap()
}

fn rankings(scoring: &Scoring, period: Period, sort_by: SortBy) -> Vec<Value> {
    asked(scoring, &DocumentKey { sort_by: Some(sort_by), ..DocumentKey::over(Route::Models, period) })
}

/// Every query, with the fields of its items.
fn every_question(scoring: &Scoring) -> Vec<(DocumentKey, &'static [ItemField])> {
    let mut all: Vec<(DocumentKey, &'static [ItemField])> = vec![
        (DocumentKey::plain(Route::Index), shapes::INDEX),
        (DocumentKey::plain(Route::Alerts), shapes::ALERT),
        (DocumentKey::plain(Route::Providers), shapes::PROVIDER),
    ];
    for period in Period::ALL {
        for sort_by in SortBy::ALL {
            all.push((
                DocumentKey { sort_by: Some(sort_by), ..DocumentKey::over(Route::Models, period) },
                shapes::RANKING,
            ));
        }
        all.push((
            DocumentKey { limit: Some(limit(100)), ..DocumentKey::over(Route::Incidents, period) },
            shapes::INCIDENT,
        ));
        all.push((DocumentKey::over(Route::Degradations, period), shapes::DEGRADATION));
        all.push((DocumentKey::over(Route::Recommendations, period), shapes::RECOMMENDATION));
        all.push((DocumentKey::over(Route::ProviderReliability, period), shapes::RELIABILITY));
        all.push((DocumentKey::over(Route::Transparency, period), shapes::TRANSPARENCY));
        for id in scoring.model_ids() {
            all.push((
                DocumentKey { id: Some(id), ..DocumentKey::over(Route::History, period) },
                shapes::HISTORY,
            ));
        }
    }
    for id in scoring.model_ids() {
        all.push((DocumentKey::of_model(Route::Model, id.clone()), shapes::MODEL));
        all.push((DocumentKey::of_model(Route::Drift, id), shapes::DRIFT));
    }
    all
}

fn check_object(value: &Value, fields: &[ItemField], of: &str) {
    let found: BTreeSet<&str> = value.as_object().expect(of).keys().map(String::as_str).collect();
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
        FieldShape::Instant => value.as_str().is_some_and(|text| Wall::parse_rfc3339(text).is_some()),
        FieldShape::Number => value.is_number(),
        FieldShape::Score => value.as_f64().is_some_and(|score| (0.0..=100.0).contains(&score)),
        FieldShape::Integer => value.is_u64(),
        FieldShape::Flag => value.is_boolean(),
        FieldShape::Words(words) => value.as_str().is_some_and(|word| words.contains(&word)),
        FieldShape::Texts => value.as_array().is_some_and(|all| all.iter().all(Value::is_string)),
        FieldShape::Object(fields) => {
            check_object(value, fields, of);
            true
        }
        FieldShape::Objects(fields) => {
            value.as_array().expect(of).iter().for_each(|item| check_object(item, fields, of));
            true
        }
    };
    assert!(good, "{of}: {value}");
}

/// Times of a month, so that every behaviour of the simulator occurs.
fn instants() -> impl Iterator<Item = Wall> {
    (0..10_u32).map(|step| now().plus(HOUR * 67 * step))
}

/// The last 10 days of the simulator, as measured runs.
fn measured() -> Vec<Run> {
    let range = Hour::of(now()).last(240);
    simulate::models(7).iter().flat_map(|model| model.runs(range).collect::<Vec<_>>()).collect()
}

#[test]
fn every_item_has_exactly_the_fields_and_words_of_its_endpoint() {
    let mut met = BTreeSet::new();
    for now in instants() {
        let scoring = Scoring::demo(7, now);
        for (question, fields) in every_question(&scoring) {
            for item in asked(&scoring, &question) {
                check_object(&item, fields, &format!("{question:?}"));
                met.insert(fields.as_ptr());
            }
        }
    }
    // Alerts, incidents and degradations occurred too.
    assert_eq!(met.len(), 12);
}

#[test]
fn an_interval_contains_its_score_for_every_model_and_period() {
    for now in instants().step_by(3) {
        let scoring = Scoring::demo(7, now);
        let mut held = 0;
        for (question, fields) in every_question(&scoring) {
            if !fields.iter().any(|field| field.name == "confidenceLower") {
                continue;
            }
            for item in asked(&scoring, &question) {
                let score = item.get("currentScore").or(item.get("score")).and_then(Value::as_f64);
                let bounds = (item["confidenceLower"].as_f64(), item["confidenceUpper"].as_f64());
                match (score, bounds) {
                    (Some(score), (Some(lower), Some(upper))) => {
                        assert!(0.0 <= lower && lower <= score && score <= upper && upper <= 100.0, "{item}");
                        held += 1;
                    }
                    (score, bounds) => assert_eq!((score, bounds), (None, (None, None)), "{item}"),
                }
            }
        }
        assert!(held > 1_000);
    }
}

#[test]
fn the_order_in_which_runs_come_changes_nothing() {
    let runs = measured();
    let mut mixed = runs.clone();
    mixed.sort_by_key(|run| (run.at().seconds() * 7_919) % 10_007);
    assert_ne!(runs, mixed);
    let (one, other) = (
        Scoring::open(RunSource::Runs(runs), now()).unwrap(),
        Scoring::open(RunSource::Runs(mixed), now()).unwrap(),
    );
    for (question, _) in every_question(&one) {
        assert_eq!(one.answer(&question), other.answer(&question), "{question:?}");
    }
}

#[test]
fn the_same_seed_and_hour_give_the_same_bytes_and_another_seed_gives_others() {
    let (one, later) = (demo(), Scoring::demo(7, now().plus(Duration::from_mins(10))));
    for (question, _) in every_question(&one) {
        assert_eq!(one.answer(&question), later.answer(&question), "{question:?}");
    }
    let models =
        DocumentKey { sort_by: Some(SortBy::Combined), ..DocumentKey::over(Route::Models, Period::Week) };
    let other = Scoring::demo(8, now()).answer(&models).unwrap();
    let same = one.answer(&models).unwrap();
    assert!(other.data != same.data && other.etag != same.etag);
}

#[test]
fn refresh_replaces_the_snapshot_hourly_and_catches_up_in_one_step() {
    let scoring = Scoring::demo(7, now());
    let stamp = || scoring.answer(&DocumentKey::plain(Route::Index)).unwrap();
    assert_eq!(stamp().generated_at.rfc3339(), "2026-11-21T12:00:00Z");
    assert_eq!(stamp().next_refresh.rfc3339(), "2026-11-21T13:00:00Z");
    assert_eq!(scoring.next_refresh(), stamp().next_refresh);
    assert!(!scoring.refresh(now().plus(Duration::from_mins(25))).unwrap());
    let later = now().plus(HOUR * 9);
    let swaps = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                swaps.fetch_add(u32::from(scoring.refresh(later).unwrap()), Ordering::Relaxed);
                assert_eq!(stamp().generated_at.rfc3339(), "2026-11-21T21:00:00Z");
            });
        }
    });
    assert_eq!(swaps.into_inner(), 1);
    assert!(!scoring.refresh(now()).unwrap(), "a clock that went back");
    let fresh = Scoring::demo(7, later);
    for (question, _) in every_question(&fresh) {
        assert_eq!(scoring.answer(&question), fresh.answer(&question));
    }
}

#[test]
fn exactly_the_stored_endpoints_have_data() {
    let scoring = demo();
    for endpoint in &ENDPOINTS {
        let id = scoring.model_ids().into_iter().next();
        let key = DocumentKey::new(endpoint.route, id, Query::default(), Period::Latest);
        assert_eq!(scoring.answer(&key).is_some(), endpoint.stored, "{key}");
    }
}

#[test]
fn a_run_of_the_running_hour_counts_when_the_hour_is_over() {
    let mut runs = measured();
    let before = Scoring::open(RunSource::Runs(runs.clone()), now()).unwrap();
    runs.extend(simulate::models(7).iter().flat_map(|model| model.round(Hour::of(now()))));
    let scoring = Scoring::open(RunSource::Runs(runs), now()).unwrap();
    let models =
        DocumentKey { sort_by: Some(SortBy::Combined), ..DocumentKey::over(Route::Models, Period::Day) };
    assert_eq!(scoring.answer(&models), before.answer(&models));
    assert!(scoring.refresh(now().plus(HOUR)).unwrap());
    assert_ne!(scoring.answer(&models).unwrap().etag, before.answer(&models).unwrap().etag);
}

#[test]
fn unknown_model_has_no_document() {
    let id = || ModelId::new("nobody").unwrap();
    let scoring = demo();
    assert_eq!(scoring.answer(&DocumentKey::of_model(Route::Model, id())), None);
    assert_eq!(scoring.answer(&DocumentKey::of_model(Route::Drift, id())), None);
    assert_eq!(
        scoring.answer(&DocumentKey { id: Some(id()), ..DocumentKey::over(Route::History, Period::Week) }),
        None
    );
    assert!(scoring.model_ids().is_sorted() && scoring.model_ids().len() == 14);
}

#[test]
fn backend_without_runs_returns_empty_arrays() {
    let scoring = Scoring::open(RunSource::Runs(vec![]), Wall::default()).unwrap();
    for (question, fields) in every_question(&scoring) {
        for item in asked(&scoring, &question) {
            check_object(&item, fields, "empty");
            assert_eq!(question, DocumentKey::plain(Route::Index));
        }
    }
}
