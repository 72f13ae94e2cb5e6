//! Applications that copy the catalogue together: of one owner, or with the same networks and software, whose requests are
//! coordinated. Likeness alone is not enough: colleagues and customers of one platform are alike too.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::super::day::DayEvidence;
use super::callers::{CallerDays, TierMedians};
use super::day_figures::nth_largest;
use super::finding::{Figure, Finding, Suspicion};
use super::rules::{FigureKind, FiredRule, SuspectRules};
use crate::keys::OwnerId;

/// Numbers that differ by at most this share of the larger one are taken for equal.
const TOLERANCE: f64 = 0.15;
/// Difference in the mean size of documents from which two applications receive different ones.
const OTHER_DOCUMENTS: f64 = 0.001;

/// What applications have in common before their requests are compared.
#[derive(PartialEq, Eq, Hash)]
enum SameOrigin {
    Owner(OwnerId),
    /// All networks and all products of the day.
    Origins([u64; 4], [u64; 1]),
}

/// The requests of an application on a day.
struct DayTrace {
    /// Its place among the callers.
    caller: usize,
    /// Bits of the hours with requests for models.
    hours: u32,
    /// The mean share of the catalogue in these hours.
    hour_share: f64,
    day_share: f64,
    requests: f64,
    /// The mean size of its documents.
    size: f64,
}

impl DayTrace {
    fn of(caller: usize, day: &DayEvidence) -> Self {
        let shares = day.hours.map(|hour| day.share_of_hour(&hour));
        let hours = shares.iter().enumerate().filter(|(_, share)| **share > 0.0);
        let hours = hours.fold(0_u32, |bits, (hour, _)| bits | 1 << hour);
        let counts = &day.counts;
        Self {
            caller,
            hours,
            hour_share: shares.iter().sum::<f64>() / f64::from(hours.count_ones().max(1)),
            day_share: day.share(),
            requests: f64::from(counts.delivered) + f64::from(counts.unchanged),
            #[expect(clippy::cast_precision_loss, reason = "a mean")]
            size: counts.bytes as f64 / f64::from(counts.delivered.max(1)),
        }
    }

    /// Whether requests are coordinated: equal parts at the same time, or equal ones in turn.
    fn is_coordinated_with(&self, other: &Self) -> bool {
        let (both, any) = (self.hours & other.hours, self.hours | other.hours);
        let are_in_turn = both.count_ones() <= 1;
        let are_parts = 10 * both.count_ones() >= 9 * any.count_ones()
            && is_near(self.requests, other.requests, TOLERANCE)
            && self.has_other_documents_than(other);
        is_near(self.hour_share, other.hour_share, TOLERANCE) && (are_in_turn || are_parts)
    }

    /// Copies of a program for the same models are not parts of a whole. Parts change from hour to hour, so that they cover more
    /// models in a day, or have documents of another size.
    fn has_other_documents_than(&self, other: &Self) -> bool {
        let changes = |trace: &Self| trace.day_share > 1.5 * trace.hour_share;
        changes(self) && changes(other) || !is_near(self.size, other.size, OTHER_DOCUMENTS)
    }
}

fn is_near(one: f64, other: f64, tolerance: f64) -> bool {
    (one - other).abs() <= tolerance * one.max(other)
}

/// The findings about groups.
pub(super) fn groups(callers: &[CallerDays], medians: &TierMedians, rules: &SuspectRules) -> Vec<Finding> {
    let mut days: BTreeMap<_, Vec<(usize, &DayEvidence)>> = BTreeMap::new();
    for (caller, days_of_caller) in callers.iter().enumerate() {
        for (day, evidence) in &days_of_caller.days {
            days.entry(*day).or_default().push((caller, evidence));
        }
    }
    let mut days_of_pairs: HashMap<(usize, usize), usize> = HashMap::new();
    for traces in days.values() {
        for pair in coordinated_pairs(callers, traces) {
            *days_of_pairs.entry(pair).or_default() += 1;
        }
    }
    let pairs = days_of_pairs.into_iter().filter(|(_, days)| *days >= rules.days).map(|(pair, _)| pair);
    let groups = joined(pairs, callers.len());
    groups.iter().flat_map(|group| findings(group, callers, medians, rules)).collect()
}

/// The pairs of a day whose requests are coordinated.
fn coordinated_pairs(callers: &[CallerDays], day: &[(usize, &DayEvidence)]) -> BTreeSet<(usize, usize)> {
    let mut cells: HashMap<SameOrigin, Vec<DayTrace>> = HashMap::new();
    for (caller, evidence) in day.iter().filter(|(_, evidence)| evidence.models > 0) {
        let origins = SameOrigin::Origins(*evidence.networks.words(), *evidence.agents.words());
        cells.entry(origins).or_default().push(DayTrace::of(*caller, evidence));
        if let Some(owner) = callers.get(*caller).and_then(|caller| caller.owner) {
            cells.entry(SameOrigin::Owner(owner)).or_default().push(DayTrace::of(*caller, evidence));
        }
    }
    let mut pairs = BTreeSet::new();
    for (origin, mut traces) in cells {
        traces.sort_by(|one, other| one.hour_share.total_cmp(&other.hour_share));
        let mut of_cell = BTreeSet::new();
        for (place, one) in traces.iter().enumerate() {
            let near = traces
                .iter()
                .skip(place + 1)
                .take_while(|other| is_near(one.hour_share, other.hour_share, TOLERANCE));
            let coordinated = near.filter(|other| one.is_coordinated_with(other));
            of_cell.extend(
                coordinated.map(|other| (one.caller.min(other.caller), one.caller.max(other.caller))),
            );
        }
        // Many others with the same origin show that it is a platform or an office.
        let members: BTreeSet<usize> = of_cell.iter().flat_map(|(one, other)| [*one, *other]).collect();
        if matches!(origin, SameOrigin::Owner(_)) || 2 * members.len() >= traces.len() {
            pairs.extend(of_cell);
        }
    }
    pairs
}

/// The groups of callers that pairs connect.
fn joined(pairs: impl Iterator<Item = (usize, usize)>, callers: usize) -> Vec<Vec<usize>> {
    let mut group_of: Vec<usize> = (0..callers).collect();
    let first = |group_of: &[usize], mut caller: usize| {
        while let Some(next) = group_of.get(caller).filter(|next| **next != caller) {
            caller = *next;
        }
        caller
    };
    for (one, other) in pairs {
        let (one, other) = (first(&group_of, one), first(&group_of, other));
        if let Some(group) = group_of.get_mut(one.max(other)) {
            *group = one.min(other);
        }
    }
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for caller in 0..callers {
        groups.entry(first(&group_of, caller)).or_default().push(caller);
    }
    groups.into_values().filter(|group| group.len() > 1).collect()
}

/// The findings about a group, if its applications together request enough.
fn findings(
    group: &[usize],
    callers: &[CallerDays],
    medians: &TierMedians,
    rules: &SuspectRules,
) -> Vec<Finding> {
    let members: Vec<&CallerDays> = group.iter().filter_map(|place| callers.get(*place)).collect();
    let mut days: BTreeMap<_, [f64; 24]> = BTreeMap::new();
    for (day, evidence) in members.iter().flat_map(|member| &member.days) {
        let sums = days.entry(*day).or_default();
        for (sum, hour) in sums.iter_mut().zip(&evidence.hours) {
            *sum += evidence.share_of_hour(hour);
        }
    }
    let together = |sums: &[f64; 24]| nth_largest(sums.iter().copied(), rules.hours).min(1.0);
    let days: Vec<f64> = days.values().map(together).collect();
    let value = nth_largest(days.iter().copied(), rules.days);
    if value < rules.group_share {
        return Vec::new();
    }
    let owner = members.first().and_then(|member| member.owner);
    let is_one_owner = owner.is_some() && members.iter().all(|member| member.owner == owner);
    let finding = |member: &&CallerDays| Finding {
        application: member.application,
        suspicion: if is_one_owner { Suspicion::Mirror } else { Suspicion::SeveralAccounts },
        rule: FiredRule::Together,
        others: members
            .iter()
            .map(|other| other.application)
            .filter(|other| *other != member.application)
            .collect(),
        figures: vec![Figure {
            kind: FigureKind::GroupShare,
            value,
            threshold: rules.group_share,
            median: medians.get(&member.tier, FigureKind::GroupShare),
        }],
        days: days.iter().filter(|share| **share >= rules.group_share).count(),
        of_days: days.len(),
        tier: Arc::clone(&member.tier),
    };
    members.iter().map(finding).collect()
}
