//! Sample items, generated from the tables of fields, for the examples in the documentation. The items are consistent:
//! Atlas 4 Large performs well, Atlas 4 Small degraded on the day of the samples, and one application requests both.
//!
//! The values are invented. The built-in backend computes different values.

use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::value::RawValue;

use scoregate_base::routes::{
    Endpoint, Param, Period, PublishedField, PublishedKind, SortBy,
    shapes::{FieldShape, ItemField, Presence},
};

/// The time in the examples.
pub const INSTANT: &str = "2026-11-21T13:00:00Z";
/// The model in the examples. The simulated data always contains it.
pub const EXAMPLE_MODEL: &str = "atlas-4-large";

/// The values as JSON, by endpoint and field. If no row has the whole path, the row with the field's name applies.
#[rustfmt::skip]
const VALUES: &[(&str, &str)] = &[
    ("id", r#""atlas-4-large""#),
    ("modelId", r#""atlas-4-large""#),
    ("bestModel", r#""atlas-4-large""#),
    ("name", r#""Atlas 4 Large""#),
    ("modelName", r#""Atlas 4 Large""#),
    ("provider", r#""meridian""#),
    ("currentScore", "82.1"),
    ("score", "82.1"),
    ("trend", r#""up""#),
    ("status", r#""excellent""#),
    ("confidenceLower", "80.9"),
    ("confidenceUpper", "83.3"),
    ("lastUpdated", r#""2026-11-21T12:51:49Z""#),
    ("lastRun", r#""2026-11-21T12:37:05Z""#),

    ("models.rankLower", "1"),
    ("models.rankUpper", "3"),
    ("models.tiedWithNext", "true"),

    ("model.latestScore", "82.6"),
    ("model.comparisons", r#"[{"modelId":"lantern-2-pro","difference":0.7,"differenceLower":-0.5,"differenceUpper":1.9,"probabilityBetter":0.87}]"#),
    ("model.axes", r#"[{"axis":"correctness","score":88.2,"confidenceLower":86.9,"confidenceUpper":89.5,"samples":355}]"#),
    ("model.suites", r#"[{"suite":"coding","score":83.4,"runs":24,"lastRun":"2026-11-21T12:37:05Z"},{"suite":"reasoning","score":84.0,"runs":23,"lastRun":"2026-11-21T12:24:47Z"},{"suite":"tooling","score":77.4,"runs":24,"lastRun":"2026-11-21T12:51:49Z"}]"#),
    ("model.priceInput", "5.0"),
    ("model.priceOutput", "20.0"),
    ("model.latencyMs", "4180.0"),
    ("model.runs", "72"),
    ("model.failedRuns", "1"),

    ("history.timestamp", r#""2026-11-21T12:00:00Z""#),
    ("history.runs", "3"),

    ("index.value", "68.4"),
    ("index.confidenceLower", "68.1"),
    ("index.confidenceUpper", "68.7"),
    ("index.trend", r#""stable""#),
    ("index.models", "13"),
    ("index.unavailable", "1"),
    ("index.history", r#"[{"timestamp":"2026-11-21T11:00:00Z","value":68.2,"models":13},{"timestamp":"2026-11-21T12:00:00Z","value":68.5,"models":13}]"#),

    ("alerts.id", r#""alert-atlas-4-small""#),
    ("alerts.modelId", r#""atlas-4-small""#),
    ("alerts.modelName", r#""Atlas 4 Small""#),
    ("alerts.severity", r#""warning""#),
    ("alerts.currentScore", "61.2"),
    ("alerts.baselineScore", "70.0"),
    ("alerts.drop", "8.8"),
    ("alerts.pValue", "0.0004"),
    ("alerts.samples", "70"),
    ("alerts.baselineSamples", "495"),
    ("alerts.since", r#""2026-11-21T04:00:00Z""#),
    ("alerts.sharedBy", "0"),
    ("alerts.message", r#""Atlas 4 Small has scored 61.2 since 2026-11-21T04:00:00Z, 8.8 points below its own baseline of 70.0.""#),

    ("incidents.id", r#""degradation-atlas-4-small-1795233600""#),
    ("incidents.modelId", r#""atlas-4-small""#),
    ("incidents.modelName", r#""Atlas 4 Small""#),
    ("incidents.kind", r#""degradation""#),
    ("incidents.severity", r#""warning""#),
    ("incidents.openedAt", r#""2026-11-21T04:00:00Z""#),
    ("incidents.resolvedAt", "null"),
    ("incidents.lowestScore", "60.3"),
    ("incidents.baselineScore", "70.0"),
    ("incidents.methodVersion", r#""5.0""#),
    ("incidents.message", r#""Atlas 4 Small fell from 70.0 to a low of 60.3. Ongoing.""#),

    ("providers.status", r#""operational""#),
    ("providers.availability", "0.986"),
    ("providers.models", "3"),
    ("providers.modelsAvailable", "3"),
    ("providers.runs", "216"),
    ("providers.failedRuns", "3"),
    ("providers.averageScore", "72.5"),
    ("providers.latencyMs", "3150.0"),

    ("degradations.modelId", r#""atlas-4-small""#),
    ("degradations.modelName", r#""Atlas 4 Small""#),
    ("degradations.direction", r#""stable""#),
    ("degradations.magnitude", "8.8"),
    ("degradations.previousScore", "70.0"),
    ("degradations.currentScore", "61.2"),
    ("degradations.pValue", "0.0004"),
    ("degradations.worstAxis", r#""correctness""#),
    ("degradations.worstAxisLoss", "11.4"),

    ("recommendations.task", r#""coding""#),
    ("recommendations.score", "83.4"),
    ("recommendations.reason", r#""Highest lower bound of the coding score.""#),
    ("recommendations.alternatives", r#"["lantern-2-pro","kestrel-code"]"#),
    ("recommendations.tied", r#"["lantern-2-pro"]"#),

    ("provider_reliability.reliability", "90.7"),
    ("provider_reliability.availability", "0.986"),
    ("provider_reliability.scoreDeviation", "1.2"),
    ("provider_reliability.incidents", "1"),
    ("provider_reliability.runs", "216"),
    ("provider_reliability.failedRuns", "3"),

    ("transparency.standardError", "0.6"),
    ("transparency.minimumDetectableEffect", "2.9"),
    ("transparency.suiteWeights", r#"[{"name":"coding","weight":0.4},{"name":"reasoning","weight":0.35},{"name":"tooling","weight":0.25}]"#),
    ("transparency.axisWeights", r#"[{"name":"correctness","weight":0.3},{"name":"spec","weight":0.15},{"name":"codeQuality","weight":0.15},{"name":"efficiency","weight":0.1},{"name":"stability","weight":0.1},{"name":"refusal","weight":0.1},{"name":"recovery","weight":0.1}]"#),
    ("transparency.suites", r#"[{"name":"coding","weight":0.4,"axes":[{"name":"correctness","weight":0.3},{"name":"spec","weight":0.15},{"name":"codeQuality","weight":0.15},{"name":"efficiency","weight":0.1},{"name":"stability","weight":0.1},{"name":"refusal","weight":0.1},{"name":"recovery","weight":0.1}],"feeds":["combined","speed","price","coding","7axis"]}]"#),
    ("transparency.samples", r#"[{"suite":"coding","runs":24,"failedRuns":0,"trials":119,"failedTrials":1,"lastRun":"2026-11-21T12:37:05Z"}]"#),
    ("transparency.freshnessSeconds", "491"),
    ("transparency.methodVersion", r#""5.0""#),
    ("transparency.synthetic", "false"),

    ("drift.regime", r#""stable""#),
    ("drift.pageHinkley", r#"{"statistic":4.1,"threshold":12.0,"delta":0.5,"minimumSamples":24,"samples":160,"signalled":false,"state":"quiet","noise":1.1}"#),
    ("drift.axes", r#"[{"axis":"correctness","trend":"stable","slopePerDay":0.02}]"#),
    ("drift.baselineScore", "81.8"),

    ("me.application", r#"{"id":"app_0123456789a","name":"Weather site"}"#),
    ("me.key_prefix", r#""sg_live_4fQm""#),
    ("me.tier", r#""pro""#),
    ("me.limits", r#"[{"name":"minute","limit":60,"window_seconds":60,"used":3,"remaining":57,"reset_at":"2026-11-21T13:23:12Z"},{"name":"day","limit":10000,"window_seconds":86400,"used":124,"remaining":9876,"reset_at":"2026-11-22T00:00:00Z"}]"#),
    ("me.key_expires_at", "null"),
    ("me.next_refresh_at", r#""2026-11-21T14:00:00Z""#),
    ("me.suggested_poll_seconds", "3600"),
    ("me.advice", r#"["You already had 87 % of the documents that you requested. Send If-None-Match."]"#),
];

/// The value of a parameter in examples.
pub fn of_param(param: Param) -> &'static str {
    match param {
        Param::Id => EXAMPLE_MODEL,
        Param::Period => Period::Week.word(),
        Param::SortBy => SortBy::Coding.word(),
        Param::Limit => "20",
        Param::Own(own) => own.default,
    }
}

/// A sample item, with the fields in the order of their table.
pub struct SampleItem<'a> {
    endpoint: &'static str,
    fields: &'static [ItemField],
    /// The known fields of an item that has the shape of the data source.
    listed: Option<&'a [PublishedField]>,
}

impl SampleItem<'_> {
    /// A sample item of an endpoint.
    pub fn of(endpoint: &Endpoint) -> Self {
        Self {
            endpoint: endpoint.name,
            fields: endpoint.item,
            listed: None,
        }
    }

    /// Whether the example contains a field of this API.
    fn shows(&self, field: &ItemField) -> bool {
        // The example is the response to a request without parameters, in which some values are absent.
        field.presence != Presence::IfRequested
            && self.listed.is_none_or(|all| {
                all.iter().any(|listed| {
                    listed.name == field.name && matches!(listed.kind, PublishedKind::Standard(_))
                })
            })
    }
}

struct SampleFields<'a>(&'a ItemField);

/// The value of a field, looked up by path, then by name.
fn sample_value(path: &str) -> Option<&'static str> {
    value_named(path).or_else(|| value_named(path.rsplit('.').next()?))
}

fn value_named(name: &str) -> Option<&'static str> {
    VALUES
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, value)| *value)
}

impl Serialize for SampleItem<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for field in self.fields.iter().filter(|field| self.shows(field)) {
            match field
                .example
                .or_else(|| sample_value(&format!("{}.{}", self.endpoint, field.name)))
            {
                Some("null") if field.presence == Presence::IfKnown => {}
                Some(json) => {
                    let value: &RawValue =
                        serde_json::from_str(json).map_err(serde::ser::Error::custom)?;
                    map.serialize_entry(field.name, value)?;
                }
                None => map.serialize_entry(field.name, &SampleFields(field))?,
            }
        }
        for listed in self.listed.into_iter().flatten() {
            if let PublishedKind::Constant(json) = &listed.kind {
                let value: &RawValue =
                    serde_json::from_str(json).map_err(serde::ser::Error::custom)?;
                map.serialize_entry(&listed.name, value)?;
            }
        }
        map.end()
    }
}

/// Writes a value of the right shape for a field without a value in the table.
impl Serialize for SampleFields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.shape {
            FieldShape::Text => serializer.serialize_str("…"),
            FieldShape::Instant => serializer.serialize_str(INSTANT),
            FieldShape::Number | FieldShape::Score => serializer.serialize_f64(82.1),
            FieldShape::Integer => serializer.serialize_u64(24),
            FieldShape::Flag => serializer.serialize_bool(false),
            FieldShape::Words(words) => words.first().serialize(serializer),
            FieldShape::Object(_) => serializer.serialize_map(Some(0))?.end(),
            FieldShape::Objects(_) | FieldShape::Texts => serializer.collect_seq([""; 0]),
        }
    }
}

/// A whole response of an endpoint, for a paid caller and without parameters.
#[derive(serde::Serialize)]
pub struct SampleAnswer<'a> {
    success: bool,
    version: &'a str,
    generated_at: &'static str,
    license: &'a str,
    period: Option<&'static str>,
    sort_by: Option<&'static str>,
    count: usize,
    data: [SampleItem<'a>; 1],
}

impl<'a> SampleAnswer<'a> {
    pub fn of(endpoint: &Endpoint, version: &'a str, license: &'a str) -> Self {
        let takes = |param| endpoint.takes.contains(&param);
        Self {
            success: true,
            version,
            generated_at: INSTANT,
            license,
            period: takes(Param::Period).then_some(Period::Latest.word()),
            sort_by: takes(Param::SortBy).then_some(SortBy::Combined.word()),
            count: 1,
            data: [SampleItem::of(endpoint)],
        }
    }

    /// Restricts the items to these fields, if any are listed.
    pub fn listing(mut self, listed: Option<&'a [PublishedField]>) -> Self {
        self.data = self.data.map(|item| SampleItem { listed, ..item });
        self
    }
}

/// JSON text with line breaks and with the fields in order.
pub fn pretty(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).expect("the keys are strings and all numbers are finite")
}

/// Converts a sample to a JSON value.
pub fn value(value: &impl Serialize) -> serde_json::Value {
    serde_json::to_value(value).expect("the keys are strings and all numbers are finite")
}

/// JSON text on one line with the fields in order.
pub fn text_of(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("the keys are strings and all numbers are finite")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;
    use scoregate_base::keys::ApplicationId;
    use scoregate_base::routes::ENDPOINTS;

    fn items() -> Vec<(&'static Endpoint, Value)> {
        ENDPOINTS
            .iter()
            .map(|endpoint| (endpoint, value(&SampleItem::of(endpoint))))
            .collect()
    }

    /// Collects all leaf values of a sample with their paths.
    fn leaves(path: &str, value: &Value, into: &mut Vec<(String, Value)>) {
        match value {
            Value::Object(fields) => {
                fields
                    .iter()
                    .for_each(|(name, inner)| leaves(&format!("{path}.{name}"), inner, into));
            }
            Value::Array(all) => all.iter().for_each(|inner| leaves(path, inner, into)),
            leaf @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
                into.push((path.to_owned(), leaf.clone()));
            }
        }
    }

    #[test]
    fn sample_values_and_fields_match() {
        let mut used = BTreeSet::new();
        for endpoint in &ENDPOINTS {
            for field in endpoint.item {
                let path = format!("{}.{}", endpoint.name, field.name);
                let is_absent = field.presence == Presence::IfRequested;
                assert!(
                    is_absent || sample_value(&path).is_some(),
                    "{path} has no value"
                );
                used.extend([field.name.to_owned(), path]);
            }
        }
        for (path, _) in VALUES.iter().filter(|(path, _)| *path != "lastRun") {
            assert!(used.contains(*path), "{path} does not match any field");
        }
    }

    #[test]
    fn samples_are_consistent() {
        for (endpoint, item) in items() {
            let name = endpoint.name;
            let mut all = Vec::new();
            leaves(name, &item, &mut all);
            assert!(all.iter().all(|(_, leaf)| leaf != "…"), "{name}");
            let number = |field: &str| item[field].as_f64();
            let score = number("currentScore").or(number("score"));
            if let Some(low) = number("confidenceLower")
                && let Some(score) = score
                && let Some(high) = number("confidenceUpper")
            {
                assert!(low < score && score < high, "{name}");
            }
            if let Some(runs) = number("runs")
                && let Some(failed) = number("failedRuns")
            {
                assert!(failed < runs, "{name}");
                if let Some(availability) = number("availability") {
                    assert!(
                        (availability - (runs - failed) / runs).abs() < 0.001,
                        "{name}"
                    );
                }
            }
            let lost = number("drop").or(number("magnitude"));
            let before = number("baselineScore").or(number("previousScore"));
            if let Some(lost) = lost
                && let Some(before) = before
                && let Some(now) = score
            {
                assert!((before - now - lost).abs() < 0.01, "{name}");
            }
            for weights in ["suiteWeights", "axisWeights"] {
                let Some(weights) = item[weights].as_array() else {
                    continue;
                };
                let sum: f64 = weights
                    .iter()
                    .map(|one| one["weight"].as_f64().unwrap())
                    .sum();
                assert!((sum - 1.0).abs() < 1e-9, "{name}");
            }
        }
    }

    #[test]
    fn sample_of_me_is_a_possible_response() {
        let me = items()
            .into_iter()
            .find(|(endpoint, _)| endpoint.name == "me")
            .unwrap()
            .1;
        me["application"]["id"]
            .as_str()
            .unwrap()
            .parse::<ApplicationId>()
            .unwrap();
        for limit in me["limits"].as_array().unwrap() {
            let number = |field: &str| limit[field].as_u64().unwrap();
            assert_eq!(number("used") + number("remaining"), number("limit"));
        }
    }

    #[test]
    fn a_failed_run_has_no_score_and_the_runs_of_a_model_are_those_of_its_suites() {
        let model = items()
            .into_iter()
            .find(|(endpoint, _)| endpoint.name == "model")
            .unwrap()
            .1;
        let of_suites: u64 = model["suites"]
            .as_array()
            .unwrap()
            .iter()
            .map(|suite| suite["runs"].as_u64().unwrap())
            .sum();
        let number = |field: &str| model[field].as_u64().unwrap();
        assert_eq!(of_suites, number("runs") - number("failedRuns"));
    }
}
