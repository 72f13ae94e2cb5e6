//! The rules of the judgement and their thresholds.

use crate::words;

/// Thresholds. A rule fires if all of its figures reach them on [`days`](Self::days) of the days that are judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SuspectRules {
    /// Days on which a rule has to be fulfilled.
    pub days: usize,
    /// Share of the catalogue, from 0 to 1: an application that requests it in several hours of a day is a mirror.
    pub hour_share: f64,
    /// Hours of a day with this share.
    pub hours: usize,
    /// Share of the catalogue, from 0 to 1: an application that requests it within a day, and systematically, is a mirror.
    pub day_share: f64,
    /// How many times fewer hours for each model than unsystematic requests would need to reach the same models.
    pub system: f64,
    /// Share of the catalogue, from 0 to 1, that applications with coordinated requests request together in several hours.
    pub group_share: f64,
    /// Networks in an hour: a key that is used from so many, and by so many products, is shared.
    pub networks: u8,
    /// Products in user agents in the same hour.
    pub products: u8,
    /// Documents delivered in a day: an application that receives so many, nearly all of them repeatedly, is inefficient.
    pub documents: u32,
    /// Share of these that were delivered before in the same hour, from 0 to 1.
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
            system: 2.0,
            group_share: 0.7,
            networks: 8,
            products: 8,
            documents: 1_000,
            repeated: 0.98,
        }
    }
}

words! {
    /// A number that a rule compares, by its plain name.
    pub enum FigureKind: name {
        /// Of the catalogue: in the last of the [`hours`](SuspectRules::hours) with the largest shares.
        HourShare = "share of the models in an hour",
        /// Of the catalogue.
        DayShare = "share of the models in a day",
        /// In which a requested model was requested, in the mean.
        ModelHours = "hours of a day in which it requested each model",
        /// In the hour with most networks and products.
        Networks = "networks in an hour",
        /// In the same hour.
        Products = "products in user agents in an hour",
        /// Delivered.
        Documents = "documents in a day",
        /// Of these documents.
        Repeated = "share of documents that were delivered before in the hour",
        /// As `HourShare`, added up over the applications of a group.
        GroupShare = "share of the models in an hour of all applications together",
    }
}

words! {
    /// The rule that fired.
    pub enum FiredRule: word {
        /// A large share of the catalogue in several hours.
        EachRefresh = "each_refresh",
        /// The catalogue in the course of a day.
        OverTheDay = "over_the_day",
        /// Several applications with coordinated requests, which add up to the catalogue.
        Together = "together",
        /// Many networks and products in an hour.
        ManyOrigins = "many_origins",
        /// The same few documents all the time.
        Repeats = "repeats",
    }
}

impl FiredRule {
    /// The rules about one application.
    pub(super) const ALONE: [Self; 4] =
        [Self::EachRefresh, Self::OverTheDay, Self::ManyOrigins, Self::Repeats];

    /// The figures that have to reach their thresholds.
    pub(super) const fn figures(self) -> &'static [FigureKind] {
        match self {
            Self::EachRefresh => &[FigureKind::HourShare],
            Self::OverTheDay => &[FigureKind::DayShare, FigureKind::ModelHours],
            Self::Together => &[FigureKind::GroupShare],
            Self::ManyOrigins => &[FigureKind::Networks, FigureKind::Products],
            Self::Repeats => &[FigureKind::Documents, FigureKind::Repeated],
        }
    }
}
