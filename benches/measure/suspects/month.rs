//! The records of a simulated month.

use scoregate_base::evidence::DayEvidence;

use super::gateways::{GatewayPair, SimulatedCatalogue};
use super::kinds::ClientKind;
use super::population::{SimulatedClient, population};
use super::random::{Random, mixed};
use super::requests::{HourOfUse, SimulatedHour};

/// The record of an application and a day.
pub(super) struct SimulatedDay {
    pub(super) kind: &'static ClientKind,
    pub(super) evidence: DayEvidence,
}

impl SimulatedDay {
    /// Shares of the catalogue by hour.
    pub(super) fn hour_shares(&self) -> impl Iterator<Item = f64> {
        self.evidence.hours.iter().map(|hour| self.evidence.share_of_hour(hour))
    }

    pub(super) fn is_used(&self) -> bool {
        self.evidence.counts.delivered + self.evidence.counts.unchanged > 0
    }
}

pub(super) fn month(seed: u64, models: usize, honest: usize, days: usize) -> Vec<SimulatedDay> {
    let catalogue = SimulatedCatalogue::new(models);
    let clients = population(&catalogue, honest, &mut Random::new(seed));
    let mut records = Vec::new();
    for (number, mut client) in clients.into_iter().enumerate() {
        let mut random = Random::new(mixed(seed) ^ number as u64);
        for day in 0..days {
            let evidence = day_of(&mut client, &catalogue, seed, day, &mut random);
            records.extend(evidence.into_iter().map(|evidence| SimulatedDay { kind: client.kind, evidence }));
        }
    }
    records
}

/// The records of a day, one for each application.
fn day_of(
    client: &mut SimulatedClient,
    catalogue: &SimulatedCatalogue,
    seed: u64,
    day: usize,
    random: &mut Random,
) -> Vec<DayEvidence> {
    let gateways = client.keys.iter().map(|key| GatewayPair::of(catalogue, seed, day, key.limits));
    let mut gateways: Vec<GatewayPair<'_>> = gateways.collect();
    for hour in 0..24 {
        let at = SimulatedHour { day, hour };
        let mut uses: Vec<HourOfUse> = client.keys.iter().map(|_| HourOfUse::default()).collect();
        client.behaviour.hour(at, &mut uses, random);
        for (gateway, requests) in gateways.iter_mut().zip(&uses) {
            gateway.record(at, requests, random);
        }
    }
    gateways.into_iter().map(GatewayPair::stored).collect()
}
