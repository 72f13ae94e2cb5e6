//! Responses: fields, intervals, determinism and refreshes.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use scoregate_base::{
    clock::Wall,
    routes::{DocumentKey, ENDPOINTS, ModelId, Period, Query, Route, SortBy},
};

use super::fixtures::{HOUR, asked, check_object, demo, every_question, instants, measured, now};
use crate::{hour::Hour, *};

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
    // Alerts, incidents and degradations have occurred too.
    assert_eq!(met.len(), 12);
}

#[test]
fn the_same_seed_and_hour_give_the_same_bytes_and_another_seed_gives_others() {
    let one = demo();
    let later = Scoring::demo(7, now().plus(Duration::from_mins(10)));
    for (question, _) in every_question(&one) {
        assert_eq!(
            one.answer(&question),
            later.answer(&question),
            "{question:?}"
        );
    }
    let models = DocumentKey {
        sort_by: Some(SortBy::Combined),
        ..DocumentKey::over(Route::Models, Period::Week)
    };
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
    assert!(
        !scoring
            .refresh(now().plus(Duration::from_mins(25)))
            .unwrap()
    );
    let later = now().plus(HOUR * 9);
    let swaps = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                swaps.fetch_add(
                    u32::from(scoring.refresh(later).unwrap()),
                    Ordering::Relaxed,
                );
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
    let before = Scoring::open(RunSource::Runs(runs.clone().into()), now()).unwrap();
    runs.extend(
        simulate::models(7)
            .iter()
            .flat_map(|model| model.round(Hour::of(now()))),
    );
    let scoring = Scoring::open(RunSource::Runs(runs.into()), now()).unwrap();
    let models = DocumentKey {
        sort_by: Some(SortBy::Combined),
        ..DocumentKey::over(Route::Models, Period::Day)
    };
    assert_eq!(scoring.answer(&models), before.answer(&models));
    assert!(scoring.refresh(now().plus(HOUR)).unwrap());
    assert_ne!(
        scoring.answer(&models).unwrap().etag,
        before.answer(&models).unwrap().etag
    );
}

#[test]
fn unknown_model_has_no_document() {
    let id = || ModelId::new("nobody").unwrap();
    let scoring = demo();
    assert_eq!(
        scoring.answer(&DocumentKey::of_model(Route::Model, id())),
        None
    );
    assert_eq!(
        scoring.answer(&DocumentKey::of_model(Route::Drift, id())),
        None
    );
    assert_eq!(
        scoring.answer(&DocumentKey {
            id: Some(id()),
            ..DocumentKey::over(Route::History, Period::Week)
        }),
        None
    );
    assert!(scoring.model_ids().is_sorted() && scoring.model_ids().len() == 14);
}

#[test]
fn backend_without_runs_returns_empty_arrays() {
    let scoring = Scoring::open(RunSource::Runs(vec![].into()), Wall::default()).unwrap();
    for (question, fields) in every_question(&scoring) {
        for item in asked(&scoring, &question) {
            check_object(&item, fields, "empty");
            assert_eq!(question, DocumentKey::plain(Route::Index));
        }
    }
}
