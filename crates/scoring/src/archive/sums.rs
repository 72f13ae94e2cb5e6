//! A day of one model, aggregated: for each hour and suite with runs their counts, and the latencies of trials that
//! have one.
//!
//! All that a refresh reads. Numbers are stored exactly, little-endian. Aggregates depend on the weights of axes, so
//! they are recomputed when the method changes.

use scoregate_base::clock::Wall;

use super::Trouble;
use crate::count::RunCounts;
use crate::hour::Hour;
use crate::run::{Run, SuiteEntry, Trial};

/// Bytes of an hour and suite before its latencies: three numbers of eight bytes, eleven of four, and again eleven of
/// eight.
const HEAD: usize = 3 * 8 + 11 * 4 + 11 * 8;

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
    pub(super) fn add(
        &mut self,
        run: &Run,
        (suite, entry): (i64, Option<&SuiteEntry>),
        description: i64,
    ) {
        let hour = Hour::of(run.at());
        let same = |summed: &&mut HourSums| summed.hour == hour && summed.suite == suite;
        let existing = self
            .0
            .iter_mut()
            .rev()
            .take_while(|summed| summed.hour == hour)
            .find(same);
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
            summed
                .latencies
                .extend(run.trials().iter().filter_map(Trial::latency_ms));
        }
        // A window may end with any hour. Every suite of the hour gets the newest description, so that a reader needs
        // neither instants nor ids.
        for summed in self
            .0
            .iter_mut()
            .rev()
            .take_while(|summed| summed.hour == hour)
        {
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
    let latencies =
        u32::try_from(summed.latencies.len()).expect("an hour has fewer trials than 2^32");
    to.extend(summed.hour.number().to_le_bytes());
    to.extend(summed.suite.to_le_bytes());
    to.extend(summed.description.to_le_bytes());
    for number in { *count }
        .numbers_mut()
        .into_iter()
        .map(|number| *number)
        .chain([latencies])
    {
        to.extend(number.to_le_bytes());
    }
    // Zero stands for none: no run dates from the beginning of 1970.
    to.extend(count.last_scored.map_or(0, Wall::millis).to_le_bytes());
    to.extend(count.cost.to_le_bytes());
    for sum in &count.marks {
        to.extend(sum.to_le_bytes());
    }
    to.extend(
        summed
            .latencies
            .iter()
            .flat_map(|latency| latency.to_le_bytes()),
    );
}

/// Decodes an aggregate.
pub(super) fn read(
    mut bytes: &[u8],
    each: &mut dyn FnMut(&HourSums) -> Result<(), Trouble>,
) -> Result<(), Trouble> {
    let mut summed = HourSums {
        hour: Hour::of(Wall::default()),
        suite: 0,
        description: 0,
        count: RunCounts::default(),
        latencies: Vec::new(),
    };
    while !bytes.is_empty() {
        next(&mut bytes, &mut summed)
            .ok_or_else(|| Trouble::Damage("the stored sum of a day cannot be decoded".into()))?;
        each(&summed)?;
    }
    Ok(())
}

fn next(bytes: &mut &[u8], summed: &mut HourSums) -> Option<()> {
    let head: &[u8; HEAD] = bytes.split_off(..HEAD)?.as_array()?;
    let (wholes, rest) = head.split_first_chunk::<24>()?;
    let (smalls, rest) = rest.split_first_chunk::<44>()?;
    let [hour, suite, description] = wholes.as_chunks().0 else {
        return None;
    };
    summed.hour = Hour::numbered(u64::from_le_bytes(*hour));
    summed.suite = i64::from_le_bytes(*suite);
    summed.description = i64::from_le_bytes(*description);
    let count = &mut summed.count;
    let smalls = smalls.as_chunks().0;
    let (latencies, numbers) = smalls.split_last()?;
    for (number, bytes) in count.numbers_mut().into_iter().zip(numbers) {
        *number = u32::from_le_bytes(*bytes);
    }
    let [last_scored, cost, marks @ ..] = rest.as_chunks().0 else {
        return None;
    };
    let last_scored = Some(u64::from_le_bytes(*last_scored)).filter(|at| *at > 0);
    count.last_scored = last_scored.map(Wall::from_millis);
    count.cost = f64::from_le_bytes(*cost);
    for (sum, bytes) in count.marks.iter_mut().zip(marks) {
        *sum = f64::from_le_bytes(*bytes);
    }
    let latencies = usize::try_from(u32::from_le_bytes(*latencies)).ok()?;
    let latencies = bytes.split_off(..latencies.checked_mul(8)?)?;
    summed.latencies.clear();
    summed.latencies.extend(
        latencies
            .as_chunks()
            .0
            .iter()
            .map(|bytes| f64::from_le_bytes(*bytes)),
    );
    Some(())
}
