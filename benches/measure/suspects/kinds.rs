//! The kinds of simulated clients: their numbers, and how a client of each is made.

use super::{
    mirrors::{CatalogueMirror, KeyUse, SweepSchedule},
    people::{Course, Hobbyist, Office},
    random::Random,
    requests::{Client, Hosting},
    scheduled::{CiJobs, Dashboard, Programs, Research},
    visited::{Copies, Fleet, PublicProduct, ResoldKey, TeamWithOneKey},
};

/// The demand of a kind of clients on the judgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stance {
    /// It keeps to the terms.
    Honest,
    /// It has to be found.
    Dishonest,
    /// It is measured without a requirement: evidence cannot show it, or opinions about it may differ.
    Measured,
}

/// A kind of clients.
pub struct ClientKind {
    pub name: &'static str,
    pub stance: Stance,
    /// Of honest kinds, the number of applications of 2,000; of others, the number of clients, which may have several.
    pub number: usize,
    pub plan: fn(ClientPlan, &mut Random) -> PlannedClient,
}

/// What a client can be made of.
#[derive(Clone, Copy)]
pub struct ClientPlan {
    pub models: usize,
    /// Most models of an honest client at a refresh.
    pub most: usize,
    /// Clients or applications of the kind that there are already.
    pub made: usize,
    /// Those that are missing, at least one.
    pub missing: usize,
}

/// A client without ids.
pub struct PlannedClient {
    pub behaviour: Box<dyn Client>,
    /// Documents that each of its applications needs in a day.
    pub needs: Vec<u32>,
    pub ownership: Ownership,
}

/// How the applications of a client are owned.
#[derive(Clone, Copy)]
pub enum Ownership {
    Unknown,
    One,
    Each,
}

use Stance::{Dishonest, Honest, Measured};

/// A key that is used by many needs a large quota.
const RESOLD_NEED: u32 = 100_000;
const FREE_QUOTA: usize = 10;

#[rustfmt::skip]
pub static KINDS: [ClientKind; 32] = [
    ClientKind { name: "dashboard", stance: Honest, number: 400, plan: dashboard },
    ClientKind { name: "public product", stance: Honest, number: 250, plan: public_product },
    ClientKind { name: "research script", stance: Honest, number: 230, plan: research_script },
    ClientKind { name: "bad poller", stance: Honest, number: 150, plan: bad_poller },
    ClientKind { name: "fleet behind one network", stance: Honest, number: 100, plan: fleet },
    ClientKind { name: "CI jobs", stance: Honest, number: 180, plan: ci_jobs },
    ClientKind { name: "office, changing networks", stance: Honest, number: 150, plan: |plan, random| office(plan, true, random) },
    ClientKind { name: "office, one network", stance: Honest, number: 150, plan: |plan, random| office(plan, false, random) },
    ClientKind { name: "hobbyist at weekends", stance: Honest, number: 150, plan: hobbyist },
    ClientKind { name: "owner with stages", stance: Honest, number: 80, plan: stages },
    ClientKind { name: "agency with customers", stance: Honest, number: 80, plan: agency },
    ClientKind { name: "team with one key", stance: Honest, number: 40, plan: team },
    ClientKind { name: "course", stance: Honest, number: 40, plan: course },
    ClientKind { name: "sweep at each refresh", stance: Dishonest, number: 5, plan: |plan, random| one_key(plan, 1.0, SweepSchedule::EachRefresh, random) },
    ClientKind { name: "slow sweep, all day", stance: Dishonest, number: 3, plan: |plan, random| one_key(plan, 1.0, SweepSchedule::Spread(24), random) },
    ClientKind { name: "slow sweep at night", stance: Dishonest, number: 3, plan: |plan, random| at_night(plan, 1.0, random) },
    ClientKind { name: "keys in turn", stance: Dishonest, number: 4, plan: |plan, random| several_keys(plan, KeyUse::InTurn, 3..=8, random) },
    ClientKind { name: "keys round robin", stance: Dishonest, number: 4, plan: round_robin },
    ClientKind { name: "keys by part", stance: Dishonest, number: 4, plan: |plan, random| several_keys(plan, KeyUse::ByPart, 2..=6, random) },
    ClientKind { name: "resold key", stance: Dishonest, number: 4, plan: resold_key },
    ClientKind { name: "jittered sweep", stance: Dishonest, number: 4, plan: jittered },
    ClientKind { name: "mirror of 90 %", stance: Dishonest, number: 4, plan: |plan, random| one_key(plan, 0.9, SweepSchedule::EachRefresh, random) },
    ClientKind { name: "mirror of 60 %", stance: Dishonest, number: 3, plan: |plan, random| one_key(plan, 0.6, SweepSchedule::EachRefresh, random) },
    ClientKind { name: "mirror of 30 %", stance: Measured, number: 2, plan: |plan, random| one_key(plan, 0.3, SweepSchedule::EachRefresh, random) },
    ClientKind { name: "slow sweep of 90 %", stance: Measured, number: 2, plan: |plan, random| at_night(plan, 0.9, random) },
    ClientKind { name: "slow sweep of 60 %", stance: Measured, number: 2, plan: |plan, random| one_key(plan, 0.6, SweepSchedule::Spread(24), random) },
    ClientKind { name: "sweep in 3 hours", stance: Measured, number: 2, plan: |plan, random| one_key(plan, 1.0, SweepSchedule::Spread(3), random) },
    ClientKind { name: "sweep in 4 or 6 hours", stance: Measured, number: 2, plan: |plan, random| one_key(plan, 1.0, SweepSchedule::Spread(4 + plan.made % 2 * 2), random) },
    ClientKind { name: "free keys by quota", stance: Measured, number: 3, plan: free_keys },
    ClientKind { name: "keys apart in everything", stance: Measured, number: 3, plan: keys_apart },
    ClientKind { name: "product, copies for a day", stance: Measured, number: 4, plan: |plan, random| product(plan, Copies::OneDay, random) },
    ClientKind { name: "keys by part, one minute", stance: Measured, number: 3, plan: parts_at_one_minute },
];

fn alone(behaviour: impl Client + 'static, need: u32) -> PlannedClient {
    PlannedClient {
        behaviour: Box::new(behaviour),
        needs: vec![need],
        ownership: Ownership::Each,
    }
}

fn programs(programs: Vec<Dashboard>) -> PlannedClient {
    let needs = programs.iter().map(Dashboard::need).collect();
    PlannedClient {
        behaviour: Box::new(Programs(programs)),
        needs,
        ownership: Ownership::One,
    }
}

fn dashboard(plan: ClientPlan, random: &mut Random) -> PlannedClient {
    programs(vec![Dashboard::new(plan.models, plan.most, random)])
}

fn public_product(plan: ClientPlan, random: &mut Random) -> PlannedClient {
    let all = [
        Copies::No,
        Copies::No,
        Copies::Conditional,
        Copies::UntilRefresh,
        Copies::UntilRefresh,
    ];
    let copies = random.choose(&all);
    product(plan, copies, random)
}

fn product(plan: ClientPlan, copies: Copies, random: &mut Random) -> PlannedClient {
    let product = PublicProduct::new(plan.models, plan.most, copies, random);
    let need = product.need();
    alone(product, need)
}

fn research_script(plan: ClientPlan, random: &mut Random) -> PlannedClient {
    let script = Research::new(plan.models, plan.most, random);
    let need = script.need();
    alone(script, need)
}

/// Many of them have a smaller tier than they would need.
fn bad_poller(plan: ClientPlan, random: &mut Random) -> PlannedClient {
    let poller = Dashboard::bad_poller(plan.models, random);
    let need = random.choose(&[5_000, 5_000, 20_000, 80_000, poller.need()]);
    alone(Programs(vec![poller]), need)
}

fn fleet(plan: ClientPlan, random: &mut Random) -> PlannedClient {
    let fleet = Fleet::new(plan.models, plan.most, random);
    let need = fleet.need();
    alone(fleet, need)
}

fn ci_jobs(plan: ClientPlan, random: &mut Random) -> PlannedClient {
    let jobs = CiJobs::new(plan.models, random);
    let need = jobs.need();
    alone(jobs, need)
}

fn hobbyist(plan: ClientPlan, random: &mut Random) -> PlannedClient {
    let hobbyist = Hobbyist::new(plan.models, random);
    let need = if random.chance(0.5) {
        10
    } else {
        hobbyist.need()
    };
    alone(hobbyist, need)
}

fn team(plan: ClientPlan, random: &mut Random) -> PlannedClient {
    let team = TeamWithOneKey::new(plan.models, plan.most, random);
    let need = team.need();
    alone(team, need)
}

fn office(plan: ClientPlan, is_changing: bool, random: &mut Random) -> PlannedClient {
    let people = if is_changing {
        random.between(3, 8)
    } else {
        random.between(4, 15)
    };
    let office = Office::new(
        plan.models,
        plan.most,
        people.min(plan.missing),
        is_changing,
        random,
    );
    let needs = office.needs().collect();
    let ownership = random.choose(&[Ownership::Each, Ownership::Each, Ownership::Unknown]);
    PlannedClient {
        behaviour: Box::new(office),
        needs,
        ownership,
    }
}

/// Production, staging and tests of one program.
fn stages(plan: ClientPlan, random: &mut Random) -> PlannedClient {
    let production = Dashboard::new(plan.models, plan.most, random);
    let stages = random.between(2, 3).min(plan.missing);
    let is_one_host = random.chance(0.5);
    let stage = |number: usize| {
        let is_for_work = number > 0 && random.chance(0.5);
        Dashboard {
            worked: if is_for_work {
                Some(random.below(24))
            } else {
                production.worked
            },
            hosting: if is_one_host {
                production.hosting.clone()
            } else {
                Hosting::any(random)
            },
            ..production.clone()
        }
    };
    programs((0..stages).map(stage).collect())
}

/// One owner with an application for each customer: one program, different models.
fn agency(plan: ClientPlan, random: &mut Random) -> PlannedClient {
    let customers = random.between(3, 8).min(plan.missing);
    let first = Dashboard::new(plan.models, plan.most, random);
    let of_customer = |_| Dashboard {
        hosting: first.hosting.clone(),
        product: first.product,
        minute: first.minute,
        ..Dashboard::new(plan.models, plan.most, random)
    };
    programs((0..customers).map(of_customer).collect())
}

fn course(plan: ClientPlan, random: &mut Random) -> PlannedClient {
    let students = random.between(15, 40).min(plan.missing);
    let course = Course::new(plan.models, students, random);
    PlannedClient {
        behaviour: Box::new(course),
        needs: vec![10; students],
        ownership: Ownership::Each,
    }
}

fn one_key(
    plan: ClientPlan,
    share: f64,
    schedule: SweepSchedule,
    random: &mut Random,
) -> PlannedClient {
    owned(
        plan,
        CatalogueMirror::new(plan.models, share, schedule, random),
    )
}

fn at_night(plan: ClientPlan, share: f64, random: &mut Random) -> PlannedClient {
    let schedule = SweepSchedule::Night {
        first: random.below(24),
        hours: random.between(3, 8),
    };
    one_key(plan, share, schedule, random)
}

fn jittered(plan: ClientPlan, random: &mut Random) -> PlannedClient {
    let schedule = SweepSchedule::Jittered(random.within(0.2, 0.7));
    one_key(plan, 1.0, schedule, random)
}

fn several_keys(
    plan: ClientPlan,
    key_use: KeyUse,
    keys: std::ops::RangeInclusive<usize>,
    random: &mut Random,
) -> PlannedClient {
    let share = random.choose(&[1.0, 1.0, 0.8]);
    let mirror = CatalogueMirror::new(plan.models, share, SweepSchedule::EachRefresh, random);
    let keys = random.between(*keys.start(), *keys.end());
    owned(plan, mirror.with_keys(key_use, keys))
}

fn round_robin(plan: ClientPlan, random: &mut Random) -> PlannedClient {
    let key_use = random.choose(&[KeyUse::RoundRobin, KeyUse::RoundRobin, KeyUse::AtRandom]);
    several_keys(plan, key_use, 2..=6, random)
}

fn free_keys(plan: ClientPlan, random: &mut Random) -> PlannedClient {
    let sweep = CatalogueMirror::new(plan.models, 1.0, SweepSchedule::Spread(24), random);
    let keys = plan.models.div_ceil(FREE_QUOTA);
    owned(
        plan,
        sweep
            .with_one_document()
            .with_keys(KeyUse::ByQuota(FREE_QUOTA), keys),
    )
}

fn parts_at_one_minute(plan: ClientPlan, random: &mut Random) -> PlannedClient {
    let mirror = CatalogueMirror::new(plan.models, 1.0, SweepSchedule::EachRefresh, random);
    let keys = random.between(3, 6);
    owned(plan, mirror.with_keys(KeyUse::ByPart, keys).at_minute(0))
}

fn keys_apart(plan: ClientPlan, random: &mut Random) -> PlannedClient {
    let mirror = CatalogueMirror::new(plan.models, 1.0, SweepSchedule::EachRefresh, random);
    let keys = random.between(4, 6);
    owned(
        plan,
        mirror
            .with_keys(KeyUse::ByPart, keys)
            .with_origins_apart(random),
    )
}

fn resold_key(plan: ClientPlan, random: &mut Random) -> PlannedClient {
    alone(ResoldKey::new(plan.models, plan.most, random), RESOLD_NEED)
}

/// Keys of one owner, of owners with one application each, or without an owner, in turn.
fn owned(plan: ClientPlan, mirror: CatalogueMirror) -> PlannedClient {
    let ownership = [Ownership::One, Ownership::Each, Ownership::Unknown][plan.made % 3];
    let keys = u32::try_from(mirror.keys()).unwrap();
    let needs = vec![mirror.need().div_ceil(keys); mirror.keys()];
    PlannedClient {
        behaviour: Box::new(mirror),
        needs,
        ownership,
    }
}
