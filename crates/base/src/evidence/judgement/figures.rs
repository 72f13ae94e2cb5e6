//! The figures of applications, by day, and the medians of tiers.

use std::{collections::HashMap, sync::Arc};

use super::rules::{FigureKind, SuspectRules};
use crate::{
    clock::Day,
    evidence::day::{DayEvidence, HourSummary},
    keys::{ApplicationId, OwnerId},
};

/// Minimum size of the catalogue, in positions, for which shares are meaningful. With ten models, for example, any
/// dashboard requests most of them.
pub const LEAST_CATALOGUE: u16 = 50;

/// The evidence about an application.
#[derive(Clone, Debug)]
pub struct CallerDays {
    /// The application.
    pub application: ApplicationId,
    /// The owner, if known.
    pub owner: Option<OwnerId>,
    /// The tier.
    pub tier: Arc<str>,
    /// The days to judge, usually the last seven.
    pub days: Vec<(Day, DayEvidence)>,
}

/// The figures of a day or of a tier, one for each kind.
#[derive(Clone, Copy, Debug)]
pub struct FigureRow([f64; FigureKind::ALL.len()]);

impl FigureRow {
    /// The figure of this kind.
    pub fn get(&self, kind: FigureKind) -> f64 {
        self.0.get(kind as usize).copied().unwrap_or_default()
    }

    /// The figures of a day; `None` if there were no requests.
    fn of_day(day: &DayEvidence, rules: &SuspectRules) -> Option<Self> {
        let counts = &day.counts;
        // Shares of a small catalogue are not meaningful.
        let is_large = day.catalogue >= LEAST_CATALOGUE;
        let share = if is_large { day.share() } else { 0.0 };
        let hours = day.hours.iter().filter(|_| is_large);
        let shares: Vec<f64> = hours.map(|hour| day.share_of_hour(hour)).collect();
        // With r random requests per model, a share of e^-r of the models is missed. The missed share counts as at least half a model.
        let missed = (1.0 - day.share()).max(0.5 / f64::from(day.catalogue.max(1)));
        let busiest = busiest_hour(day, rules);
        let is_used = counts.delivered > 0 || counts.unchanged > 0;
        is_used.then(|| {
            Self(FigureKind::ALL.map(|kind| match kind {
                FigureKind::HourShare | FigureKind::GroupShare => {
                    nth_largest(shares.iter().copied(), rules.hours)
                }
                FigureKind::DayShare => share,
                FigureKind::Economy => {
                    -missed.ln() / shares.iter().sum::<f64>().max(f64::MIN_POSITIVE)
                }
                FigureKind::Networks => busiest.map_or(0.0, |hour| hour.networks.into()),
                FigureKind::Products => busiest.map_or(0.0, |hour| hour.agents.into()),
                FigureKind::Documents => counts.delivered.into(),
                FigureKind::Repeated => {
                    f64::from(day.repeated) / f64::from(counts.delivered.max(1))
                }
            }))
        })
    }

    /// The figures of the days on which a caller sent requests.
    pub fn of_days(caller: &CallerDays, rules: &SuspectRules) -> Vec<Self> {
        caller
            .days
            .iter()
            .filter_map(|(_, day)| Self::of_day(day, rules))
            .collect()
    }

    fn medians(rows: &[Self]) -> Self {
        Self(FigureKind::ALL.map(|kind| median(rows.iter().map(|row| row.get(kind)))))
    }
}

/// The hour that is nearest to the thresholds for networks and products.
fn busiest_hour<'d>(day: &'d DayEvidence, rules: &SuspectRules) -> Option<&'d HourSummary> {
    let hours = day.hours.iter();
    hours.max_by(|one, other| nearness(**one, rules).total_cmp(&nearness(**other, rules)))
}

fn nearness(hour: HourSummary, rules: &SuspectRules) -> f64 {
    reached(hour.networks, rules.networks).min(reached(hour.agents, rules.products))
}

fn reached(number: u8, threshold: u8) -> f64 {
    f64::from(number) / f64::from(threshold.max(1))
}

/// The medians of each tier. Each caller counts once, with the medians of its days.
pub fn medians_of_tiers(
    callers: &[CallerDays],
    days: &[Vec<FigureRow>],
) -> HashMap<Arc<str>, FigureRow> {
    let mut of_tier: HashMap<Arc<str>, Vec<FigureRow>> = HashMap::new();
    for (caller, days) in callers
        .iter()
        .zip(days)
        .filter(|(_, days)| !days.is_empty())
    {
        of_tier
            .entry(Arc::clone(&caller.tier))
            .or_default()
            .push(FigureRow::medians(days));
    }
    of_tier
        .into_iter()
        .map(|(tier, rows)| (tier, FigureRow::medians(&rows)))
        .collect()
}

/// The nth largest number, counted from 1; 0 if there are fewer.
pub fn nth_largest(numbers: impl Iterator<Item = f64>, nth: usize) -> f64 {
    let mut numbers: Vec<f64> = numbers.collect();
    numbers.sort_by(|one, other| other.total_cmp(one));
    numbers
        .get(nth.saturating_sub(1))
        .copied()
        .unwrap_or_default()
}

/// The median (the larger of the two middle numbers); 0 if there are no numbers.
pub fn median(numbers: impl Iterator<Item = f64>) -> f64 {
    let numbers: Vec<f64> = numbers.collect();
    let middle = numbers.len().div_ceil(2);
    nth_largest(numbers.into_iter(), middle)
}
