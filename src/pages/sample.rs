//! Sample items, made from the fields' own table: what the documents show as an example.
//!
//! The values are invented. Not for: the built-in backend, which computes its own.

use serde::ser::{Serialize, SerializeMap as _, Serializer};

use crate::routes::shapes::{Field, Shape};
use crate::routes::{Endpoint, Param, Period, SortBy};

/// An instant in the examples.
pub(super) const INSTANT: &str = "2026-11-21T13:00:00Z";
/// A model's identifier in the examples.
pub(super) const MODEL: &str = "atlas-2";

/// An item with all of its fields, in the order of the table.
pub(super) struct Item(pub(super) &'static [Field]);

struct Sample<'a>(&'a Field);

impl Serialize for Item {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for field in self.0 {
            map.serialize_entry(field.name, &Sample(field))?;
        }
        map.end()
    }
}

impl Serialize for Sample<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.shape {
            Shape::Text => serializer.serialize_str(text(self.0.name)),
            Shape::Instant => serializer.serialize_str(INSTANT),
            Shape::Number | Shape::Score => serializer.serialize_f64(number(self.0.name)),
            Shape::Integer => serializer.serialize_u64(24),
            Shape::Flag => serializer.serialize_bool(false),
            Shape::Words(words) => words.first().serialize(serializer),
            Shape::Object(fields) => Item(fields).serialize(serializer),
            Shape::Objects(fields) => [Item(fields)].serialize(serializer),
            Shape::Texts | Shape::Values => [MODEL].serialize(serializer),
        }
    }
}

fn text(name: &str) -> &'static str {
    match name {
        "id" | "modelId" | "bestModel" => MODEL,
        "name" | "modelName" => "Atlas 2",
        "provider" => "meridian",
        "tier" => "pro",
        "key_prefix" => "sg_live_4fQm",
        "methodVersion" => "2.0",
        _ => "…",
    }
}

fn number(name: &str) -> f64 {
    match name {
        "pValue" => 0.003,
        "availability" => 0.998,
        "weight" | "slopePerDay" => 0.25,
        "delta" => 0.5,
        "noise" => 1.1,
        "signalledStatistic" => 12.7,
        "standardError" | "scoreDeviation" => 1.2,
        "drop" | "magnitude" | "worstAxisLoss" => 6.5,
        "priceInput" => 3.0,
        "priceOutput" => 15.0,
        "latencyMs" => 840.0,
        "confidenceLower" => 79.9,
        "confidenceUpper" => 84.3,
        "statistic" => 4.1,
        "threshold" => 12.0,
        _ => 82.1,
    }
}

/// A whole answer of an endpoint, as a paid caller sees it who names no parameter.
#[derive(serde::Serialize)]
pub(super) struct Answer<'a> {
    success: bool,
    version: &'a str,
    generated_at: &'static str,
    license: &'a str,
    period: Option<&'static str>,
    sort_by: Option<&'static str>,
    count: usize,
    data: [Item; 1],
}

impl<'a> Answer<'a> {
    pub(super) fn of(endpoint: &Endpoint, version: &'a str, license: &'a str) -> Self {
        let takes = |param| endpoint.takes.contains(&param);
        Self {
            success: true,
            version,
            generated_at: INSTANT,
            license,
            period: takes(Param::Period).then_some(Period::Latest.word()),
            sort_by: takes(Param::SortBy).then_some(SortBy::Combined.word()),
            count: 1,
            data: [Item(endpoint.item)],
        }
    }
}

/// A value as JSON text with line breaks, fields in their order.
pub(super) fn pretty(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).expect("the keys are texts and no number is infinite")
}

/// A value as a JSON value.
pub(super) fn value(value: &impl Serialize) -> serde_json::Value {
    serde_json::to_value(value).expect("the keys are texts and no number is infinite")
}

/// A value as JSON text on one line, fields in their order.
pub(super) fn text_of(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("the keys are texts and no number is infinite")
}
