//! Evaluations that are not in the golden files.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{MAX_TRIALS, RunFailure};
use scoregate_base::clock::Wall;

use crate::tool_logs::{
    evaluation::{EvaluatedSample, Evaluation, SampleOutcome, TokenUsage},
    score::LoggedScore,
    *,
};

fn evaluation(scores: impl IntoIterator<Item = LoggedScore>) -> Evaluation {
    let samples = scores
        .into_iter()
        .enumerate()
        .map(|(index, score)| EvaluatedSample {
            name: format!("sample {index}"),
            outcome: SampleOutcome::Scored(BTreeMap::from([("acc".into(), score)])),
            latency_ms: None,
            usage: None,
            is_limited: false,
        });
    Evaluation {
        identity: vec!["e".into()],
        task: "t".into(),
        model: "m".into(),
        started: Wall::from_seconds(1_790_000_000),
        samples: samples.collect(),
        lower_is_better: BTreeSet::new(),
    }
}

fn mapping(axis: &str, prices: &str) -> LogMapping {
    let text = format!(
        "[models.m]\nname = \"M\"\nprovider = \"p\"\n{prices}\n[tasks.t]\nsuite = \"coding\"\naxes.spec = {axis}\n"
    );
    LogMapping::parse(&text).unwrap()
}

fn converted(evaluation: &Evaluation, mapping: &LogMapping) -> Result<MappedRuns, String> {
    convert::convert(EvaluationTool::Inspect, evaluation, mapping)
        .map_err(|problem| problem.to_string())
}

#[test]
fn more_trials_than_a_run_may_have_become_runs_of_equal_size() {
    let mapping = mapping("{}", "");
    for (samples, sizes) in [
        (MAX_TRIALS, vec![1_000]),
        (MAX_TRIALS + 1, vec![500, 501]),
        (2_500, vec![833, 833, 834]),
    ] {
        let values =
            (0..samples).map(|index| LoggedScore::Number(f64::from(u8::from(index % 3 == 0))));
        let evaluation = evaluation(values);
        let runs = converted(&evaluation, &mapping).unwrap();
        let parsed: Vec<Value> = runs
            .runs
            .iter()
            .map(|run| serde_json::to_value(run).unwrap())
            .collect();
        let found: Vec<usize> = parsed
            .iter()
            .map(|run| run["trials"].as_array().unwrap().len())
            .collect();
        assert_eq!(found, sizes);
        let ids: Vec<&str> = parsed
            .iter()
            .map(|run| run["id"].as_str().unwrap())
            .collect();
        assert_eq!(
            ids,
            ["inspect:e:t:1", "inspect:e:t:2", "inspect:e:t:3"][..sizes.len()]
        );
        assert_eq!(
            converted(&evaluation, &mapping).unwrap(),
            runs,
            "the same again"
        );
    }
}

#[test]
fn ids_that_are_long_or_not_visible_are_hashed() {
    let mut long = evaluation([LoggedScore::Number(1.0)]);
    let first = |evaluation: &Evaluation| {
        let runs = converted(evaluation, &mapping("{}", "")).unwrap();
        serde_json::to_value(&runs.runs[0]).unwrap()["id"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    long.identity = vec!["x".repeat(200)];
    let of_long = first(&long);
    long.identity = vec!["two words".into()];
    let of_words = first(&long);
    assert!(
        of_long.len() == 42 && of_words.len() == 42 && of_long != of_words,
        "{of_long} {of_words}"
    );
    // The concatenated bytes are the same, but the strings differ.
    let of_parts = |parts: [&str; 2]| {
        let mut evaluation = evaluation([LoggedScore::Number(1.0)]);
        evaluation.identity = parts.map(str::to_owned).to_vec();
        first(&evaluation)
    };
    assert_ne!(of_parts(["ab", "c"]), of_parts(["a", "bc"]));
}

#[test]
fn a_cost_needs_both_prices_and_no_cached_tokens_unless_the_tool_has_it() {
    let prices = "price_input = 1.0\nprice_output = 2.0";
    let tokens = TokenUsage {
        input: 1_000_000,
        output: 500_000,
        cached: 0,
        cost: None,
    };
    let rows = [
        (prices, Some(tokens), Some(2.0)),
        ("price_input = 1.0", Some(tokens), None),
        (prices, None, None),
        (
            prices,
            Some(TokenUsage {
                cached: 1,
                ..tokens
            }),
            None,
        ),
        (
            "",
            Some(TokenUsage {
                cached: 1,
                cost: Some(0.5),
                ..tokens
            }),
            Some(0.5),
        ),
    ];
    for (prices, usage, cost) in rows {
        let mut evaluation = evaluation([LoggedScore::Number(1.0)]);
        evaluation.samples[0].usage = usage;
        let runs = converted(&evaluation, &mapping("{}", prices)).unwrap();
        let run = serde_json::to_value(&runs.runs[0]).unwrap();
        assert_eq!(run["trials"][0]["cost"].as_f64(), cost, "{usage:?}");
        assert_eq!(runs.absent.contains(&"cost"), cost.is_none());
    }
}

#[test]
fn words_and_numbers_are_mapped_or_reported() {
    let word = |text: &str| LoggedScore::Word(text.into());
    let rows = [
        (word("C"), "{}", Ok(1.0)),
        (word("N"), "{}", Ok(0.0)),
        (word("TRUE"), "{}", Ok(1.0)),
        (word("0.25"), "{}", Ok(0.25)),
        (word("7"), "{ scale = [0, 10] }", Ok(0.7)),
        (word("good"), "{ values = { good = 0.75 } }", Ok(0.75)),
        (word("C"), "{ values = { C = 0.5 } }", Ok(0.5)),
        (LoggedScore::Number(3.0), "{ scale = [5, 1] }", Ok(0.5)),
        (
            word("good"),
            "{}",
            Err("acc is \"good\"; give axes.spec its score, such as values"),
        ),
        (word("c"), "{}", Err("acc is \"c\"")),
        (word("nan"), "{}", Err("acc is NaN, outside [0, 1]")),
        (
            LoggedScore::Number(f64::INFINITY),
            "{}",
            Err("acc is inf, outside"),
        ),
        (LoggedScore::Number(-0.1), "{}", Err("acc is -0.1, outside")),
        (LoggedScore::NotANumber, "{}", Err("acc is not a number")),
    ];
    for (score, axis, expected) in rows {
        let found = converted(&evaluation([score.clone()]), &mapping(axis, ""));
        match (found, expected) {
            (Ok(runs), Ok(value)) => {
                let run = serde_json::to_value(&runs.runs[0]).unwrap();
                assert_eq!(
                    run["trials"][0]["scores"]["spec"], value,
                    "{score:?} {axis}"
                );
            }
            (Err(problem), Err(text)) => assert!(problem.contains(text), "{problem}"),
            other => panic!("{score:?} {axis}: {other:?}"),
        }
    }
}

#[test]
fn a_metric_that_is_better_when_lower_needs_a_reversed_scale() {
    let mut evaluation = evaluation([LoggedScore::Number(0.25)]);
    evaluation.lower_is_better.insert("acc".into());
    let refused = converted(&evaluation, &mapping("{}", "")).unwrap_err();
    assert!(
        refused.contains("a lower acc is better; give axes.spec a scale"),
        "{refused}"
    );
    assert!(converted(&evaluation, &mapping("{ scale = [1, 0] }", "")).is_ok());
}

#[test]
fn an_evaluation_that_failed_mostly_in_the_harness_is_unfinished() {
    let mut evaluation = evaluation(vec![LoggedScore::Number(1.0); 20]);
    for sample in evaluation.samples.iter_mut().skip(10) {
        sample.outcome = SampleOutcome::Failed(RunFailure::Harness);
    }
    assert_eq!(
        converted(&evaluation, &mapping("{}", "")).unwrap().scored,
        10
    );
    for sample in evaluation.samples.iter_mut().skip(1) {
        sample.outcome = SampleOutcome::Failed(RunFailure::Harness);
    }
    let skipped = converted(&evaluation, &mapping("{}", "")).unwrap_err();
    assert!(
        skipped.contains("is unfinished: 19 of 20 samples failed in the harness"),
        "{skipped}"
    );
    for sample in evaluation.samples.iter_mut().skip(1) {
        sample.outcome = SampleOutcome::Failed(RunFailure::Timeout);
    }
    assert_eq!(
        converted(&evaluation, &mapping("{}", "")).unwrap().failed[&RunFailure::Timeout],
        19
    );
}

#[test]
fn invalidated_samples_are_left_out_and_unusable_responses_count() {
    let mut evaluation = evaluation([
        LoggedScore::Number(1.0),
        LoggedScore::Unscored(RunFailure::Unusable),
        LoggedScore::Unscored(RunFailure::Harness),
    ]);
    evaluation.samples[0].outcome = SampleOutcome::Invalidated;
    let runs = converted(&evaluation, &mapping("{}", "")).unwrap();
    assert_eq!((runs.scored, runs.invalidated), (0, 1));
    assert_eq!(
        runs.failed,
        BTreeMap::from([(RunFailure::Unusable, 1), (RunFailure::Harness, 1)])
    );
    for sample in &mut evaluation.samples {
        sample.outcome = SampleOutcome::Invalidated;
    }
    assert!(
        converted(&evaluation, &mapping("{}", ""))
            .unwrap_err()
            .contains("were declared invalid")
    );
}
