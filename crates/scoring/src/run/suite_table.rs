//! The suite table: which suites count, with which weights, on which axes, and which `sortBy` values they feed.
//!
//! An archive contains its suite table. Weights are normalised here once, never per run, so that two scores of the same
//! table are comparable. `suite_text` has the text form.

use std::collections::BTreeSet;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use scoregate_base::routes::SortBy;

use super::BadRun;
use crate::{
    method,
    suite::{Axis, Suite},
};

/// Maximum number of suites in a table.
pub const MAX_SUITES: usize = 8;

/// How far the sum of weights may be from 1 for the weights to be kept as written.
const SUM_TOLERANCE: f64 = 1e-9;

/// A set of axes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AxisSet([bool; 7]);

/// A suite in the table.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SuiteEntry {
    name: Suite,
    weight: f64,
    axes: AxisSet,
    #[serde(deserialize_with = "read_feeds")]
    feeds: Vec<SortBy>,
    /// Set when the suite is part of a table.
    #[serde(skip)]
    axis_weights: [f64; 7],
}

/// A valid table of 1 to 8 suites. Their weights add up to 1.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SuiteTable {
    suites: Vec<SuiteEntry>,
    #[serde(skip)]
    by_feed: [Vec<f64>; 7],
    #[serde(skip)]
    by_axis: [Vec<f64>; 7],
}

impl AxisSet {
    /// All axes.
    pub const ALL: Self = Self([true; 7]);

    /// The axes in this set.
    pub fn iter(self) -> impl Iterator<Item = Axis> {
        Axis::ALL
            .into_iter()
            .zip(self.0)
            .filter_map(|(axis, is_in)| is_in.then_some(axis))
    }

    /// Whether the set contains each axis, in the order of [`Axis::ALL`].
    pub const fn flags(self) -> [bool; 7] {
        self.0
    }
}

impl FromIterator<Axis> for AxisSet {
    fn from_iter<I: IntoIterator<Item = Axis>>(axes: I) -> Self {
        let axes: Vec<Axis> = axes.into_iter().collect();
        Self(Axis::ALL.map(|axis| axes.contains(&axis)))
    }
}

impl Serialize for AxisSet {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for AxisSet {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        read_distinct(from).map(Self::from_iter)
    }
}

impl SuiteEntry {
    /// A suite. The weight is relative until the suite is part of a table.
    pub fn new(name: Suite, weight: f64, axes: AxisSet, feeds: &[SortBy]) -> Self {
        let mut feeds = feeds.to_vec();
        feeds.sort();
        Self {
            name,
            weight,
            axes,
            feeds,
            axis_weights: [0.0; 7],
        }
    }

    /// The name of the suite.
    pub fn name(&self) -> Suite {
        self.name
    }

    /// The name of the suite as text.
    pub fn name_text(&self) -> &str {
        self.name.name()
    }

    /// The weight of the suite. The weights of all suites in the table add up to 1.
    pub fn weight(&self) -> f64 {
        self.weight
    }

    /// The axes that every trial of the suite has.
    pub fn axes(&self) -> AxisSet {
        self.axes
    }

    /// The weights of the axes in a trial, in the order of [`Axis::ALL`]. The weights of the declared axes add up to 1,
    /// and the others are 0.
    pub fn axis_weights(&self) -> &[f64; 7] {
        &self.axis_weights
    }

    /// The `sortBy` values that the suite feeds.
    pub fn feeds(&self) -> &[SortBy] {
        &self.feeds
    }

    /// Distributes the weight of undeclared axes among the axes that the suite declares.
    fn weigh_axes(&mut self) {
        self.axis_weights = method::AXIS_WEIGHTS.map(|(_, weight)| weight);
        for (weight, is_declared) in self.axis_weights.iter_mut().zip(self.axes.flags()) {
            if !is_declared {
                *weight = 0.0;
            }
        }
        let sum: f64 = self.axis_weights.iter().sum();
        if (sum - 1.0).abs() >= SUM_TOLERANCE {
            for weight in &mut self.axis_weights {
                *weight /= sum;
            }
        }
    }

    fn validate(&self, index: usize) -> Result<(), BadRun> {
        let problems = [
            (
                "weight",
                !(self.weight.is_finite() && self.weight > 0.0),
                "write a number above 0",
            ),
            (
                "axes",
                self.axes == AxisSet::default(),
                "a suite needs at least one axis",
            ),
            (
                "feeds",
                self.feeds.is_empty(),
                "a suite needs at least one `sortBy` value",
            ),
        ];
        for (field, is_wrong, problem) in problems {
            if is_wrong {
                return Err(BadRun::new(format!("suite[{index}].{field}"), problem));
            }
        }
        Ok(())
    }
}

impl SuiteTable {
    /// Validates a table and normalises its weights. Weights that already add up to 1 are not changed.
    pub fn new(mut suites: Vec<SuiteEntry>) -> Result<Self, BadRun> {
        if !(1..=MAX_SUITES).contains(&suites.len()) {
            let problem = format!("{} suites; write 1 to {MAX_SUITES}", suites.len());
            return Err(BadRun::new("suite", problem));
        }
        for (index, suite) in suites.iter().enumerate() {
            suite.validate(index)?;
            if suites
                .iter()
                .take(index)
                .any(|other| other.name == suite.name)
            {
                let problem = format!("{} is in the table already", suite.name);
                return Err(BadRun::new(format!("suite[{index}].name"), problem));
            }
        }
        let sum: f64 = suites.iter().map(SuiteEntry::weight).sum();
        if !sum.is_finite() {
            return Err(BadRun::new(
                "suite[0].weight",
                "the weights are too large to add up",
            ));
        }
        let is_normal = (sum - 1.0).abs() < SUM_TOLERANCE;
        for suite in &mut suites {
            suite.weigh_axes();
            if !is_normal {
                suite.weight /= sum;
            }
        }
        let by_feed = SortBy::ALL
            .map(|value| shares(&suites, |suite: &SuiteEntry| suite.feeds.contains(&value)));
        let by_axis = std::array::from_fn(|axis| {
            shares(&suites, |suite: &SuiteEntry| {
                suite.axes.flags().get(axis) == Some(&true)
            })
        });
        Ok(Self {
            suites,
            by_feed,
            by_axis,
        })
    }

    /// The suites, in order.
    pub fn suites(&self) -> &[SuiteEntry] {
        &self.suites
    }

    /// The position of a suite; `None` if it is not in the table.
    pub(crate) fn index(&self, name: Suite) -> Option<usize> {
        self.suites.iter().position(|suite| suite.name == name)
    }

    /// The suite with this name.
    pub fn entry(&self, name: Suite) -> Option<&SuiteEntry> {
        self.suites.iter().find(|suite| suite.name == name)
    }

    /// The weights of the suites that feed a `sortBy` value, in the order of the table. The weights of these suites add
    /// up to 1, and the others are 0.
    pub fn weights(&self, of: SortBy) -> &[f64] {
        let all = SortBy::ALL.into_iter().zip(&self.by_feed);
        all.into_iter()
            .find(|(value, _)| *value == of)
            .map_or(&[], |(_, weights)| weights)
    }

    /// For each axis, in the order of [`Axis::ALL`], the weights of the suites that declare it, normalised in the same
    /// way.
    pub fn axis_weights(&self) -> &[Vec<f64>; 7] {
        &self.by_axis
    }
}

impl Default for SuiteTable {
    /// The default table of an archive.
    fn default() -> Self {
        let own = [SortBy::Coding, SortBy::Reasoning, SortBy::Tooling];
        let suites = method::SUITE_WEIGHTS
            .into_iter()
            .zip(own)
            .map(|((name, weight), own)| {
                let feeds = [
                    SortBy::Combined,
                    own,
                    SortBy::Speed,
                    SortBy::SevenAxis,
                    SortBy::Price,
                ];
                SuiteEntry::new(name, weight, AxisSet::ALL, &feeds)
            });
        Self::new(suites.collect()).expect("the default table is valid: a test checks it")
    }
}

fn read_feeds<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<SortBy>, D::Error> {
    let mut feeds = read_distinct(from)?;
    feeds.sort();
    Ok(feeds)
}

fn read_distinct<'de, D, T>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Ord + Copy,
{
    let list = Vec::<T>::deserialize(from)?;
    let distinct: BTreeSet<T> = list.iter().copied().collect();
    if distinct.len() < list.len() {
        return Err(D::Error::custom("an entry is given twice; keep one"));
    }
    Ok(list)
}

/// The weights of some suites, normalised among these suites, and 0 for the others.
fn shares(suites: &[SuiteEntry], is_part: impl Fn(&SuiteEntry) -> bool) -> Vec<f64> {
    let weights = suites
        .iter()
        .map(|suite| if is_part(suite) { suite.weight } else { 0.0 });
    let sum: f64 = weights.clone().sum();
    weights
        .map(|weight| {
            if (sum - 1.0).abs() < SUM_TOLERANCE || sum <= 0.0 {
                weight
            } else {
                weight / sum
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, weight: f64) -> SuiteEntry {
        SuiteEntry::new(
            Suite::new(name).unwrap(),
            weight,
            AxisSet::ALL,
            &SortBy::ALL,
        )
    }

    #[test]
    fn the_default_table_has_the_weights_of_the_method() {
        let table = SuiteTable::default();
        let weights: Vec<f64> = table.suites().iter().map(SuiteEntry::weight).collect();
        assert_eq!(weights, [0.40, 0.35, 0.25]);
        assert_eq!(table.weights(SortBy::Combined), weights);
        assert_eq!(table.weights(SortBy::Reasoning), [0.0, 1.0, 0.0]);
        for suite in table.suites() {
            assert_eq!(
                suite.axis_weights()[..],
                method::AXIS_WEIGHTS.map(|(_, weight)| weight)[..]
            );
        }
    }

    #[test]
    fn weights_are_normalised_among_the_suites_and_axes_that_take_part() {
        let spec = AxisSet::from_iter([Axis::Spec, Axis::Refusal]);
        let table = SuiteTable::new(vec![
            SuiteEntry::new(Suite::CODING, 3.0, AxisSet::ALL, &[SortBy::Combined]),
            SuiteEntry::new(
                Suite::TOOLING,
                1.0,
                spec,
                &[SortBy::Combined, SortBy::Coding],
            ),
            SuiteEntry::new(Suite::REASONING, 4.0, spec, &[SortBy::Speed]),
        ])
        .unwrap();
        assert_eq!(table.weights(SortBy::Combined), [0.75, 0.25, 0.0]);
        assert_eq!(table.weights(SortBy::Coding), [0.0, 1.0, 0.0]);
        assert_eq!(table.weights(SortBy::Price), [0.0; 3]);
        let [correctness, spec, ..] = table.axis_weights();
        assert_eq!(
            (&correctness[..], &spec[..]),
            (&[1.0, 0.0, 0.0][..], &[0.375, 0.125, 0.5][..])
        );
        let axes = table.entry(Suite::TOOLING).unwrap().axis_weights();
        assert!(
            (axes[1] - 0.6).abs() < 1e-12 && (axes[5] - 0.4).abs() < 1e-12 && axes[0] <= 0.0,
            "{axes:?}"
        );
        // Normalised weights are not changed again.
        assert_eq!(SuiteTable::new(table.suites().to_vec()).unwrap(), table);
    }

    #[test]
    fn an_invalid_table_is_rejected_with_its_field() {
        let refused = |suites| SuiteTable::new(suites).unwrap_err().field;
        assert_eq!(refused(vec![]), "suite");
        assert_eq!(
            refused((0..9).map(|n| entry(&format!("s{n}"), 1.0)).collect()),
            "suite"
        );
        assert_eq!(
            refused(vec![entry("a", 1.0), entry("a", 1.0)]),
            "suite[1].name"
        );
        for weight in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(refused(vec![entry("a", weight)]), "suite[0].weight");
        }
        assert_eq!(
            refused(vec![entry("a", f64::MAX), entry("b", f64::MAX)]),
            "suite[0].weight"
        );
        let none = SuiteEntry::new(Suite::CODING, 1.0, AxisSet::default(), &SortBy::ALL);
        assert_eq!(refused(vec![none]), "suite[0].axes");
        assert_eq!(
            refused(vec![SuiteEntry::new(Suite::CODING, 1.0, AxisSet::ALL, &[])]),
            "suite[0].feeds"
        );
    }
}
