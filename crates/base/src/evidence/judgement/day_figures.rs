//! The figures of a day of an application.

use super::super::day::{DayEvidence, HourSummary};
use super::rules::{FigureKind, SuspectRules};

/// The figures of a day.
#[derive(Clone, Copy, Debug)]
pub(super) struct DayFigures {
    values: [f64; FigureKind::ALL.len()],
    /// Hours for each model that unsystematic requests need to reach as many models.
    unsystematic: f64,
}

impl DayFigures {
    /// The figures; `None` without requests for documents.
    pub(super) fn of(day: &DayEvidence, rules: &SuspectRules) -> Option<Self> {
        let counts = &day.counts;
        if counts.delivered == 0 && counts.unchanged == 0 {
            return None;
        }
        let share = day.share();
        let all_hours: f64 = day.hours.iter().map(|hour| day.share_of_hour(hour)).sum();
        let model_hours = if share > 0.0 { all_hours / share } else { 0.0 };
        // Requests at random, r for each model, miss a share of e^-r of the models. A share below half a model cannot be seen.
        let missed = (1.0 - share).max(0.5 / f64::from(day.catalogue.max(1)));
        let unsystematic = if share > 0.0 { -missed.ln() / share } else { 0.0 };
        let (networks, products) = busiest(day, rules);
        let repeated = f64::from(day.repeated) / f64::from(counts.delivered.max(1));
        let values = FigureKind::ALL.map(|kind| match kind {
            FigureKind::HourShare | FigureKind::GroupShare => {
                nth_largest(day.hours.iter().map(|hour| day.share_of_hour(hour)), rules.hours)
            }
            FigureKind::DayShare => share,
            FigureKind::ModelHours => model_hours,
            FigureKind::Networks => networks,
            FigureKind::Products => products,
            FigureKind::Documents => f64::from(counts.delivered),
            FigureKind::Repeated => repeated,
        });
        Some(Self { values, unsystematic })
    }

    /// A figure.
    pub(super) fn value(&self, kind: FigureKind) -> f64 {
        self.values.get(kind as usize).copied().unwrap_or_default()
    }

    /// The threshold of a figure. That of the hours for each model is a maximum, all others are minima.
    pub(super) fn threshold(&self, kind: FigureKind, rules: &SuspectRules) -> f64 {
        match kind {
            FigureKind::HourShare => rules.hour_share,
            FigureKind::DayShare => rules.day_share,
            FigureKind::ModelHours => self.unsystematic / rules.system,
            FigureKind::Networks => rules.networks.into(),
            FigureKind::Products => rules.products.into(),
            FigureKind::Documents => rules.documents.into(),
            FigureKind::Repeated => rules.repeated,
            FigureKind::GroupShare => rules.group_share,
        }
    }

    /// Whether a figure reaches its threshold.
    pub(super) fn reaches(&self, kind: FigureKind, rules: &SuspectRules) -> bool {
        let (value, threshold) = (self.value(kind), self.threshold(kind, rules));
        if kind == FigureKind::ModelHours { value <= threshold } else { value >= threshold }
    }
}

/// Networks and products of the hour that is nearest to both thresholds.
fn busiest(day: &DayEvidence, rules: &SuspectRules) -> (f64, f64) {
    let nearness = |hour: &&HourSummary| {
        let reached = |number: u8, threshold: u8| f64::from(number) / f64::from(threshold.max(1));
        reached(hour.networks, rules.networks).min(reached(hour.agents, rules.products))
    };
    let hour = day.hours.iter().max_by(|one, other| nearness(one).total_cmp(&nearness(other)));
    hour.map_or((0.0, 0.0), |hour| (hour.networks.into(), hour.agents.into()))
}

/// The nth largest number, from 1 on; 0 if there are fewer.
pub(super) fn nth_largest(numbers: impl Iterator<Item = f64>, nth: usize) -> f64 {
    let mut numbers: Vec<f64> = numbers.collect();
    numbers.sort_by(|one, other| other.total_cmp(one));
    numbers.get(nth.saturating_sub(1)).copied().unwrap_or_default()
}

/// The median, the larger one of two; 0 of no numbers.
pub(super) fn median(numbers: impl Iterator<Item = f64>) -> f64 {
    let numbers: Vec<f64> = numbers.collect();
    let middle = numbers.len().div_ceil(2);
    nth_largest(numbers.into_iter(), middle)
}
