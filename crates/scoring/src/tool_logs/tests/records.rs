//! Records of other tools.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::tool_logs::*;

use super::golden_files::golden_file;

/// A golden mapping with an additional model.
fn mapping_with_model(name: &str, model: &str) -> LogMapping {
    let text = std::fs::read_to_string(golden_file(name)).unwrap();
    let model = format!(
        "[models.{model:?}]\nid = \"atlas-4\"\nname = \"Atlas 4\"\nprovider = \"meridian\"\n"
    );
    LogMapping::parse(&format!("{text}{model}")).unwrap()
}

fn trials(read: &[Result<MappedRuns, LogProblem>]) -> Vec<Value> {
    let runs = read.iter().flat_map(|runs| &runs.as_ref().unwrap().runs);
    let runs = runs.map(|run| serde_json::to_value(run).unwrap());
    runs.flat_map(|run| run["trials"].as_array().unwrap().clone())
        .collect()
}

fn read_text(tool: EvaluationTool, mapping: &str, text: &str) -> Result<MappedRuns, String> {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("records");
    std::fs::write(&file, text).unwrap();
    let entries = "[models.m]\nname = \"M\"\nprovider = \"p\"\n[tasks.t]\nsuite = \"coding\"\naxes.spec = \"score\"\n";
    let mapping = LogMapping::parse(&format!("{entries}[records]\n{mapping}")).unwrap();
    let mut read = read_log(tool, &file, &mapping);
    assert_eq!(read.len(), 1, "{read:?}");
    read.pop().unwrap().map_err(|problem| problem.to_string())
}

#[test]
fn logs_of_openai_evals_are_read_by_their_mapping() {
    let path = golden_file("records/openai-evals.jsonl");
    let mapping = mapping_with_model("openai-evals.toml", "meridian/atlas-4");
    let read = read_log(EvaluationTool::Jsonl, &path, &mapping);
    let runs = read[0].as_ref().unwrap();
    assert_eq!(
        (runs.time.as_str(), runs.model_id.as_str(), read.len()),
        ("2026-11-24T12:00:00.904Z", "atlas-4", 1)
    );
    let correct: Vec<Value> = trials(&read)
        .iter()
        .map(|trial| trial["scores"]["correctness"].clone())
        .collect();
    assert_eq!(correct, [0.0, 1.0], "sorted by sample");
}

#[test]
fn output_of_promptfoo_is_read_by_its_mapping() {
    let path = golden_file("records/promptfoo-2026-11-27T215414.jsonl");
    let read = read_log(
        EvaluationTool::Jsonl,
        &path,
        &mapping_with_model("promptfoo.toml", "meridian/atlas-4"),
    );
    assert_eq!(
        (read.len(), read[0].as_ref().unwrap().time.as_str()),
        (1, "2026-11-27T21:54:14Z")
    );
    let trials = trials(&read);
    let scores = trials
        .iter()
        .map(|trial| [&trial["scores"]["correctness"], &trial["scores"]["spec"]]);
    assert_eq!(
        scores.collect::<Vec<_>>(),
        [
            [&json!(1.0), &json!(1.0)],
            [&json!(0.5), &json!(1.0)],
            [&Value::Null; 2]
        ]
    );
    assert_eq!(
        trials[2]["failure"]["reason"], "unreachable",
        "a failed assertion is not a failed sample"
    );
    assert_eq!(
        (&trials[0]["cost"], &trials[0]["latencyMs"]),
        (&json!(0.0021), &json!(4.0))
    );
}

#[test]
fn rows_of_csv_are_samples_of_their_model_and_task() {
    let mapping = "model = \"who\"\ntask = \"what\"\ntime = \"at\"\nerror = \"error\"\ncost = \"usd\"\nfailures = { limit = \"throttled\" }\n";
    let rows = "who,what,at,score,error,usd\nm,t,2026-11-24T12:00:00Z,0.5,,0.25\nm,t,2026-11-24 11:00:00,,Rate Limit,\nm,t,2026-11-24T13:00:00Z,True,,\n";
    let runs = read_text(EvaluationTool::Csv, mapping, rows).unwrap();
    assert_eq!(runs.time, "2026-11-24T11:00:00Z", "the earliest, in UTC");
    let run = serde_json::to_value(&runs.runs[0]).unwrap();
    let expected = r#"[{"scores":{"spec":0.5},"cost":0.25},{"failure":{"reason":"throttled"}},{"scores":{"spec":1.0}}]"#;
    assert_eq!(
        run["trials"],
        serde_json::from_str::<Value>(expected).unwrap()
    );
}

#[test]
fn an_evaluation_keeps_its_ids_whatever_the_order_of_its_records_is() {
    let mapping =
        "model = { value = \"m\" }\ntask = { value = \"t\" }\ntime = \"at\"\nsample = \"id\"\n";
    let records = [1, 2].map(|id| {
        format!("{{\"id\": {id}, \"at\": \"2026-11-24T12:00:0{id}Z\", \"score\": 0.{id}}}\n")
    });
    let read =
        |records: &[String]| read_text(EvaluationTool::Jsonl, mapping, &records.concat()).unwrap();
    let [one, two] = records.clone();
    assert_eq!(
        read(&[one, two]).runs,
        read(&[records[1].clone(), records[0].clone()]).runs
    );
}

#[test]
fn records_that_are_appended_or_whose_scores_change_keep_the_id_of_their_evaluation() {
    let mapping =
        "model = { value = \"m\" }\ntask = { value = \"t\" }\ntime = \"at\"\nerror = \"failed\"\n";
    let id = |records: &str| {
        let runs = read_text(EvaluationTool::Jsonl, mapping, records)
            .unwrap()
            .runs;
        (serde_json::to_value(&runs[0]).unwrap()["id"].clone(), runs)
    };
    let record = |score: &str| {
        format!("{{\"at\": \"2026-11-24T12:00:00Z\", \"failed\": false, \"score\": {score}}}\n")
    };
    let (one, runs) = id(&record("0.5"));
    for records in [record("0.6"), record("0.5") + &record("0.7")] {
        let (other, changed) = id(&records);
        assert!(
            one == other && runs != changed,
            "an import reports that the content differs"
        );
    }
}

#[test]
fn every_error_of_records_names_the_record_and_the_remedy() {
    let fields =
        "model = { value = \"m\" }\ntask = { value = \"t\" }\ntime = \"at\"\ncost = \"usd\"\n";
    let rows = [
        (
            "{\"score\": 1}",
            "record 1: has no at, which records.time names; correct the mapping",
        ),
        (
            "{\"at\": \"soon\"}",
            "record 1: \"soon\" does not end with a time such as",
        ),
        (
            "{\"at\": \"2026-11-24T12:00:00Z\"}",
            "has no score \"score\" for axes.spec; it has none",
        ),
        (
            "{\"at\": \"2026-11-24T12:00:00Z\", \"score\": [1]}",
            "score is not a number",
        ),
        ("{\"at\": ", "record 1: EOF while parsing"),
        (
            "{\"at\": \"2026-11-24T12:00:00Z\", \"score\": 1, \"usd\": \"1,234\"}",
            "usd is \"1,234\", which is not a number",
        ),
        (
            "",
            "has no record with the values of records.only; check the mapping",
        ),
    ];
    for (text, problem) in rows {
        let found = read_text(EvaluationTool::Jsonl, fields, text).unwrap_err();
        assert!(found.contains(problem), "{text}: {found}");
    }
    let unmapped = LogMapping::parse("").unwrap();
    let read = read_log(
        EvaluationTool::Csv,
        &golden_file("records/openai-evals.jsonl"),
        &unmapped,
    );
    assert!(
        read[0]
            .as_ref()
            .unwrap_err()
            .to_string()
            .contains("the mapping has no [records]"),
        "{read:?}"
    );
    let unknown =
        "[records]\nmodel = \"m\"\ntask = \"t\"\ntime = \"at\"\nfailures = { x = \"lost\" }";
    assert!(
        LogMapping::parse(unknown)
            .unwrap_err()
            .contains("unknown variant `lost`")
    );
}
