//! The applications of a run: all tiers, quotas that can be used up, and keys to be revoked.

use super::{gateways::FaultyFleet, trace::AllowedUse};

/// An application, and how its clients use it.
#[derive(Clone, Debug)]
pub struct FleetApplication {
    pub id: String,
    pub key: String,
    pub allowed: AllowedUse,
    /// Milliseconds between two requests to one gateway.
    pub pause: u64,
    pub role: ApplicationRole,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplicationRole {
    /// Its clients send more requests than the minute limit allows.
    Minute,
    /// Its daily quota is used up at the end.
    Day,
    /// Its tier changes.
    Tier,
    /// Its quota changes, and the last quota is used up at the end.
    Quota,
    /// Its keys are revoked.
    Revoked,
}

struct Template {
    tier: &'static str,
    role: ApplicationRole,
    /// The initial limits.
    minute: u32,
    day: u32,
    pause: u64,
}

/// A minute limit that no test reaches.
const NO_LIMIT: u32 = 4_000_000;
/// The tiers of an application whose tier changes, and the largest limits among them.
pub const TIERS: [&str; 3] = ["pro", "developer", "teams"];
const LARGEST_OF_TIERS: AllowedUse = AllowedUse {
    minute: 300,
    day: 100_000,
    is_paid: true,
};
/// The quotas of an application whose quota changes.
pub const QUOTAS: [u32; 3] = [1_500, 900, 2_400];

const fn row(
    tier: &'static str,
    role: ApplicationRole,
    minute: u32,
    day: u32,
    pause: u64,
) -> Template {
    Template {
        tier,
        role,
        minute,
        day,
        pause,
    }
}

const TEMPLATES: [Template; 11] = [
    // Below its limits at all times.
    row(
        "enterprise",
        ApplicationRole::Minute,
        NO_LIMIT,
        300_000,
        200,
    ),
    row("free", ApplicationRole::Minute, 1, 10, 5_000),
    row("pro", ApplicationRole::Minute, 60, 10_000, 2_000),
    row("developer", ApplicationRole::Minute, 120, 25_000, 1_000),
    row("teams", ApplicationRole::Minute, 300, 100_000, 400),
    row("enterprise", ApplicationRole::Minute, 1_000, 250_000, 120),
    row("free", ApplicationRole::Day, NO_LIMIT, 60, 2_000),
    row("pro", ApplicationRole::Day, NO_LIMIT, 1_000, 150),
    row("enterprise", ApplicationRole::Day, NO_LIMIT, 2_500, 60),
    row("pro", ApplicationRole::Tier, 60, 10_000, 300),
    row("teams", ApplicationRole::Quota, NO_LIMIT, QUOTAS[0], 100),
];

/// Creates `count` applications in use, and `revoked` applications whose keys are revoked.
pub fn create(fleet: &FaultyFleet, count: usize, revoked: usize) -> Vec<FleetApplication> {
    let revocable = row("pro", ApplicationRole::Revoked, NO_LIMIT, 10_000, 0);
    let templates = TEMPLATES.iter().cycle().take(count);
    templates
        .chain(std::iter::repeat_n(&revocable, revoked))
        .map(|template| created(fleet, template))
        .collect()
}

fn created(fleet: &FaultyFleet, template: &Template) -> FleetApplication {
    let Template {
        tier,
        role,
        minute,
        day,
        pause,
    } = template;
    let mut arguments = vec!["keys", "create", "--name", "Station", "--tier", tier];
    let own_minute = minute.to_string();
    let own_day = day.to_string();
    if *minute == NO_LIMIT {
        arguments.extend(["--minute", &own_minute, "--day", &own_day]);
    }
    let issued = fleet.command(&arguments).unwrap();
    let word = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let allowed = match role {
        ApplicationRole::Tier => LARGEST_OF_TIERS,
        ApplicationRole::Quota => AllowedUse {
            minute: *minute,
            day: largest(&QUOTAS),
            is_paid: true,
        },
        ApplicationRole::Minute | ApplicationRole::Day | ApplicationRole::Revoked => AllowedUse {
            minute: *minute,
            day: *day,
            is_paid: *tier != "free",
        },
    };
    let id = word(&issued["application"]["id"]);
    let key = word(&issued["key"]);
    FleetApplication {
        id,
        key,
        allowed,
        pause: *pause,
        role: *role,
    }
}

fn largest(quotas: &[u32]) -> u32 {
    quotas.iter().copied().max().unwrap()
}
