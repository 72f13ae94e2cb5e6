//! Measures in interleaved rounds: in every round each contestant does the job once, so that all see the same
//! machine. A figure is the median of its rounds, and a ratio the median of the ratios within a round.

use std::time::Duration;

use crate::{
    client::ClientPool,
    contestants::Contestant,
    job::{Job, Keys},
    machine::{resident, worked},
};

/// The size of a measurement.
pub struct Size {
    /// Number of rounds.
    pub rounds: usize,
    /// Warm-up before each turn.
    pub warm_up: Duration,
    /// Duration of a turn.
    pub turn: Duration,
}

/// A row: a contestant and its job.
pub struct Row<'c> {
    /// Its name in the table.
    pub name: String,
    pub contestant: &'c Contestant,
    pub job: Job,
}

/// The measurements of a row, per round.
#[derive(Default)]
pub struct Figures {
    /// Microseconds of CPU time per request.
    pub work: Vec<f64>,
    /// Requests per second.
    pub rate: Vec<f64>,
    /// Memory afterwards, in MiB.
    pub memory: Vec<f64>,
    /// Latencies at a rate in microseconds: median, p99, p99.9. Infinite if the contestant could not keep up; empty
    /// if not measured.
    pub took: [Vec<f64>; 3],
}

/// All rows, interleaved, each as fast as it can.
pub fn in_turns(rows: &[Row<'_>], size: &Size) -> Vec<Figures> {
    let mut all: Vec<Figures> = rows.iter().map(|_| Figures::default()).collect();
    for round in 0..size.rounds {
        for turn in 0..rows.len() {
            // The order rotates.
            let place = (turn + round) % rows.len();
            let row = &rows[place];
            let mut pool = ClientPool::to(row.contestant.address, &row.job.transport);
            let family = row.contestant.process.family();
            pool.without_pause(&row.job, size.warm_up);
            let before = worked(&family);
            let outcome = pool.without_pause(&row.job, size.turn);
            let work = worked(&family) - before;
            row.holds(outcome.strange, outcome.answers);
            all[place].work.push(work * 1e6 / outcome.answers as f64);
            all[place]
                .rate
                .push(outcome.answers as f64 / outcome.lasted.as_secs_f64());
            all[place].memory.push(resident(&family) / 1_048_576.0);
        }
    }
    all
}

/// All rows, interleaved, at one rate: latencies without a queue in the client.
pub fn at_rate(rows: &[Row<'_>], size: &Size, rate: f64, all: &mut [Figures]) {
    for round in 0..size.rounds {
        for turn in 0..rows.len() {
            let place = (turn + round) % rows.len();
            let row = &rows[place];
            let mut pool = ClientPool::to(row.contestant.address, &row.job.transport);
            pool.without_pause(&row.job, size.warm_up);
            let mut outcome = pool.at_rate(&row.job, rate, size.turn);
            row.holds(outcome.strange, outcome.answers);
            outcome.took.sort_unstable();
            for (took, thousandths) in all[place].took.iter_mut().zip([500, 990, 999]) {
                let at = (outcome.took.len() - 1) * thousandths / 1_000;
                let micros = outcome.took[at].as_secs_f64() * 1e6;
                took.push(if outcome.is_too_much {
                    f64::INFINITY
                } else {
                    micros
                });
            }
        }
    }
}

impl<'c> Row<'c> {
    /// The job of all contestants.
    pub fn hits(contestant: &'c Contestant, keys: &Keys) -> Self {
        Self {
            name: contestant.name.to_owned(),
            contestant,
            job: keys.hits(),
        }
    }

    /// A caller with an exhausted minute still gets one request a minute; for all others no unexpected status is
    /// allowed.
    fn holds(&self, strange: usize, answers: usize) {
        let borne = if self.job.status == 429 { 2 } else { 0 };
        assert!(
            strange <= borne,
            "{}: {strange} of {answers} answers are not {}",
            self.name,
            self.job.status
        );
    }
}

/// The median; `None` without figures.
pub fn middle(figures: &[f64]) -> Option<f64> {
    let mut sorted = figures.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

/// The interval that contains the true median with a confidence of at least 95 %: the order statistics whose ranks are
/// exceeded by the successes of as many fair coins with a probability of at most 2.5 % on each side. It assumes nothing about
/// the distribution. With fewer than six rounds no ranks suffice, and it is the range.
pub fn interval(figures: &[f64]) -> Option<(f64, f64)> {
    let mut sorted = figures.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let mut rank = 0;
    let mut chance = 0.5_f64.powi(i32::try_from(sorted.len()).ok()?);
    let mut below = 0.0;
    loop {
        below += chance;
        if below > 0.025 {
            break;
        }
        chance *= (sorted.len() - rank) as f64 / (rank + 1) as f64;
        rank += 1;
    }
    let rank = rank.max(1);
    Some((
        *sorted.get(rank - 1)?,
        *sorted.get(sorted.len().checked_sub(rank)?)?,
    ))
}

/// The median of the ratios, round by round.
pub fn ratio(figures: &[f64], to: &[f64]) -> Option<f64> {
    middle(
        &figures
            .iter()
            .zip(to)
            .map(|(one, other)| one / other)
            .collect::<Vec<f64>>(),
    )
}
