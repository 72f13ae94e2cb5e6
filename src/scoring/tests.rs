//! What the door promises, held against real answers: fields, orders, agreement, determinism, refreshing.
//!
//! Not for: the pieces, which are tested where they stand.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::Value;

use super::hour::{Hour, hours_of};
use super::*;
use crate::routes::shapes::{self, Field, Shape};

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

fn asked(scoring: &Scoring, question: &Question) -> Vec<Value> {
    serde_json::from_str(&scoring.answer(question).unwrap().data).unwrap()
}

fn rankings(scoring: &Scoring, period: Period, sort_by: SortBy) -> Vec<Value> {
    asked(scoring, &Question::Models { period, sort_by })
}

/// Every question there is, with the fields of its items.
fn every_question(scoring: &Scoring) -> Vec<(Question, &'static [Field])> {
    let mut all: Vec<(Question, &'static [Field])> = vec![
        (Question::Index, shapes::INDEX),
        (Question::Alerts, shapes::ALERT),
        (Question::Providers, shapes::PROVIDER),
    ];
    for period in Period::ALL {
        for sort_by in SortBy::ALL {
            all.push((Question::Models { period, sort_by }, shapes::RANKING));
        }
        all.push((Question::Incidents { period, limit: limit(100) }, shapes::INCIDENT));
        all.push((Question::Degradations(period), shapes::DEGRADATION));
        all.push((Question::Recommendations(period), shapes::RECOMMENDATION));
        all.push((Question::ProviderReliability(period), shapes::RELIABILITY));
        all.push((Question::Transparency(period), shapes::TRANSPARENCY));
        for id in scoring.model_ids() {
            all.push((Question::History { id, period }, shapes::HISTORY));
        }
    }
    for id in scoring.model_ids() {
        all.push((Question::Model(id.clone()), shapes::MODEL));
        all.push((Question::Drift(id), shapes::DRIFT));
    }
    all
}

fn check_object(value: &Value, fields: &[Field], of: &str) {
    let found: BTreeSet<&str> = value.as_object().expect(of).keys().map(String::as_str).collect();
    let expected: BTreeSet<&str> = fields.iter().map(|field| field.name).collect();
    assert_eq!(found, expected, "{of}");
    for field in fields {
        check_field(&value[field.name], field, &format!("{of}.{}", field.name));
    }
}

fn check_field(value: &Value, field: &Field, of: &str) {
    if value.is_null() {
        assert!(field.nullable, "{of} is null");
        return;
    }
    let good = match &field.shape {
        Shape::Text => value.is_string(),
        Shape::Instant => value.as_str().is_some_and(|text| Wall::parse_rfc3339(text).is_some()),
        Shape::Number => value.is_number(),
        Shape::Score => value.as_f64().is_some_and(|score| (0.0..=100.0).contains(&score)),
        Shape::Integer => value.is_u64(),
        Shape::Flag => value.is_boolean(),
        Shape::Words(words) => value.as_str().is_some_and(|word| words.contains(&word)),
        Shape::Texts => value.as_array().is_some_and(|all| all.iter().all(Value::is_string)),
        Shape::Object(fields) => {
            check_object(value, fields, of);
            true
        }
        Shape::Objects(fields) => {
            value.as_array().expect(of).iter().for_each(|item| check_object(item, fields, of));
            true
        }
    };
    assert!(good, "{of}: {value}");
}

/// Instants of a month, so that every habit of the simulator is met.
fn instants() -> impl Iterator<Item = Wall> {
    (0..10_u32).map(|step| now().plus(HOUR * 67 * step))
}

/// The last 10 days of what the simulator does, as if it had been measured.
fn measured() -> Vec<Run> {
    let stretch = Hour::of(now()).last(240);
    simulate::models(7).iter().flat_map(|model| model.runs(stretch).collect::<Vec<_>>()).collect()
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
    // Alerts, incidents and degradations too were there to be checked.
    assert_eq!(met.len(), 12);
}

#[test]
fn an_interval_holds_its_score_for_every_model_and_period() {
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
fn each_sort_key_orders_and_what_has_no_score_comes_last() {
    let scoring = demo();
    let mut orders = BTreeSet::new();
    for sort_by in SortBy::ALL {
        let items = rankings(&scoring, Period::Day, sort_by);
        assert!(items.iter().map(|item| item["currentScore"].is_null()).is_sorted());
        let ids: Vec<&str> = items
            .iter()
            .filter(|i| !i["currentScore"].is_null())
            .map(|i| i["id"].as_str().unwrap())
            .collect();
        let merit = |id: &&str| {
            let detail = &asked(&scoring, &Question::Model(ModelId::new(id).unwrap()))[0];
            let suite = |place: usize| detail["suites"][place]["score"].as_f64().unwrap();
            let axes = detail["axes"].as_array().unwrap();
            match sort_by {
                SortBy::Combined => detail["currentScore"].as_f64().unwrap(),
                SortBy::Coding => suite(0),
                SortBy::Reasoning => suite(1),
                SortBy::Tooling => suite(2),
                SortBy::Speed => -detail["latencyMs"].as_f64().unwrap(),
                SortBy::SevenAxis => axes.iter().map(|axis| axis["score"].as_f64().unwrap()).sum(),
                // What a trial cost is not published; the cheap ones must lead.
                SortBy::Price => f64::from(u8::from(detail["priceOutput"].as_f64().unwrap() < 2.5)),
            }
        };
        let merits: Vec<f64> = ids.iter().map(merit).collect();
        assert!(merits.is_sorted_by(|a, b| a >= &(b - 1e-9)), "{sort_by:?}: {merits:?}");
        orders.insert(items.iter().map(|item| item["id"].to_string()).collect::<Vec<_>>());
    }
    assert!(orders.len() >= 5, "hardly a key makes a difference");
}

#[test]
fn equal_models_stand_by_identifier_whatever_the_key() {
    let mut runs = Vec::new();
    for id in ["c", "a", "b"] {
        let model = Arc::new(Model::new(ModelId::new(id).unwrap(), id, "p", None, None).unwrap());
        for suite in Suite::ALL {
            let trials = vec![Trial::new([0.5; 7], 9.0, 0.1).unwrap(); 3];
            let at = now().minus(HOUR);
            runs.push(Run::new(Arc::clone(&model), suite, at, Outcome::Scored(trials)).unwrap());
        }
    }
    let scoring = Scoring::open(Source::Runs(runs), now());
    for sort_by in SortBy::ALL {
        let ids: Vec<Value> =
            rankings(&scoring, Period::Latest, sort_by).into_iter().map(|item| item["id"].clone()).collect();
        assert_eq!(ids, ["a", "b", "c"]);
    }
}

#[test]
fn the_list_and_the_details_agree() {
    let scoring = demo();
    let latest = rankings(&scoring, Period::Latest, SortBy::Combined);
    for item in rankings(&scoring, Period::Day, SortBy::Price) {
        let id = ModelId::new(item["id"].as_str().unwrap()).unwrap();
        let detail = &asked(&scoring, &Question::Model(id.clone()))[0];
        for (name, value) in item.as_object().unwrap() {
            assert_eq!(value, &detail[name], "{id}.{name}");
        }
        let newest = latest.iter().find(|item| item["id"] == id.as_str()).unwrap();
        assert_eq!(newest["currentScore"], detail["latestScore"]);
        let drift = &asked(&scoring, &Question::Drift(id))[0];
        assert_eq!(drift["currentScore"], detail["currentScore"]);
    }
}

#[test]
fn the_index_lies_between_the_extremes_and_counts_who_is_away() {
    for now in instants().step_by(4) {
        let scoring = Scoring::demo(7, now);
        let index = &asked(&scoring, &Question::Index)[0];
        let items = rankings(&scoring, Period::Day, SortBy::Combined);
        let scores: Vec<f64> = items.iter().filter_map(|item| item["currentScore"].as_f64()).collect();
        let value = index["value"].as_f64().unwrap();
        assert!(scores.last().unwrap() <= &value && &value <= scores.first().unwrap());
        assert_eq!(index["models"], scores.len());
        assert_eq!(index["unavailable"], items.len() - scores.len());
        assert!(scores.len() < items.len());
        assert_eq!(index["bestModel"], items[0]["id"]);
        assert_eq!(index["history"].as_array().unwrap().len(), 24);
    }
}

#[test]
fn a_model_that_went_away_is_unavailable_and_spoils_nothing() {
    let without = measured();
    let model = Arc::new(Model::new(ModelId::new("gone").unwrap(), "Gone", "nobody", None, None).unwrap());
    let mut with = without.clone();
    for hours in 60..100 {
        for suite in Suite::ALL {
            let trials = vec![Trial::new([0.01; 7], 9.0, 0.1).unwrap(); 3];
            let at = now().minus(HOUR * hours);
            with.push(Run::new(Arc::clone(&model), suite, at, Outcome::Scored(trials)).unwrap());
        }
    }
    let (without, with) =
        (Scoring::open(Source::Runs(without), now()), Scoring::open(Source::Runs(with), now()));
    let mut items = rankings(&with, Period::Day, SortBy::Combined);
    let place = items.iter().position(|item| item["id"] == "gone").unwrap();
    let gone = items.remove(place);
    assert_eq!(items, rankings(&without, Period::Day, SortBy::Combined));
    for name in ["currentScore", "confidenceLower", "confidenceUpper", "lastUpdated"] {
        assert!(gone[name].is_null(), "{name}");
    }
    assert_eq!((&gone["trend"], &gone["status"]), (&"unavailable".into(), &"unavailable".into()));
    let index = |scoring| asked(scoring, &Question::Index)[0]["value"].clone();
    assert_eq!(index(&with), index(&without));
    let providers = asked(&with, &Question::Providers);
    assert!(providers.iter().any(|p| p["provider"] == "nobody" && p["status"] == "unknown"));
    assert!(
        !rankings(&with, Period::Week, SortBy::Combined)
            .iter()
            .any(|m| m["currentScore"].is_null() && m["id"] == "gone")
    );
}

#[test]
fn the_order_in_which_runs_come_changes_nothing() {
    let runs = measured();
    let mut mixed = runs.clone();
    mixed.sort_by_key(|run| (run.at().seconds() * 7_919) % 10_007);
    assert_ne!(runs, mixed);
    let (one, other) = (Scoring::open(Source::Runs(runs), now()), Scoring::open(Source::Runs(mixed), now()));
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
    let models = Question::Models { period: Period::Week, sort_by: SortBy::Combined };
    let other = Scoring::demo(8, now()).answer(&models).unwrap();
    let same = one.answer(&models).unwrap();
    assert!(other.data != same.data && other.etag != same.etag);
}

#[test]
fn a_refresh_swaps_once_an_hour_and_catches_up_in_one_step() {
    let scoring = Scoring::demo(7, now());
    let stamp = || scoring.answer(&Question::Index).unwrap();
    assert_eq!(stamp().generated_at.rfc3339(), "2026-11-21T12:00:00Z");
    assert_eq!(stamp().next_refresh.rfc3339(), "2026-11-21T13:00:00Z");
    assert_eq!(scoring.next_refresh(), stamp().next_refresh);
    assert!(!scoring.refresh(now().plus(Duration::from_mins(25))));
    let later = now().plus(HOUR * 9);
    let swaps = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                swaps.fetch_add(u32::from(scoring.refresh(later)), Ordering::Relaxed);
                assert_eq!(stamp().generated_at.rfc3339(), "2026-11-21T21:00:00Z");
            });
        }
    });
    assert_eq!(swaps.into_inner(), 1);
    assert!(!scoring.refresh(now()), "a clock that went back");
    let fresh = Scoring::demo(7, later);
    for (question, _) in every_question(&fresh) {
        assert_eq!(scoring.answer(&question), fresh.answer(&question));
    }
}

#[test]
fn a_run_of_the_running_hour_counts_when_the_hour_is_over() {
    let mut runs = measured();
    let before = Scoring::open(Source::Runs(runs.clone()), now());
    runs.extend(simulate::models(7).iter().flat_map(|model| model.round(Hour::of(now()))));
    let scoring = Scoring::open(Source::Runs(runs), now());
    let models = Question::Models { period: Period::Day, sort_by: SortBy::Combined };
    assert_eq!(scoring.answer(&models), before.answer(&models));
    assert!(scoring.refresh(now().plus(HOUR)));
    assert_ne!(scoring.answer(&models).unwrap().etag, before.answer(&models).unwrap().etag);
}

#[test]
fn an_unknown_model_has_no_answer() {
    let id = || ModelId::new("nobody").unwrap();
    let scoring = demo();
    assert_eq!(scoring.answer(&Question::Model(id())), None);
    assert_eq!(scoring.answer(&Question::Drift(id())), None);
    assert_eq!(scoring.answer(&Question::History { id: id(), period: Period::Week }), None);
    assert!(scoring.model_ids().is_sorted() && scoring.model_ids().len() == 14);
}

#[test]
fn a_backend_without_runs_answers_with_empty_arrays() {
    let scoring = Scoring::open(Source::Runs(vec![]), Wall::default());
    for (question, fields) in every_question(&scoring) {
        for item in asked(&scoring, &question) {
            check_object(&item, fields, "empty");
            assert_eq!(question, Question::Index);
        }
    }
}

#[test]
fn incidents_are_newest_first_cut_to_their_limit_and_of_their_period() {
    let scoring = demo();
    let ask = |period, number| asked(&scoring, &Question::Incidents { period, limit: limit(number) });
    let all = ask(Period::Month, 100);
    assert!(all.len() > 5, "{}", all.len());
    assert!(all.is_sorted_by(|a, b| a["openedAt"].as_str() >= b["openedAt"].as_str()));
    assert_eq!(ask(Period::Month, 3), all[..3]);
    let kinds: BTreeSet<&str> = all.iter().filter_map(|item| item["kind"].as_str()).collect();
    assert_eq!(kinds, BTreeSet::from(["degradation", "outage"]));
    let start = Hour::of(now()).last(hours_of(Period::Week)).from.start().rfc3339();
    for item in ask(Period::Week, 100) {
        assert!(item["resolvedAt"].as_str().is_none_or(|end| end > start.as_str()));
    }
    assert!(ask(Period::Latest, 100).iter().all(|item| item["resolvedAt"].is_null()));
}

#[test]
fn alerts_come_with_evidence_that_holds_and_a_steady_model_raises_none() {
    let mut alerted = BTreeSet::new();
    for now in instants() {
        let scoring = Scoring::demo(7, now);
        for alert in asked(&scoring, &Question::Alerts) {
            let number = |name: &str| alert[name].as_f64().unwrap();
            assert!((number("baselineScore") - number("currentScore") - number("drop")).abs() < 1e-9);
            assert!(number("pValue") < method::ALERT_ALPHA && number("drop") >= method::ALERT_MINIMUM);
            assert!(alert["since"].as_str() < Some(&Hour::of(now).start().rfc3339()));
            alerted.insert(alert["modelId"].as_str().unwrap().to_owned());
        }
    }
    let breakers = ["atlas-4-small", "kestrel-70b", "basalt-3"].map(String::from);
    assert!(!alerted.is_empty() && alerted.is_subset(&BTreeSet::from(breakers)), "{alerted:?}");
}

#[test]
fn every_regime_of_the_drift_signature_is_met_within_a_month() {
    let mut regimes = BTreeSet::new();
    for now in instants() {
        let scoring = Scoring::demo(7, now);
        for id in scoring.model_ids() {
            let drift = &asked(&scoring, &Question::Drift(id))[0];
            regimes.insert(drift["regime"].as_str().unwrap().to_owned());
        }
    }
    assert!(regimes.len() >= 4, "{regimes:?}");
}
