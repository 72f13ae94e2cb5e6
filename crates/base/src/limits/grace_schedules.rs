//! Random schedules of gateways and their data directories on one day: outages of the ledger, requests, shutdowns and
//! kills, restarts with and without the ledger, copied data directories and restored backups, and changes to the quota
//! and to the number of gateways. All processes together must never owe more than one hundredth of the largest quota,
//! and must never deliver more than one hundredth beyond it.
//!
//! The same schedules run against rules with known bugs, and must find each bug.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::clock::Day;

use super::{
    day_ledger::{DayTotals, NodeReport, NodeTotals},
    found_bugs::is_found,
    grace_share::{GraceClaim, GraceHolder, GraceShare},
    lease::DayBalance,
};

const CASES: u32 = 10_000;
const DIRECTORIES: usize = 3;
/// The quota at the beginning of a schedule.
const QUOTA: u32 = 300;
const TODAY: Day = Day::from_number(20_000);

#[derive(Clone, Copy, Debug)]
enum GraceStep {
    Start(usize),
    Request(usize, u32),
    /// The ledger is reached, and owed units are charged.
    Contact(usize),
    /// The share is confirmed, or a free share is taken.
    Claim(usize),
    /// An unused account is read from the ledger again.
    Load(usize),
    Stop(usize),
    Kill(usize),
    Outage(bool),
    /// The data directory is backed up.
    BackUp(usize),
    /// The newest backup, which may be of another directory, is restored to this directory.
    Restore(usize),
    Quota(u32),
    Gateways(u32),
}

fn step() -> impl Strategy<Value = GraceStep> {
    let at = || 0..DIRECTORIES;
    prop_oneof![
        4 => at().prop_map(GraceStep::Start),
        14 => at().prop_map(|at| GraceStep::Request(at, 1)),
        8 => (at(), 1u32..12).prop_map(|(at, requests)| GraceStep::Request(at, requests)),
        1 => at().prop_map(|at| GraceStep::Request(at, QUOTA)),
        4 => at().prop_map(GraceStep::Contact),
        4 => at().prop_map(GraceStep::Claim),
        1 => at().prop_map(GraceStep::Load),
        2 => at().prop_map(GraceStep::Stop),
        2 => at().prop_map(GraceStep::Kill),
        3 => any::<bool>().prop_map(GraceStep::Outage),
        2 => at().prop_map(GraceStep::BackUp),
        2 => at().prop_map(GraceStep::Restore),
        1 => prop_oneof![100u32..1_500, Just(QUOTA)].prop_map(GraceStep::Quota),
        1 => (1u32..5).prop_map(GraceStep::Gateways),
    ]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GraceRules {
    Shares,
    /// Bug: a copy of the file counts as the original.
    CopiesContinue,
    /// Bug: units are spent before they are reserved in the file.
    SpendsFirst,
    /// Bug: a clean shutdown returns a share on which units are owed.
    ReturnsOwing,
    /// Bug: the share of a killed process is free.
    Reclaim,
    /// Bug: each gateway divides the grace by the number of gateways in its own settings.
    OwnNumber,
    /// Bug: units of earlier processes are forgotten when they are charged, even if the charge exceeds the quota.
    ForgetsCharged,
}

#[derive(Clone, Copy, Debug)]
struct ModelShare {
    share: GraceShare,
    token: u64,
    life: u32,
}

/// The content of a data directory.
#[derive(Clone, Debug, Default)]
struct ModelFile {
    is_copy: bool,
    share: Option<ModelShare>,
    /// Totals, owed units and the quota, by process. Entries of earlier processes remain if they are charged beyond the
    /// quota.
    owed: BTreeMap<u64, (u32, u32, u32)>,
}

#[derive(Clone, Debug)]
struct ModelProcess {
    id: u64,
    balance: DayBalance,
    share: Option<ModelShare>,
    carried: u32,
    has_charged: bool,
}

struct GraceFleet {
    rules: GraceRules,
    quota: u32,
    largest_quota: u32,
    gateways: u32,
    is_away: bool,
    holders: Vec<GraceHolder>,
    total: DayTotals,
    /// Totals of each process in the ledger.
    nodes: BTreeMap<u64, NodeTotals>,
    spent: BTreeMap<u64, u32>,
    files: [ModelFile; DIRECTORIES],
    backup: ModelFile,
    processes: [Option<ModelProcess>; DIRECTORIES],
    next_id: u64,
    most_owed: u64,
}

impl GraceFleet {
    fn new(rules: GraceRules) -> Self {
        Self {
            rules,
            quota: QUOTA,
            largest_quota: QUOTA,
            gateways: 1,
            is_away: false,
            holders: Vec::new(),
            total: DayTotals::default(),
            nodes: BTreeMap::new(),
            spent: BTreeMap::new(),
            files: Default::default(),
            backup: ModelFile::default(),
            processes: Default::default(),
            next_id: 1,
            most_owed: 0,
        }
    }

    fn take(&mut self, step: GraceStep) {
        match step {
            GraceStep::Start(at) if self.processes[at].is_none() => self.start(at),
            GraceStep::Request(at, requests) => {
                let mut spent = None;
                // After one refusal, the remaining requests would be refused too.
                for _ in 0..requests {
                    self.with(at, Self::request);
                    let now = self.processes[at]
                        .as_ref()
                        .map(|process| process.balance.spent());
                    if std::mem::replace(&mut spent, now) == now {
                        break;
                    }
                }
            }
            GraceStep::Contact(at) if !self.is_away => self.with(at, Self::contact),
            GraceStep::Claim(at) if !self.is_away => self.with(at, Self::claim),
            GraceStep::Load(at) if !self.is_away => self.with(at, |fleet, _, process| {
                if process.balance.can_be_dropped() {
                    process.balance = DayBalance::opened(TODAY, fleet.total.granted);
                }
            }),
            GraceStep::Stop(at) => self.with_last(at),
            GraceStep::Kill(at) => {
                if let Some(ModelProcess {
                    share: Some(share), ..
                }) = self.processes[at].take()
                    && self.rules == GraceRules::Reclaim
                {
                    self.holders.retain(|holder| holder.token != share.token);
                }
            }
            GraceStep::Outage(is_away) => self.is_away = is_away,
            GraceStep::BackUp(at) => {
                self.backup = ModelFile {
                    is_copy: self.rules != GraceRules::CopiesContinue,
                    ..self.files[at].clone()
                };
            }
            GraceStep::Restore(at) if self.processes[at].is_none() => {
                self.files[at] = self.backup.clone();
            }
            GraceStep::Quota(quota) => {
                self.quota = quota;
                self.largest_quota = self.largest_quota.max(quota);
            }
            GraceStep::Gateways(gateways) => self.gateways = gateways,
            GraceStep::Start(_)
            | GraceStep::Contact(_)
            | GraceStep::Claim(_)
            | GraceStep::Load(_)
            | GraceStep::Restore(_) => {}
        }
    }

    fn with(&mut self, at: usize, work: impl Fn(&mut Self, usize, &mut ModelProcess)) {
        if let Some(mut process) = self.processes[at].take() {
            work(self, at, &mut process);
            self.spent.insert(process.id, process.balance.spent());
            self.processes[at] = Some(process);
        }
    }

    fn start(&mut self, at: usize) {
        let file = &mut self.files[at];
        let next = |share: ModelShare| ModelShare {
            life: share.life + 1,
            ..share
        };
        file.share = file.share.filter(|_| !file.is_copy).map(next);
        file.is_copy = false;
        let carried = file.owed.values().map(|(_, owed, _)| owed).sum();
        let granted = if self.is_away { 0 } else { self.total.granted };
        self.processes[at] = Some(ModelProcess {
            id: self.next_id,
            balance: DayBalance::opened(TODAY, granted),
            share: file.share,
            carried,
            has_charged: false,
        });
        self.next_id += 1;
    }

    fn report(&mut self, id: u64, report: &NodeReport) -> NodeTotals {
        let node = self.nodes.entry(id).or_default();
        (self.total, *node) = self.total.apply(*node, report);
        *node
    }

    fn lease(&mut self, at: usize, process: &mut ModelProcess) {
        self.charge_carried(at, process);
        let node = self.report(process.id, &process.balance.report(self.quota));
        process.balance = process.balance.apply(TODAY, node, self.total.granted);
    }

    fn request(&mut self, at: usize, process: &mut ModelProcess) {
        let quota = self.quota;
        if !self.is_away {
            self.lease(at, process);
        }
        let grace = process.share.map_or(0, |held| held.share.part(quota / 100));
        let part = if self.is_away {
            grace.saturating_sub(process.carried)
        } else {
            0
        };
        let balance = process.balance;
        let held = balance
            .hold(quota)
            .or_else(|| balance.hold_on_grace(quota, part))
            .or_else(|| {
                let (granted, owed) = balance.to_reserve(part);
                if !balance.may_owe(quota, part) {
                    return None;
                }
                if self.rules != GraceRules::SpendsFirst {
                    self.files[at]
                        .owed
                        .insert(process.id, (granted, owed, quota));
                }
                balance.reserve(TODAY, granted).hold_on_grace(quota, part)
            });
        process.balance = held.map_or(balance, |held| held.settle(TODAY, true));
    }

    fn charge_carried(&mut self, at: usize, process: &mut ModelProcess) {
        if std::mem::replace(&mut process.has_charged, true) {
            return;
        }
        let earlier = self.files[at].owed.clone();
        for (id, (granted, owed, quota)) in earlier.into_iter().filter(|(id, _)| *id != process.id)
        {
            let known = NodeTotals {
                granted,
                returned: 0,
            };
            self.report(
                id,
                &NodeReport {
                    known,
                    ..NodeReport::default()
                },
            );
            if self.total.granted <= quota.into() || self.rules == GraceRules::ForgetsCharged {
                self.files[at].owed.remove(&id);
                process.carried -= owed;
            }
        }
    }

    fn contact(&mut self, at: usize, process: &mut ModelProcess) {
        self.lease(at, process);
        if process.balance.owed() == 0 {
            process.balance = process.balance.without_reserve();
            self.files[at].owed.remove(&process.id);
        }
    }

    fn claim(&mut self, at: usize, process: &mut ModelProcess) {
        let held = process.share;
        let claim = GraceClaim {
            day: TODAY,
            gateways: self.gateways,
            held: held.map(|held| held.share),
            token: held.map_or(process.id, |held| held.token),
            life: held.map_or(0, |held| held.life),
            node: process.id,
        };
        let applied = claim.applied_to(&self.holders);
        if let Some(holder) = applied {
            self.holders
                .retain(|other| other.share.number != holder.share.number);
            self.holders.push(holder);
        }
        process.share = applied.map(|holder| ModelShare {
            share: holder.share,
            token: holder.token,
            life: holder.life,
        });
        if let Some(own) = &mut process.share
            && self.rules == GraceRules::OwnNumber
        {
            own.share.shares = self.gateways;
        }
        self.files[at].share = process.share;
    }

    fn with_last(&mut self, at: usize) {
        let Some(mut process) = self.processes[at].take() else {
            return;
        };
        let forgets = self.rules == GraceRules::ReturnsOwing;
        if !self.is_away && !forgets {
            self.contact(at, &mut process);
        }
        let balance = process.balance;
        let total = balance.charge().known.granted;
        let owed = balance.owed();
        self.files[at].owed.remove(&process.id);
        if owed > 0 {
            self.files[at]
                .owed
                .insert(process.id, (total, owed, self.quota));
        }
        let is_owing = !self.files[at].owed.is_empty();
        if !self.is_away && (!is_owing || forgets) {
            self.files[at].share = None;
            let is_own = |holder: &GraceHolder| {
                process
                    .share
                    .is_some_and(|own| (own.token, own.life) == (holder.token, holder.life))
            };
            self.holders.retain(|holder| !is_own(holder));
        }
    }

    fn check(&mut self) -> Result<(), String> {
        let owed = |(id, spent): (&u64, &u32)| {
            u64::from(spent.saturating_sub(self.nodes.get(id).copied().unwrap_or_default().held()))
        };
        let owed: u64 = self.spent.iter().map(owed).sum();
        self.most_owed = self.most_owed.max(owed);
        let most = u64::from(self.largest_quota / 100);
        if owed > most {
            return Err(format!("{owed} of at most {most} units owed"));
        }
        let spent = self.spent.values().sum::<u32>();
        let most = self.largest_quota + self.largest_quota / 100;
        if spent > most {
            Err(format!("{spent} of at most {most} units delivered"))
        } else {
            Ok(())
        }
    }
}

fn run(rules: GraceRules, steps: &[GraceStep]) -> Result<GraceFleet, String> {
    let mut fleet = GraceFleet::new(rules);
    for step in steps {
        fleet.take(*step);
        fleet
            .check()
            .map_err(|broken| format!("{step:?}: {broken}"))?;
    }
    Ok(fleet)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, ..ProptestConfig::default() })]

    #[test]
    fn all_processes_owe_and_exceed_the_largest_quota_by_at_most_a_hundredth(steps in prop::collection::vec(step(), 1..200)) {
        let held = run(GraceRules::Shares, &steps).map(|_| ());
        prop_assert!(held.is_ok(), "{:?}", held);
    }
}

/// Whether one of this many schedules shows that these rules are wrong, and the maximum number of units owed in a
/// schedule.
fn found(rules: GraceRules, schedules: u32) -> (bool, u64) {
    let steps = prop::collection::vec(step(), 1..200);
    let mut most = 0;
    let is_found = is_found(&steps, schedules, |steps| {
        let done = run(rules, &steps);
        most = most.max(done.as_ref().map_or(0, |fleet| fleet.most_owed));
        done.is_err()
    });
    (is_found, most)
}

#[test]
fn the_schedules_find_every_known_bug_of_grace() {
    for rules in [
        GraceRules::CopiesContinue,
        GraceRules::SpendsFirst,
        GraceRules::ReturnsOwing,
        GraceRules::Reclaim,
        GraceRules::OwnNumber,
        GraceRules::ForgetsCharged,
    ] {
        assert!(found(rules, 20_000).0, "{rules:?}");
    }
    let (is_found, most) = found(GraceRules::Shares, 1_000);
    assert!(!is_found && most >= 6, "{most}: the schedules use grace");
}
