//! A day of one model, aggregated: for each hour and suite with runs their counts and the latencies of their trials.
//!
//! All that a refresh reads. Numbers are stored exactly, little-endian. Aggregates depend on the weights of axes, so
//! they are recomputed when the method changes.

use crate::clock::Wall;

use super::super::count::{PowerSums, RunCounts};
use super::super::hour::Hour;
use super::super::run::{Run, RunOutcome, Suite, Trial};
use super::Damage;
use super::rows::suite_number;

/// Aggregated runs of one hour and suite.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HourSums {
    pub(super) hour: Hour,
    pub(super) suite: Suite,
    /// The description of the model in the newest run of the hour, of any suite.
    pub(super) description: i64,
    pub(super) count: RunCounts,
    pub(super) latencies: Vec<f64>,
}

/// Aggregates the runs of a day. They are added by time, then by id, each with the number of its description.
#[derive(Debug, Default)]
pub(super) struct DaySummation(Vec<HourSums>);

impl DaySummation {
    pub(super) fn add(&mut self, run: &Run, description: i64) {
        let (hour, suite) = (Hour::of(run.at()), run.suite());
        let same = |summed: &&mut HourSums| summed.hour == hour && summed.suite == suite;
        // The matching entry is near the end: there are few suites.
        let existing = self.0.iter_mut().rev().take(Suite::ALL.len()).find(same);
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
        summed.count.add(run);
        match run.outcome() {
            RunOutcome::Scored(trials) => summed.latencies.extend(trials.iter().map(Trial::latency_ms)),
            RunOutcome::Failed(_) => {}
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
    let RunCounts { runs, failed, trials, failed_trials, last_scored, cost, marks } = &summed.count;
    to.extend(summed.hour.number().to_le_bytes());
    to.extend(suite_number(summed.suite).to_le_bytes());
    to.extend(summed.description.to_le_bytes());
    for number in [runs, failed, trials, failed_trials] {
        to.extend(number.to_le_bytes());
    }
    // Zero stands for none: no run dates from the beginning of 1970.
    to.extend(last_scored.map_or(0, Wall::millis).to_le_bytes());
    to.extend(cost.to_le_bytes());
    for PowerSums { sum, squares } in marks {
        to.extend(sum.to_le_bytes());
        to.extend(squares.to_le_bytes());
    }
    to.extend(summed.latencies.iter().flat_map(|latency| latency.to_le_bytes()));
}

/// Decodes an aggregate.
pub(super) fn read(mut bytes: &[u8], each: &mut dyn FnMut(&HourSums)) -> Result<(), Damage> {
    let mut summed = HourSums {
        hour: Hour::of(Wall::default()),
        suite: Suite::Coding,
        description: 0,
        count: RunCounts::default(),
        latencies: Vec::new(),
    };
    while !bytes.is_empty() {
        next(&mut bytes, &mut summed)
            .ok_or_else(|| Damage("the stored sum of a day cannot be decoded".into()))?;
        each(&summed);
    }
    Ok(())
}

fn next(bytes: &mut &[u8], summed: &mut HourSums) -> Option<()> {
    summed.hour = Hour::numbered(whole(bytes)?);
    summed.suite = *Suite::ALL.get(usize::try_from(whole(bytes)?).ok()?)?;
    summed.description = i64::try_from(whole(bytes)?).ok()?;
    let count = &mut summed.count;
    for number in [&mut count.runs, &mut count.failed, &mut count.trials, &mut count.failed_trials] {
        *number = u32::from_le_bytes(*bytes.split_off(..4)?.as_array()?);
    }
    count.last_scored = Some(whole(bytes)?).filter(|at| *at > 0).map(Wall::from_millis);
    count.cost = number(bytes)?;
    for sums in &mut count.marks {
        *sums = PowerSums { sum: number(bytes)?, squares: number(bytes)? };
    }
    let latencies = bytes.split_off(..usize::try_from(count.trials).ok()?.checked_mul(8)?)?;
    summed.latencies.clear();
    summed.latencies.extend(latencies.as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes)));
    Some(())
}

fn whole(bytes: &mut &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.split_off(..8)?.as_array()?))
}

fn number(bytes: &mut &[u8]) -> Option<f64> {
    Some(f64::from_le_bytes(*bytes.split_off(..8)?.as_array()?))
}
