//! The rules and their thresholds.

use crate::words;

/// The thresholds of the rules. A rule fires if all of its figures reach their thresholds on [`days`](Self::days) days.
/// Shares are from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SuspectRules {
    /// Minimum number of days on which a rule must be met.
    pub days: usize,
    /// Share of the models that a mirror requests in several hours of a day.
    pub hour_share: f64,
    /// Minimum number of hours of a day with this share.
    pub hours: usize,
    /// Share of the models that a slow mirror requests in a day.
    pub day_share: f64,
    /// Number of random requests that would reach as many models as a slow mirror, as a multiple of the mirror's requests.
    pub economy: f64,
    /// Share of the models that a group of coordinated applications requests in several hours.
    pub group_share: f64,
    /// Minimum number of networks in an hour for a key to count as shared.
    pub networks: u8,
    /// Number of products in user agents in the same hour.
    pub products: u8,
    /// Number of documents that are delivered to an inefficient poller in a day.
    pub documents: u32,
    /// Share of these documents that had already been delivered in the same hour.
    pub repeated: f64,
}

impl Default for SuspectRules {
    /// The defaults were chosen with simulated clients.
    fn default() -> Self {
        Self {
            days: 3,
            hour_share: 0.4,
            hours: 2,
            day_share: 0.8,
            economy: 2.0,
            group_share: 0.7,
            networks: 8,
            products: 8,
            documents: 1_000,
            repeated: 0.98,
        }
    }
}

impl SuspectRules {
    /// The threshold of a figure.
    pub(super) fn threshold(&self, kind: FigureKind) -> f64 {
        match kind {
            FigureKind::HourShare => self.hour_share,
            FigureKind::DayShare => self.day_share,
            FigureKind::Economy => self.economy,
            FigureKind::Networks => self.networks.into(),
            FigureKind::Products => self.products.into(),
            FigureKind::Documents => self.documents.into(),
            FigureKind::Repeated => self.repeated,
            FigureKind::GroupShare => self.group_share,
        }
    }
}

words! {
    /// A daily figure, with its name in plain words.
    pub enum FigureKind: name {
        /// The smallest of the [`hours`](SuspectRules::hours) largest hourly shares.
        HourShare = "share of the models that it requested in each of several hours",
        /// The share over all requests of the day.
        DayShare = "share of the models that it requested in a day",
        /// The value is 1 or less for most clients.
        Economy = "number of random requests needed to reach as many models, as a multiple of its requests,",
        /// The number of networks in the hour that comes closest to reaching both thresholds.
        Networks = "number of networks in an hour",
        /// The number in the same hour as for [`Networks`](Self::Networks).
        Products = "number of products in user agents in an hour",
        /// The number includes documents that were delivered again.
        Documents = "number of documents delivered in a day",
        /// The share is an estimate.
        Repeated = "share of documents delivered again within an hour",
        /// Like [`HourShare`](Self::HourShare), but summed over the applications of a group.
        GroupShare = "share of the models that it and the others requested in each of several hours",
    }
}

words! {
    /// The suspected kind of misuse.
    pub enum Suspicion: word {
        /// The application copies the catalogue.
        Mirror = "mirror",
        /// Many users share the key.
        SharedKey = "shared_key",
        /// The application and others that have, or seem to have, the same owner copy the catalogue between them.
        SeveralAccounts = "several_accounts",
        /// The application requests a few documents continuously.
        InefficientPoller = "inefficient_poller",
    }
}

words! {
    /// The rule that fired.
    pub enum FiredRule: word {
        /// The application requests much of the catalogue in each of several hours.
        EachRefresh = "each_refresh",
        /// The application requests most of the catalogue in a day, and hardly any model twice.
        OverTheDay = "over_the_day",
        /// Several applications send coordinated requests.
        Together = "together",
        /// Requests come from many networks and products in an hour.
        ManyOrigins = "many_origins",
        /// The application requests the same documents continuously.
        Repeats = "repeats",
    }
}

impl FiredRule {
    /// The rules about a single application, each with the suspicion and the figures that have to reach their
    /// thresholds.
    pub(super) const ALONE: [(Self, Suspicion, &'static [FigureKind]); 4] = [
        (
            Self::EachRefresh,
            Suspicion::Mirror,
            &[FigureKind::HourShare],
        ),
        (
            Self::OverTheDay,
            Suspicion::Mirror,
            &[FigureKind::DayShare, FigureKind::Economy],
        ),
        (
            Self::ManyOrigins,
            Suspicion::SharedKey,
            &[FigureKind::Networks, FigureKind::Products],
        ),
        (
            Self::Repeats,
            Suspicion::InefficientPoller,
            &[FigureKind::Documents, FigureKind::Repeated],
        ),
    ];
}
