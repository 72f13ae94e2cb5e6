//! The clients of a simulation: as many of each kind as its row states, with ids, owners and tiers.

use std::sync::Arc;

use scoregate_base::{
    keys::{ApplicationId, OwnerId},
    plans::{TierLimits, standard_tiers},
};

use super::{
    gateways::SimulatedCatalogue,
    kinds::{ClientKind, ClientPlan, KINDS, Ownership, PlannedClient, Stance},
    random::Random,
    requests::Client,
};

/// An application of a client.
pub struct SimulatedKey {
    pub application: ApplicationId,
    pub owner: Option<OwnerId>,
    pub tier: Arc<str>,
    pub limits: TierLimits,
}

/// A client and its applications.
pub struct SimulatedClient {
    pub kind: &'static ClientKind,
    pub keys: Vec<SimulatedKey>,
    pub behaviour: Box<dyn Client>,
}

/// This many honest applications, and all other clients.
pub fn population(
    catalogue: &SimulatedCatalogue,
    honest: usize,
    random: &mut Random,
) -> Vec<SimulatedClient> {
    let mut clients = Vec::new();
    let mut applications = 0;
    for kind in &KINDS {
        let is_honest = kind.stance == Stance::Honest;
        let number = if is_honest {
            (kind.number * honest).div_ceil(2_000)
        } else {
            kind.number
        };
        let mut made = 0;
        while made < number {
            let missing = number - made;
            let most = catalogue.most_honest();
            let planned = (kind.plan)(
                ClientPlan {
                    models: catalogue.models,
                    most,
                    made,
                    missing,
                },
                random,
            );
            let (keys, behaviour) = with_ids(planned, applications, random);
            applications += keys.len();
            made += if is_honest { keys.len() } else { 1 };
            clients.push(SimulatedClient {
                kind,
                keys,
                behaviour,
            });
        }
    }
    clients
}

fn with_ids(
    planned: PlannedClient,
    first: usize,
    random: &mut Random,
) -> (Vec<SimulatedKey>, Box<dyn Client>) {
    let keys = (first..).zip(planned.needs).map(|(number, need)| {
        let owner = match planned.ownership {
            Ownership::Unknown => None,
            Ownership::One => Some(first),
            Ownership::Each => Some(number),
        };
        key(number, owner, need, random)
    });
    (keys.collect(), planned.behaviour)
}

/// A key of the smallest tier with this quota, or sometimes of the next.
fn key(number: usize, owner: Option<usize>, need: u32, random: &mut Random) -> SimulatedKey {
    let tiers = standard_tiers();
    let enough = tiers
        .iter()
        .position(|tier| tier.limits.day >= need)
        .unwrap_or(tiers.len() - 1);
    let chosen = (enough + usize::from(random.chance(0.2))).min(tiers.len() - 1);
    SimulatedKey {
        application: format!("app_{number:011}").parse().unwrap(),
        owner: owner.map(|owner| format!("own_{owner:011}").parse().unwrap()),
        tier: tiers[chosen].name.as_str().into(),
        limits: tiers[chosen].limits,
    }
}
