//! Measures in turns: in every round each contestant does the job once, so that all meet the same machine. A figure is
//! the middle of its rounds, and a ratio the middle of the ratios within a round. Not for: how it is shown (`table`).

use std::time::Duration;

use crate::client::Crowd;
use crate::contestants::Contestant;
use crate::job::{Job, Keys};
use crate::machine::{resident, worked};

/// How much is measured.
pub(crate) struct Size {
    /// How often each takes its turn.
    pub(crate) rounds: usize,
    /// How long it asks before its turn counts.
    pub(crate) warm_up: Duration,
    /// How long a turn is.
    pub(crate) turn: Duration,
}

/// One row: who does which job.
pub(crate) struct Row<'c> {
    /// What it is called in the table.
    pub(crate) name: String,
    /// Who.
    pub(crate) who: &'c Contestant,
    /// What.
    pub(crate) job: Job,
}

/// What was measured of a row, round by round.
#[derive(Default)]
pub(crate) struct Figures {
    /// Microseconds of processor time for a request.
    pub(crate) work: Vec<f64>,
    /// Requests a second.
    pub(crate) rate: Vec<f64>,
    /// Mebibytes that it held afterwards.
    pub(crate) memory: Vec<f64>,
    /// Microseconds that answers took at a rate: the middle, one in a hundred, one in a thousand. Endless where it could
    /// not keep up; none where nobody asked.
    pub(crate) took: [Vec<f64>; 3],
}

/// All rows in turns, each as fast as it can.
pub(crate) fn in_turns(rows: &[Row<'_>], size: &Size) -> Vec<Figures> {
    let mut all: Vec<Figures> = rows.iter().map(|_| Figures::default()).collect();
    for round in 0..size.rounds {
        for turn in 0..rows.len() {
            // Nobody always comes behind the same one.
            let place = (turn + round) % rows.len();
            let row = &rows[place];
            let (mut crowd, family) = (Crowd::to(row.who.address), row.who.process.family());
            crowd.without_pause(&row.job, size.warm_up);
            let before = worked(&family);
            let outcome = crowd.without_pause(&row.job, size.turn);
            let work = worked(&family) - before;
            row.holds(outcome.strange, outcome.answers);
            all[place].work.push(work * 1e6 / outcome.answers as f64);
            all[place].rate.push(outcome.answers as f64 / outcome.lasted.as_secs_f64());
            all[place].memory.push(resident(&family) / 1_048_576.0);
        }
    }
    all
}

/// All rows in turns at one rate: how long answers take where there is no queue of the client's own making.
pub(crate) fn at_rate(rows: &[Row<'_>], size: &Size, rate: f64, all: &mut [Figures]) {
    for round in 0..size.rounds {
        for turn in 0..rows.len() {
            let place = (turn + round) % rows.len();
            let row = &rows[place];
            let mut crowd = Crowd::to(row.who.address);
            crowd.without_pause(&row.job, size.warm_up);
            let mut outcome = crowd.at_rate(&row.job, rate, size.turn);
            row.holds(outcome.strange, outcome.answers);
            outcome.took.sort_unstable();
            for (took, thousandths) in all[place].took.iter_mut().zip([500, 990, 999]) {
                let at = (outcome.took.len() - 1) * thousandths / 1_000;
                let micros = outcome.took[at].as_secs_f64() * 1e6;
                took.push(if outcome.is_too_much { f64::INFINITY } else { micros });
            }
        }
    }
}

impl<'c> Row<'c> {
    /// The job of all.
    pub(crate) fn hits(who: &'c Contestant, keys: &Keys) -> Self {
        Self { name: who.name.to_owned(), who, job: keys.hits() }
    }

    /// A minute that is spent gives one request a minute; of anything else none may go astray.
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

/// The middle of the figures; none of none.
pub(crate) fn middle(figures: &[f64]) -> Option<f64> {
    let mut sorted = figures.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

/// The middle of the ratios, round by round.
pub(crate) fn ratio(figures: &[f64], to: &[f64]) -> Option<f64> {
    middle(&figures.iter().zip(to).map(|(one, other)| one / other).collect::<Vec<f64>>())
}
