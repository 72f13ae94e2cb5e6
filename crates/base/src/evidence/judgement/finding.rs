//! A finding, and its sentence.

use std::sync::Arc;

use super::rules::{FigureKind, FiredRule};
use crate::keys::ApplicationId;
use crate::words;

words! {
    /// The kind of misuse that an application looks like.
    pub enum Suspicion: word {
        /// It copies the catalogue.
        Mirror = "mirror",
        /// Its key is used by many.
        SharedKey = "shared_key",
        /// Its owner has further accounts, which copy the catalogue together.
        SeveralAccounts = "several_accounts",
        /// It requests a few documents all the time.
        InefficientPoller = "inefficient_poller",
    }
}

/// A figure of an application.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// Its kind, which names it.
    pub kind: FigureKind,
    /// The number; shares from 0 to 1.
    pub value: f64,
    /// The number from which the rule fires; a maximum for [`FigureKind::ModelHours`].
    pub threshold: f64,
    /// The median of the callers of the same tier.
    pub median: f64,
}

/// A reason to look at an application.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The application.
    pub application: ApplicationId,
    /// What it looks like.
    pub suspicion: Suspicion,
    /// The rule that fired.
    pub rule: FiredRule,
    /// The other applications of its group.
    pub others: Vec<ApplicationId>,
    /// Its figures on the day that decided: as many days as the rule requires are at least as conspicuous.
    pub figures: Vec<Figure>,
    /// Days on which the rule was fulfilled.
    pub days: usize,
    /// Days with requests.
    pub of_days: usize,
    /// The tier of the application.
    pub tier: Arc<str>,
}

impl Finding {
    /// The finding in plain English.
    pub fn sentence(&self) -> String {
        let figures: Vec<String> = self.figures.iter().map(|figure| self.described(figure)).collect();
        format!("{} This was so on {} of {} days.", figures.join(" "), self.days, self.of_days)
    }

    fn described(&self, figure: &Figure) -> String {
        let shown = |number: f64| match figure.kind {
            FigureKind::HourShare | FigureKind::DayShare | FigureKind::Repeated | FigureKind::GroupShare => {
                format!("{:.0} %", (number * 100.0).floor())
            }
            FigureKind::ModelHours => format!("{number:.1}"),
            FigureKind::Networks | FigureKind::Products | FigureKind::Documents => format!("{number:.0}"),
        };
        let said = match figure.kind {
            FigureKind::HourShare => "It requested {} of the models in an hour, several times a day",
            FigureKind::DayShare => "It requested {} of the models in a day",
            FigureKind::ModelHours => {
                "It requested each model in {} hours of the day, so it hardly repeats a request"
            }
            FigureKind::Networks => "It was used from {} networks in an hour",
            FigureKind::Products => "Its user agents named {} products in that hour",
            FigureKind::Documents => "It received {} documents in a day",
            FigureKind::Repeated => "Of these, {} had been delivered before in the same hour",
            FigureKind::GroupShare => {
                "With the other applications it requested {} of the models in an hour, several times a day"
            }
        };
        let said = said.replace("{}", &shown(figure.value));
        let limit = if figure.kind == FigureKind::ModelHours {
            "the threshold is at most"
        } else {
            "the threshold is"
        };
        let (threshold, median) = (shown(figure.threshold), shown(figure.median));
        format!("{said}; {limit} {threshold}; the median {} caller has {median}.", self.tier)
    }
}
