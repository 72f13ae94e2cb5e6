//! A finding and its description.

use std::sync::Arc;

use super::rules::{FigureKind, FiredRule, Suspicion};
use crate::keys::ApplicationId;

/// A figure of an application.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// The kind of figure.
    pub kind: FigureKind,
    /// The number. Shares are from 0 to 1.
    pub value: f64,
    /// The smallest number for which the rule fires.
    pub threshold: f64,
    /// The median for callers of the same tier.
    pub median: f64,
}

/// A reason to look at an application.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The application.
    pub application: ApplicationId,
    /// The tier.
    pub tier: Arc<str>,
    /// The suspected misuse.
    pub suspicion: Suspicion,
    /// The rule that fired.
    pub rule: FiredRule,
    /// The other applications of the group.
    pub others: Vec<ApplicationId>,
    /// The figures of the decisive day: among the days on which the rule fired, the one whose first figure is the
    /// `least_days`-th largest.
    pub figures: Vec<Figure>,
    /// Days on which the rule fired.
    pub days: usize,
    /// Minimum number of days on which the rule must fire.
    pub least_days: usize,
    /// Days on which the application was used.
    pub of_days: usize,
}

impl Finding {
    /// The finding in plain English.
    pub fn sentence(&self) -> String {
        let Self {
            days,
            least_days,
            of_days,
            ..
        } = self;
        let days = format!(
            "The rule fired on {days} of {of_days} days; the threshold is {least_days} days."
        );
        let figures = self.figures.iter().map(|figure| {
            let [value, threshold, median] =
                [figure.value, figure.threshold, figure.median].map(|number| match figure.kind {
                    FigureKind::HourShare
                    | FigureKind::DayShare
                    | FigureKind::Repeated
                    | FigureKind::GroupShare => {
                        format!("{:.0} %", (number * 100.0).floor())
                    }
                    FigureKind::Economy => format!("{number:.1}"),
                    FigureKind::Networks | FigureKind::Products | FigureKind::Documents => {
                        format!("{number:.0}")
                    }
                });
            let name = figure.kind.name();
            let tier = &self.tier;
            format!(
                "The {name} was {value}; the threshold is {threshold}; the median {tier} caller has {median}."
            )
        });
        figures.chain([days]).collect::<Vec<String>>().join(" ")
    }
}
