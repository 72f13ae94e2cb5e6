//! The rules and their thresholds.

use crate::words;

/// Thresholds. A rule fires if all of its figures reach them on [`days`](Self::days) days. Shares are from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SuspectRules {
    /// Days on which a rule has to be fulfilled.
    pub days: usize,
    /// Share of the models that a mirror requests in several hours of a day.
    pub hour_share: f64,
    /// Hours of a day with this share.
    pub hours: usize,
    /// Share of the models that a slow mirror requests in a day.
    pub day_share: f64,
    /// Number of random requests needed to reach as many models, as a multiple of the requests of a slow mirror.
    pub economy: f64,
    /// Share of the models that several applications with coordinated requests request together in several hours.
    pub group_share: f64,
    /// Networks in an hour from which a shared key is used.
    pub networks: u8,
    /// Products in user agents in the same hour.
    pub products: u8,
    /// Documents that are delivered to an inefficient poller in a day.
    pub documents: u32,
    /// Share of them that were delivered before in the same hour.
    pub repeated: f64,
}

impl Default for SuspectRules {
    /// Chosen on simulated clients.
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
    /// A figure of a day, by its plain name.
    pub enum FigureKind: name {
        /// In the last of the [`hours`](SuspectRules::hours) with the largest shares.
        HourShare = "share of the models that it requested in each of several hours",
        /// By all requests of the day.
        DayShare = "share of the models that it requested in a day",
        /// 1 or less for most clients.
        Economy = "number of random requests needed to reach as many models, as a multiple of its requests,",
        /// In the hour that is nearest to both thresholds.
        Networks = "number of networks in an hour",
        /// In the same hour.
        Products = "number of products in user agents in an hour",
        /// Whether they were new or not.
        Documents = "number of documents delivered in a day",
        /// An estimate.
        Repeated = "share of documents delivered again within an hour",
        /// As [`HourShare`](Self::HourShare), summed over the applications of a group.
        GroupShare = "share of the models that it and the others requested in each of several hours",
    }
}

words! {
    /// The kind of misuse that an application looks like.
    pub enum Suspicion: word {
        /// It copies the catalogue.
        Mirror = "mirror",
        /// Its key is used by many.
        SharedKey = "shared_key",
        /// It copies the catalogue together with other applications, which have the same owner or look as if they had.
        SeveralAccounts = "several_accounts",
        /// It requests a few documents all the time.
        InefficientPoller = "inefficient_poller",
    }
}

words! {
    /// The rule that fired.
    pub enum FiredRule: word {
        /// Much of the catalogue in an hour.
        EachRefresh = "each_refresh",
        /// It requests most of the catalogue in a day, and hardly any model twice.
        OverTheDay = "over_the_day",
        /// Several applications with coordinated requests.
        Together = "together",
        /// Many networks and products in an hour.
        ManyOrigins = "many_origins",
        /// The same documents all the time.
        Repeats = "repeats",
    }
}

impl FiredRule {
    /// The rules about one application, what they suspect, and the figures that have to reach their thresholds.
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
