//! The evidence about applications, and the medians of their tiers.

use std::collections::HashMap;
use std::sync::Arc;

use super::super::day::DayEvidence;
use super::day_figures::{DayFigures, median};
use super::rules::FigureKind;
use crate::clock::Day;
use crate::keys::{ApplicationId, OwnerId};

/// The evidence about an application.
#[derive(Clone, Debug)]
pub struct CallerDays {
    /// The application.
    pub application: ApplicationId,
    /// Its owner, if it is known.
    pub owner: Option<OwnerId>,
    /// Its tier.
    pub tier: Arc<str>,
    /// The days to judge, usually the last seven.
    pub days: Vec<(Day, DayEvidence)>,
}

/// The medians of the callers of each tier, of each of whom the median of its days counts.
pub(super) struct TierMedians(HashMap<Arc<str>, [f64; FigureKind::ALL.len()]>);

impl TierMedians {
    /// The medians of callers with these figures of their days.
    pub(super) fn of(callers: &[CallerDays], figures: &[Vec<DayFigures>]) -> Self {
        let mut of_tier: HashMap<Arc<str>, Vec<&Vec<DayFigures>>> = HashMap::new();
        for (caller, days) in callers.iter().zip(figures).filter(|(_, days)| !days.is_empty()) {
            of_tier.entry(Arc::clone(&caller.tier)).or_default().push(days);
        }
        let of_days = |days: &[DayFigures], kind| median(days.iter().map(|day| day.value(kind)));
        let of_callers = |callers: &[&Vec<DayFigures>]| {
            FigureKind::ALL.map(|kind| median(callers.iter().map(|days| of_days(days, kind))))
        };
        Self(of_tier.into_iter().map(|(tier, callers)| (tier, of_callers(&callers))).collect())
    }

    /// The median of a tier.
    pub(super) fn get(&self, tier: &str, kind: FigureKind) -> f64 {
        self.0.get(tier).and_then(|medians| medians.get(kind as usize)).copied().unwrap_or_default()
    }
}
