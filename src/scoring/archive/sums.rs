//! A day of one model, aggregated: for each hour and suite with runs their counts, and the latencies of trials that
//! have one.
//!
//! All that a refresh reads. Numbers are stored exactly, little-endian. Aggregates depend on the weights of axes, so
//! they are recomputed when the method changes.

use crate::clock::Wall;

use super::super::count::RunCounts;
use super::super::hour::Hour;
use super::super::run::{Run, SuiteEntry, Trial};
use super::Damage;

/// Aggregated runs of one hour and suite.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HourSums {
    pub(super) hour: Hour,
    /// The number of the suite.
    pub(super) suite: i64,
    /// The description of the model in the newest run of the hour, of any suite.
    pub(super) description: i64,
    pub(super) count: RunCounts,
    pub(super) latencies: Vec<f64>,
}

/// Aggregates the runs of a day. They are added by time, then by id, each with the numbers of its suite and description.
#[derive(Debug, Default)]
pub(super) struct DaySummation(Vec<HourSums>);

impl DaySummation {
    /// A run of a suite without an `entry` in the table is not counted, but describes its model.
    pub(super) fn add(&mut self, run: &Run, (suite, entry): (i64, Option<&SuiteEntry>), description: i64) {
        let hour = Hour::of(run.at());
        let same = |summed: &&mut HourSums| summed.hour == hour && summed.suite == suite;
        let existing = self.0.iter_mut().rev().take_while(|summed| summed.hour == hour).find(same);
        let summed = match existing {
            Some(summed) => summed,
            None => self.0.push_mut(HourSums {
                hour,
                suite,
                description,
                count: RunCounts::default(),
                latencies: Vec::new(),
            }),
        };
        let before = summed.count.runs;
        if let Some(entry) = entry {
            summed.count.add(run, entry);
        }
        if summed.count.runs > before {
            summed.latencies.extend(run.trials().iter().filter_map(Trial::latency_ms));
        }
        // A window may end with any hour. Every suite of the hour gets the newest description, so that a reader needs
        // neither instants nor ids.
        for summed in self.0.iter_mut().rev().take_while(|summed| summed.hour == hour) {
            summed.description = description;
        }
    }

    /// The encoded aggregate.
    pub(super) fn stored(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for summed in &self.0 {
            write(summed, &mut bytes);
        }
        bytes
    }
}

fn write(summed: &HourSums, to: &mut Vec<u8>) {
    let count = &summed.count;
    let latencies = u32::try_from(summed.latencies.len()).expect("an hour has fewer trials than 2^32");
    to.extend(summed.hour.number().to_le_bytes());
    to.extend(summed.suite.to_le_bytes());
    to.extend(summed.description.to_le_bytes());
    let runs = [count.runs, count.failed, count.scored, count.unlisted];
    let trials = [count.trials, count.failed_trials, count.zeroed, count.perfect, count.zero];
    for number in runs.into_iter().chain(trials).chain([count.costed, latencies]) {
        to.extend(number.to_le_bytes());
    }
    // Zero stands for none: no run dates from the beginning of 1970.
    to.extend(count.last_scored.map_or(0, Wall::millis).to_le_bytes());
    to.extend(count.cost.to_le_bytes());
    for sum in &count.marks {
        to.extend(sum.to_le_bytes());
    }
    to.extend(summed.latencies.iter().flat_map(|latency| latency.to_le_bytes()));
}

/// Decodes an aggregate.
pub(super) fn read(
    mut bytes: &[u8],
    each: &mut dyn FnMut(&HourSums) -> Result<(), Damage>,
) -> Result<(), Damage> {
    let mut summed = HourSums {
        hour: Hour::of(Wall::default()),
        suite: 0,
        description: 0,
        count: RunCounts::default(),
        latencies: Vec::new(),
    };
    while !bytes.is_empty() {
        next(&mut bytes, &mut summed)
            .ok_or_else(|| Damage("the stored sum of a day cannot be decoded".into()))?;
        each(&summed)?;
    }
    Ok(())
}

fn next(bytes: &mut &[u8], summed: &mut HourSums) -> Option<()> {
    summed.hour = Hour::numbered(whole(bytes)?);
    summed.suite = i64::try_from(whole(bytes)?).ok()?;
    summed.description = i64::try_from(whole(bytes)?).ok()?;
    let count = &mut summed.count;
    let runs = [&mut count.runs, &mut count.failed, &mut count.scored, &mut count.unlisted];
    let failed = [&mut count.failed_trials, &mut count.zeroed];
    let trials = [&mut count.trials].into_iter().chain(failed).chain([&mut count.perfect, &mut count.zero]);
    for number in runs.into_iter().chain(trials).chain([&mut count.costed]) {
        *number = small(bytes)?;
    }
    let latencies = small(bytes)?;
    count.last_scored = Some(whole(bytes)?).filter(|at| *at > 0).map(Wall::from_millis);
    count.cost = number(bytes)?;
    for sums in &mut count.marks {
        *sums = number(bytes)?;
    }
    let latencies = bytes.split_off(..usize::try_from(latencies).ok()?.checked_mul(8)?)?;
    summed.latencies.clear();
    summed.latencies.extend(latencies.as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes)));
    Some(())
}

fn small(bytes: &mut &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.split_off(..4)?.as_array()?))
}

fn whole(bytes: &mut &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.split_off(..8)?.as_array()?))
}

fn number(bytes: &mut &[u8]) -> Option<f64> {
    Some(f64::from_le_bytes(*bytes.split_off(..8)?.as_array()?))
}
