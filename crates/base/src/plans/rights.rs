//! The rights of a tier: the periods and endpoints that it may request, the longest period of past data, and the fields
//! that it sees.
//!
//! The rights of the specification are the two rows [`Rights::FREE`] and [`Rights::PAID`]. Settings only narrow a row.

use parking_lot::Mutex;

use crate::routes::{DocumentKey, Endpoint, Period, Route};

use super::field_sets::FieldSetIndex;

/// Endpoints with past data, for which a tier may have a separate longest period.
pub const DEEP: [Route; 2] = [Route::History, Route::Incidents];

/// A set of periods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PeriodSet(u8);

impl PeriodSet {
    /// All periods.
    pub const ALL: Self = Self::up_to(Period::Month);

    /// This period and all shorter periods.
    pub const fn up_to(longest: Period) -> Self {
        Self((2 << longest as u8) - 1)
    }

    /// Whether a period is in the set.
    pub const fn has(self, period: Period) -> bool {
        self.0 >> period as u8 & 1 == 1
    }

    /// The periods, in the order of the specification.
    pub fn iter(self) -> impl Iterator<Item = Period> {
        Period::ALL
            .into_iter()
            .filter(move |period| self.has(*period))
    }
}

impl FromIterator<Period> for PeriodSet {
    fn from_iter<I: IntoIterator<Item = Period>>(periods: I) -> Self {
        Self(
            periods
                .into_iter()
                .fold(0, |bits, period| bits | 1 << period as u8),
        )
    }
}

/// The rights of a tier. This is a reference to a row, because every caller and every document in a thread's memory has
/// a copy. Equal rows are kept once, for the lifetime of the process.
#[derive(Clone, Copy, Debug)]
pub struct Rights(&'static RightsRow);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RightsRow {
    /// A bit for each endpoint, at its `Route::index`. There are at most 45 endpoints.
    endpoints: u64,
    periods: PeriodSet,
    /// The periods that the depths of the [`DEEP`] endpoints allow.
    depths: [PeriodSet; DEEP.len()],
    fields: FieldSetIndex,
    is_paid: bool,
}

/// The right that a tier lacks for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingRight {
    /// The endpoint.
    Endpoint,
    /// The period.
    Period(Period),
}

const PAID: RightsRow = RightsRow {
    endpoints: u64::MAX,
    periods: PeriodSet::ALL,
    depths: [PeriodSet::ALL; DEEP.len()],
    fields: FieldSetIndex::ALL,
    is_paid: true,
};
static PAID_ROW: RightsRow = PAID;
static FREE_ROW: RightsRow = RightsRow {
    periods: PeriodSet(PeriodSet::ALL.0 & !PeriodSet::up_to(Period::Latest).0),
    fields: FieldSetIndex::NONE,
    is_paid: false,
    ..PAID
};
/// Rows that settings create by narrowing one of the two rows above.
static NARROWED: Mutex<Vec<&'static RightsRow>> = Mutex::new(Vec::new());

impl PartialEq for Rights {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for Rights {}

impl Rights {
    /// The rights of a free tier: everything except the period `latest` and the reserved fields.
    pub const FREE: Self = Self(&FREE_ROW);

    /// The rights of a paid tier: everything.
    pub const PAID: Self = Self(&PAID_ROW);

    fn of(row: RightsRow) -> Self {
        // Rights are compared by address, so equal rows must be stored only once. Therefore, the lock is held from the search to
        // the insertion.
        let mut narrowed = NARROWED.lock();
        let mut known = [&FREE_ROW, &PAID_ROW]
            .into_iter()
            .chain(narrowed.iter().copied());
        if let Some(known) = known.find(|known| **known == row) {
            return Self(known);
        }
        let row: &'static RightsRow = Box::leak(Box::new(row));
        narrowed.push(row);
        Self(row)
    }

    /// These rights with only these periods. `None` if the rights do not include all of them, or if no period is left.
    pub fn with_periods(self, periods: PeriodSet) -> Option<Self> {
        let is_narrower = periods.0 & !self.0.periods.0 == 0 && periods != PeriodSet(0);
        is_narrower.then(|| Self::of(RightsRow { periods, ..*self.0 }))
    }

    /// These rights with `longest` as the longest period of a [`DEEP`] endpoint. `None` for other endpoints, and if no period is
    /// left.
    pub fn with_depth(self, route: Route, longest: Period) -> Option<Self> {
        let mut row = *self.0;
        *DEEP
            .iter()
            .zip(&mut row.depths)
            .find(|(deep, _)| **deep == route)?
            .1 = PeriodSet::up_to(longest);
        let rights = Self::of(row);
        (rights.periods_of(route) != PeriodSet(0)).then_some(rights)
    }

    /// These rights, restricted to these endpoints.
    #[must_use]
    pub fn with_endpoints<'e>(self, endpoints: impl IntoIterator<Item = &'e Endpoint>) -> Self {
        let bits = endpoints
            .into_iter()
            .fold(0, |bits, endpoint| bits | 1 << endpoint.route.index());
        Self::of(RightsRow {
            endpoints: self.0.endpoints & bits,
            ..*self.0
        })
    }

    /// These rights with this set of fields.
    #[must_use]
    pub fn with_fields(self, fields: FieldSetIndex) -> Self {
        Self::of(RightsRow { fields, ..*self.0 })
    }

    /// Whether the tier is paid.
    pub const fn is_paid(self) -> bool {
        self.0.is_paid
    }

    /// A small number that is usually distinct for distinct rights.
    pub const fn mark(self) -> u64 {
        (self.0.fields.0 << 4 | self.0.periods.0) as u64
    }

    /// The reserved fields that the tier sees.
    pub const fn fields(self) -> FieldSetIndex {
        self.0.fields
    }

    /// Whether the tier may request an endpoint.
    pub const fn has_endpoint(self, route: Route) -> bool {
        self.0.endpoints >> route.index() & 1 == 1
    }

    /// The periods that the tier may request for an endpoint.
    pub fn periods_of(self, route: Route) -> PeriodSet {
        let depths = DEEP
            .iter()
            .zip(self.0.depths)
            .filter(|(deep, _)| **deep == route);
        depths.fold(self.0.periods, |periods, (_, depth)| {
            PeriodSet(periods.0 & depth.0)
        })
    }

    /// The period of a request without a period: the first period that the tier may request.
    pub fn default_period(self, route: Route) -> Period {
        self.periods_of(route).iter().next().unwrap_or(Period::Day)
    }

    /// The right that the tier lacks for a document.
    pub fn missing(self, key: &DocumentKey) -> Option<MissingRight> {
        if !self.has_endpoint(key.route) {
            return Some(MissingRight::Endpoint);
        }
        let period = key
            .period
            .filter(|period| !self.periods_of(key.route).has(*period));
        period.map(MissingRight::Period)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::{ENDPOINTS, ModelId, Query};

    #[test]
    fn the_default_rows_are_the_rules_of_the_specification() {
        for row in &ENDPOINTS {
            for (rights, default) in [(Rights::FREE, Period::Day), (Rights::PAID, Period::Latest)] {
                assert_eq!(rights.default_period(row.route), default);
                for period in Period::ALL {
                    let query = Query {
                        period: Some(period),
                        ..Query::default()
                    };
                    let key = DocumentKey::new(row.route, ModelId::new("a"), query, default);
                    let is_refused = !rights.is_paid() && key.period == Some(Period::Latest);
                    assert_eq!(
                        rights.missing(&key),
                        is_refused.then_some(MissingRight::Period(period))
                    );
                }
            }
        }
    }

    #[test]
    fn a_row_is_narrowed_and_never_widened() {
        let [latest, week] = [Period::Latest, Period::Week];
        assert_eq!(
            Rights::FREE.with_periods(PeriodSet::from_iter([latest])),
            None
        );
        assert_eq!(Rights::PAID.with_periods(PeriodSet::from_iter([])), None);
        assert_eq!(Rights::FREE.with_depth(Route::History, latest), None);
        let rights = Rights::PAID
            .with_depth(Route::History, week)
            .unwrap()
            .with_periods(PeriodSet::from_iter([Period::Month]));
        assert_eq!(
            rights.unwrap().default_period(Route::Incidents),
            Period::Month
        );
        let rights = Rights::PAID
            .with_depth(Route::Incidents, week)
            .unwrap()
            .with_endpoints(&ENDPOINTS[..6]);
        let missing = |route| rights.missing(&DocumentKey::over(route, Period::Month));
        assert_eq!(
            missing(Route::Incidents),
            Some(MissingRight::Period(Period::Month))
        );
        assert_eq!(
            (missing(Route::History), missing(Route::Models)),
            (None, None)
        );
        assert_eq!(missing(Route::Providers), Some(MissingRight::Endpoint));
    }
}
