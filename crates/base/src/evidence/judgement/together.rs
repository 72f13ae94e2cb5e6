//! Applications that copy the catalogue together. They have one owner, or the same networks and software, and their
//! requests are coordinated. Similarity alone is not enough, because colleagues and customers of one platform are also
//! similar.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{
    figures::{CallerDays, LEAST_CATALOGUE, nth_largest},
    rules::SuspectRules,
};
use crate::{evidence::day::DayEvidence, keys::OwnerId};

/// Request counts or model counts that differ by at most this share of the larger count are treated as equal.
const TOLERANCE: f64 = 0.2;
/// Two applications are assumed to receive different documents if the mean sizes of their documents differ by at least this
/// share.
const OTHER_SIZE: f64 = 0.001;
/// Minimum share of the catalogue that a member of a group requests. Otherwise, many requests for the same small set could add up to any share.
const LEAST_PART: f64 = 0.1;

/// Applications that copy the catalogue together.
pub struct CallerGroup {
    /// The indexes of the members in the list of callers.
    pub members: Vec<usize>,
    /// The share of the catalogue that the members together requested in the decisive hour of the decisive day.
    pub share: f64,
    /// Number of days on which the share was large enough.
    pub days: usize,
    pub of_days: usize,
}

/// The common property of applications whose requests are compared.
#[derive(PartialEq, Eq, Hash)]
enum SameOrigin {
    Owner(OwnerId),
    /// All networks and all user-agent products of the day, as bit sets.
    Origins([u64; 4], [u64; 1]),
}

/// The requests of an application on a day.
#[derive(Clone, Copy)]
struct DayTrace<'d> {
    /// The index of the application in the list of callers.
    caller: usize,
    day: &'d DayEvidence,
    /// A bit for each hour with requests for models.
    hours: u32,
    /// The mean share of the catalogue in these hours.
    share: f64,
}

impl<'d> DayTrace<'d> {
    fn of(caller: usize, day: &'d DayEvidence) -> Self {
        let used = day
            .hours
            .iter()
            .zip(0..)
            .filter(|(hour, _)| hour.models > 0);
        let hours = used.fold(0_u32, |bits, (_, hour)| bits | 1 << hour);
        let shares: f64 = day.hours.iter().map(|hour| day.share_of_hour(hour)).sum();
        Self {
            caller,
            day,
            hours,
            share: shares / f64::from(hours.count_ones().max(1)),
        }
    }

    /// Whether requests are coordinated: the applications alternate by hour, or request different parts of the catalogue in the
    /// same hours, with about as many requests.
    fn is_coordinated_with(&self, other: &Self) -> bool {
        (self.hours & other.hours).count_ones() <= 1
            || self.hours == other.hours
                && is_near(self.requests(), other.requests(), TOLERANCE)
                && self.has_other_documents_than(other)
    }

    /// Whether the applications receive different documents. Copies of one program that request the same models do not divide the
    /// catalogue among themselves. Applications that divide it either request other models from hour to hour, and so cover more
    /// models in a day, or receive documents with a different mean size.
    fn has_other_documents_than(&self, other: &Self) -> bool {
        self.changes_models() && other.changes_models()
            || !is_near(self.mean_size(), other.mean_size(), OTHER_SIZE)
    }

    fn requests(&self) -> f64 {
        f64::from(self.day.counts.delivered) + f64::from(self.day.counts.unchanged)
    }

    fn changes_models(&self) -> bool {
        self.day.share() > 1.5 * self.share
    }

    #[expect(clippy::cast_precision_loss, reason = "a mean")]
    fn mean_size(&self) -> f64 {
        self.day.counts.bytes as f64 / f64::from(self.day.counts.delivered.max(1))
    }

    /// Whether the requests of both applications begin in the same minutes, which differ from hour to hour. The
    /// requests of a busy client begin in the first minute of every hour.
    fn begins_with(&self, other: &Self) -> bool {
        let hours = self.day.hours.iter().zip(&other.day.hours);
        let minutes =
            hours.filter_map(|(one, other)| Some((one.first_minute()?, other.first_minute()?)));
        let minutes: Vec<(u8, u8)> = minutes.collect();
        let different: BTreeSet<u8> = minutes.iter().map(|(one, _)| *one).collect();
        different.len() > 3 && minutes.iter().all(|(one, other)| one.abs_diff(*other) <= 1)
    }
}

fn is_near(one: f64, other: f64, tolerance: f64) -> bool {
    (one - other).abs() <= tolerance * one.max(other)
}

/// The groups of coordinated applications that together meet the rules.
pub fn groups(callers: &[CallerDays], rules: &SuspectRules) -> Vec<CallerGroup> {
    let mut days: BTreeMap<_, Vec<DayTrace<'_>>> = BTreeMap::new();
    for (place, caller) in callers.iter().enumerate() {
        let is_comparable =
            |evidence: &DayEvidence| evidence.models > 0 && evidence.catalogue >= LEAST_CATALOGUE;
        for (day, evidence) in caller
            .days
            .iter()
            .filter(|(_, evidence)| is_comparable(evidence))
        {
            days.entry(*day)
                .or_default()
                .push(DayTrace::of(place, evidence));
        }
    }
    let mut days_of_pairs: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for traces in days.values() {
        for pair in coordinated_pairs(callers, traces) {
            *days_of_pairs.entry(pair).or_default() += 1;
        }
    }
    let pairs = days_of_pairs
        .into_iter()
        .filter(|(_, days)| *days >= rules.days);
    joined(pairs.map(|(pair, _)| pair))
        .into_iter()
        .filter_map(|members| group(members, callers, rules))
        .collect()
}

/// The pairs with coordinated requests on a day.
fn coordinated_pairs(callers: &[CallerDays], traces: &[DayTrace<'_>]) -> BTreeSet<(usize, usize)> {
    let mut cells: HashMap<SameOrigin, Vec<&DayTrace<'_>>> = HashMap::new();
    for trace in traces {
        let origins = SameOrigin::Origins(*trace.day.networks.words(), *trace.day.agents.words());
        let owner = callers
            .get(trace.caller)
            .and_then(|caller| caller.owner)
            .map(SameOrigin::Owner);
        for origin in owner.into_iter().chain([origins]) {
            cells.entry(origin).or_default().push(trace);
        }
    }
    cells
        .into_iter()
        .flat_map(|(origin, traces)| pairs_of_origin(&origin, traces))
        .collect()
}

/// The pairs of applications from this origin with coordinated requests.
fn pairs_of_origin(
    origin: &SameOrigin,
    mut traces: Vec<&DayTrace<'_>>,
) -> BTreeSet<(usize, usize)> {
    let all = traces.len();
    // Most applications request little and are excluded. All pairs of the other applications are compared.
    traces.retain(|trace| trace.share >= LEAST_PART);
    traces.sort_by(|one, other| one.share.total_cmp(&other.share));
    let mut coordinated = Vec::new();
    for (place, one) in traces.iter().enumerate() {
        let others = traces.iter().skip(place + 1);
        let near = others.take_while(|other| is_near(one.share, other.share, TOLERANCE));
        let found = near.filter(|other| one.is_coordinated_with(other));
        coordinated.extend(found.map(|other| (one, other)));
    }
    // If many other applications have the same origin, it is a platform or an office.
    let members: BTreeSet<usize> = coordinated
        .iter()
        .flat_map(|(one, other)| [one.caller, other.caller])
        .collect();
    let is_own = matches!(origin, SameOrigin::Owner(_)) || 4 * members.len() >= 3 * all;
    coordinated.retain(|(one, other)| is_own || one.begins_with(other));
    coordinated
        .iter()
        .map(|(one, other)| (one.caller.min(other.caller), one.caller.max(other.caller)))
        .collect()
}

/// The connected sets of callers that the pairs form.
fn joined(pairs: impl Iterator<Item = (usize, usize)>) -> Vec<BTreeSet<usize>> {
    let mut sets: Vec<BTreeSet<usize>> = Vec::new();
    for (one, other) in pairs {
        let (touched, mut apart): (Vec<_>, Vec<_>) = sets
            .into_iter()
            .partition(|set| set.contains(&one) || set.contains(&other));
        apart.push(touched.into_iter().flatten().chain([one, other]).collect());
        sets = apart;
    }
    sets
}

/// The group of these callers, if they together request enough.
fn group(
    members: BTreeSet<usize>,
    callers: &[CallerDays],
    rules: &SuspectRules,
) -> Option<CallerGroup> {
    let callers: Vec<&CallerDays> = members
        .iter()
        .filter_map(|place| callers.get(*place))
        .collect();
    let mut days: BTreeMap<_, [f64; 24]> = BTreeMap::new();
    for (day, evidence) in callers.iter().flat_map(|caller| &caller.days) {
        for (sum, hour) in days
            .entry(*day)
            .or_default()
            .iter_mut()
            .zip(&evidence.hours)
        {
            *sum += evidence.share_of_hour(hour);
        }
    }
    let shares: Vec<f64> = days
        .into_values()
        .map(|sums| nth_largest(sums.into_iter(), rules.hours).min(1.0))
        .collect();
    let share = nth_largest(shares.iter().copied(), rules.days);
    (share >= rules.group_share).then(|| CallerGroup {
        members: members.into_iter().collect(),
        share,
        days: shares
            .iter()
            .filter(|share| **share >= rules.group_share)
            .count(),
        of_days: shares.len(),
    })
}
