//! Changes of keys, tiers and quotas during a run.

use std::time::Duration;

use super::{
    gateways::FaultyFleet,
    population::{ApplicationRole, FleetApplication, QUOTAS, TIERS},
    schedule::SeededChoice,
    trace::SeenRevocation,
};

/// Makes random changes until the run is over.
pub fn make(fleet: &FaultyFleet, mut choice: SeededChoice) {
    let of_role = |role: ApplicationRole| -> Vec<usize> {
        let all = fleet.applications.iter().enumerate();
        all.filter(|(_, application)| application.role == role)
            .map(|(number, _)| number)
            .collect()
    };
    let mut revocable = of_role(ApplicationRole::Revoked);
    let tiers = of_role(ApplicationRole::Tier);
    let quotas = of_role(ApplicationRole::Quota);
    while !fleet.is_over() {
        std::thread::sleep(Duration::from_secs_f64(choice.seconds(0.5, 2.0)));
        match choice.below(4) {
            0 => {
                let id = &fleet.applications[tiers[choice.below(tiers.len())]].id;
                let tier = TIERS[choice.below(TIERS.len())];
                fleet.command(&["keys", "set-tier", id, tier]);
            }
            1 => {
                let application = quotas[choice.below(quotas.len())];
                fleet.set_quota(application, QUOTAS[choice.below(QUOTAS.len())]);
            }
            _ if revocable.is_empty() => continue,
            _ => revoke(
                fleet,
                revocable.swap_remove(choice.below(revocable.len())),
                choice.below(2) == 0,
            ),
        }
        fleet.record.lock().unwrap().changes += 1;
    }
}

/// Revokes all keys of an application or its only one, and then creates another application. A key that was replaced
/// expires by the clock, which is set during the run.
fn revoke(fleet: &FaultyFleet, application: usize, names_key: bool) {
    let FleetApplication { id, key, .. } = &fleet.applications[application];
    let one = ["keys", "revoke", id, "--key", &key[..12]];
    let revoked = fleet.command(if names_key { &one } else { &one[..3] });
    let at = fleet.now();
    let marker = revoked
        .and_then(|_| fleet.command(&["keys", "create", "--name", "Marker", "--tier", "pro"]));
    if let Some(marker) = marker.as_ref().and_then(|issued| issued["key"].as_str()) {
        let seen = SeenRevocation {
            application,
            at,
            marker: marker.to_owned(),
        };
        fleet.record.lock().unwrap().revocations.push(seen);
    }
}
