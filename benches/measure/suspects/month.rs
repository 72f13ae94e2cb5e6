//! A simulated month, judged at the end of each of its days.

use std::collections::HashSet;

use scoregate_base::{
    clock::Day,
    evidence::{
        DayEvidence,
        judgement::{CallerDays, Finding, SuspectRules, judge},
    },
    keys::ApplicationId,
};

use super::{
    gateways::{FIRST_DAY, GatewayPair, SimulatedCatalogue},
    kinds::{ClientKind, Stance},
    population::{SimulatedClient, population},
    random::{Random, mixed},
    requests::{HourOfUse, SimulatedHour},
};

/// Days that are judged together.
const JUDGED_DAYS: usize = 7;
/// The largest share of the models of honest clients in an hour, which is estimated.
const HONEST_SHARE: f64 = 0.32;

/// The applications of a client after the month.
pub struct JudgedClient {
    pub kind: &'static ClientKind,
    pub applications: Vec<ApplicationId>,
}

/// The clients of a month, and the first finding of each rule about each application, with the number of its day.
pub struct JudgedMonth {
    pub clients: Vec<JudgedClient>,
    pub findings: Vec<(usize, Finding)>,
}

pub fn month(
    seed: u64,
    models: usize,
    honest: usize,
    days: usize,
    rules: &SuspectRules,
) -> JudgedMonth {
    let catalogue = SimulatedCatalogue::new(models);
    let mut clients = population(&catalogue, honest, &mut Random::new(seed));
    let randoms = (0..clients.len()).map(|number| Random::new(mixed(seed) ^ number as u64));
    let mut randoms: Vec<Random> = randoms.collect();
    let caller = |client: &SimulatedClient| -> Vec<CallerDays> {
        let keys = client.keys.iter();
        let callers = keys.map(|key| CallerDays {
            application: key.application,
            owner: key.owner,
            tier: key.tier.clone(),
            days: Vec::new(),
        });
        callers.collect()
    };
    let mut callers: Vec<CallerDays> = clients.iter().flat_map(caller).collect();
    let mut findings = Vec::new();
    let mut listed = HashSet::new();
    for day in 0..days {
        let records = clients.iter_mut().zip(&mut randoms);
        let records =
            records.flat_map(|(client, random)| day_of(client, &catalogue, seed, day, random));
        for (caller, record) in callers.iter_mut().zip(records) {
            caller.days.push((
                Day::from_number(FIRST_DAY + u32::try_from(day).unwrap()),
                record,
            ));
            caller
                .days
                .drain(..caller.days.len().saturating_sub(JUDGED_DAYS));
        }
        let judged = judge(&callers, rules).into_iter();
        let new =
            judged.filter(|finding| listed.insert((finding.application, finding.rule.word())));
        findings.extend(new.map(|finding| (day, finding)));
    }
    let judged = |client: SimulatedClient| JudgedClient {
        kind: client.kind,
        applications: client.keys.iter().map(|key| key.application).collect(),
    };
    JudgedMonth {
        clients: clients.into_iter().map(judged).collect(),
        findings,
    }
}

/// The records of a day, one for each application.
fn day_of(
    client: &mut SimulatedClient,
    catalogue: &SimulatedCatalogue,
    seed: u64,
    day: usize,
    random: &mut Random,
) -> Vec<DayEvidence> {
    let gateways = client
        .keys
        .iter()
        .map(|key| GatewayPair::of(catalogue, seed, day, key.limits));
    let mut gateways: Vec<GatewayPair<'_>> = gateways.collect();
    for hour in 0..24 {
        let at = SimulatedHour { day, hour };
        let mut uses: Vec<HourOfUse> = client.keys.iter().map(|_| HourOfUse::default()).collect();
        client.behaviour.hour(at, &mut uses, random);
        for (gateway, requests) in gateways.iter_mut().zip(&uses) {
            gateway.record(at, requests, random);
        }
    }
    let records: Vec<DayEvidence> = gateways.into_iter().map(GatewayPair::stored).collect();
    if client.kind.stance == Stance::Honest {
        let shares = records
            .iter()
            .flat_map(|day| day.hours.iter().map(|hour| day.share_of_hour(hour)));
        assert!(
            shares.fold(0.0, f64::max) <= HONEST_SHARE,
            "{} is a mirror",
            client.kind.name
        );
    }
    records
}
