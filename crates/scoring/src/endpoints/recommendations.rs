//! `/analytics/recommendations`: which model to use now, by type of task.

use scoregate_base::{routes::Period, words};

use super::{Item, models::ranked};
use crate::{
    figures::{Score, points},
    measure::Measure,
    method,
    model_state::{ModelState, PeriodSummary},
    ranks::differences::is_above,
    snapshot::Snapshot,
};

words! {
    enum Task: word {
        Coding = "coding",
        Reasoning = "reasoning",
        Tooling = "tooling",
        Budget = "budget",
        Fast = "fast",
    }
}

/// One recommendation for each task, if there is a suitable model.
pub fn items(snapshot: &Snapshot, period: Period) -> Vec<Item> {
    Task::ALL
        .into_iter()
        .filter_map(|task| item(snapshot, period, task))
        .collect()
}

fn item(snapshot: &Snapshot, period: Period, task: Task) -> Option<Item> {
    let mut best = ranked(snapshot, period, |summary| task.rank(summary))
        .into_iter()
        .filter(|model_state| task.fits(model_state.over(period)));
    let first = best.next()?;
    let summary = first.over(period);
    let others: Vec<&ModelState> = best.collect();
    let alternatives = others.iter().take(method::ALTERNATIVES);
    // These models may be as good as the first, however few rounds they have.
    let tied = task.measure().map(|measure| {
        let tied = others
            .iter()
            .filter(|other| !is_above(first, other, period, measure, &snapshot.quantiles));
        tied.map(|other| other.id()).collect::<Vec<_>>()
    });
    Some(
        Item::default()
            .with("task", task)
            .model(first)
            .with("score", task.score(summary)?.score)
            .with("reason", task.reason(summary))
            .with(
                "alternatives",
                alternatives.map(|other| other.id()).collect::<Vec<_>>(),
            )
            .maybe("tied", tied),
    )
}

impl Task {
    /// The value that models are ranked by for this task. Higher is better. `None` if there is no combined score.
    fn rank(self, summary: &PeriodSummary) -> Option<f64> {
        let score = summary.score()?.supported();
        match self {
            Self::Coding | Self::Reasoning | Self::Tooling => {
                Some(self.score(summary)?.supported())
            }
            // Free models come first.
            Self::Budget => summary.reading.cost().map(|cost| {
                if cost > 0.0 {
                    score / cost
                } else {
                    f64::INFINITY
                }
            }),
            Self::Fast => summary.latency.map(|latency| -latency),
        }
    }

    /// The score that the task ranks models by, if it has a separate score.
    fn measure(self) -> Option<Measure> {
        match self {
            Self::Coding => Some(Measure::Coding),
            Self::Reasoning => Some(Measure::Reasoning),
            Self::Tooling => Some(Measure::Tooling),
            Self::Budget | Self::Fast => None,
        }
    }

    fn fits(self, summary: &PeriodSummary) -> bool {
        let is_good = summary
            .score()
            .is_some_and(|score| score.supported() >= method::RECOMMENDED_FROM);
        self.rank(summary).is_some() && (is_good || self.measure().is_some())
    }

    /// The score for the task. For price and speed, it is the combined score.
    fn score(self, summary: &PeriodSummary) -> Option<Score> {
        summary.published(self.measure().unwrap_or(Measure::Combined))
    }

    fn reason(self, summary: &PeriodSummary) -> String {
        let from = method::RECOMMENDED_FROM;
        match self {
            Self::Coding | Self::Reasoning | Self::Tooling => {
                format!("Highest lower bound of the {} score.", self.word())
            }
            Self::Budget => {
                let cents = summary
                    .reading
                    .cost()
                    .map_or(0.0, |cost| points(cost * 100.0));
                format!(
                    "Highest lower bound of the score per dollar among models whose lower bound is at least {from}: {cents} cents per trial."
                )
            }
            Self::Fast => {
                let latency = summary.latency.unwrap_or_default().round();
                format!(
                    "Lowest median latency among models whose score has a lower bound of at least {from}: {latency} ms."
                )
            }
        }
    }
}
