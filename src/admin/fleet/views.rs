//! The fleet over the side port: `GET /v1/nodes/list` lists the gateways on the store, `GET /v1/usage?fleet=true` adds up usage
//! over them.
//!
//! Both are read from the store. Requests counted by this process alone are in `usage`.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use scoregate_base::clock::{Day, Wall};
use scoregate_base::keys::ApplicationId;
use scoregate_store::{NodeList, NodeStatus, StoredApplication, UsageList};

/// The known gateways, and when they were read.
pub(in crate::admin) struct NodesRead {
    pub(in crate::admin) nodes: NodeList,
    pub(in crate::admin) at: Wall,
}

/// The gateways on the store.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NodesView {
    /// Number of live gateways.
    pub live: usize,
    /// Units that the live ones hold.
    pub units_held: u64,
    /// All gateways, oldest first.
    pub nodes: Vec<NodeView>,
}

/// A gateway process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NodeView {
    /// Its number in hexadecimal, unique to each start.
    pub node: String,
    /// Its name.
    pub name: String,
    /// Version of its program.
    pub version: String,
    /// When it started.
    pub started_at: String,
    /// When it reported last.
    pub last_seen_at: String,
    /// Seconds since then.
    pub last_seen_seconds_ago: u64,
    /// Whether it reported lately.
    pub live: bool,
    /// Units of the day leased and not delivered.
    pub units_held: u64,
    /// Units that it delivered before this time are in the usage.
    pub usage_recorded_at: String,
}

/// Usage of a day, added up over all gateways.
#[derive(Serialize)]
pub(in crate::admin) struct FleetUsageView {
    /// The day.
    day: String,
    /// Units delivered to all applications.
    used: u64,
    /// Number of applications with usage.
    used_by: u64,
    /// Number of live gateways.
    live: usize,
    /// The usage contains what the live gateways delivered before this time; null without a live gateway.
    recorded_at: Option<String>,
    /// Seconds since then.
    recorded_seconds_ago: Option<u64>,
    /// The applications with the highest usage.
    applications: Vec<FleetApplicationView>,
}

/// Usage of an application.
#[derive(Serialize)]
pub(in crate::admin) struct FleetApplicationView {
    /// The application's id.
    application: String,
    /// Its name; null if its record is unreadable.
    name: Option<String>,
    /// Its tier; null if its record is unreadable.
    tier: Option<String>,
    /// Units delivered to it.
    used: u64,
    /// Units granted to all gateways, used or not.
    granted: u64,
}

impl From<&NodesRead> for NodesView {
    fn from(NodesRead { nodes, at }: &NodesRead) -> Self {
        let view = |node: &NodeStatus| NodeView {
            node: format!("{:016x}", node.node),
            name: node.name.clone(),
            version: node.version.clone(),
            started_at: node.started_at.rfc3339(),
            last_seen_at: node.last_seen_at.rfc3339(),
            last_seen_seconds_ago: nodes.unseen_for(node, *at).as_secs(),
            live: nodes.is_live(node, *at),
            units_held: node.units_held,
            usage_recorded_at: node.usage_recorded_at.rfc3339(),
        };
        Self {
            live: nodes.live(*at).count(),
            units_held: nodes.live(*at).map(|node| node.units_held).sum(),
            nodes: nodes.nodes.iter().map(view).collect(),
        }
    }
}

impl FleetUsageView {
    /// Unreadable applications are left out of `applications`.
    pub(in crate::admin) fn new(
        day: Day,
        usage: &UsageList,
        applications: &HashMap<ApplicationId, StoredApplication>,
        NodesRead { nodes, at }: &NodesRead,
    ) -> Self {
        let recorded = nodes.live(*at).map(|node| node.usage_recorded_at).min();
        let applications = usage.totals.iter().map(|total| {
            let stored = applications.get(&total.application);
            FleetApplicationView {
                application: total.application.to_string(),
                name: stored.map(|stored| stored.name.clone()),
                tier: stored.map(|stored| stored.tier.clone()),
                used: total.units,
                granted: stored.map_or(0, |stored| stored.granted),
            }
        });
        Self {
            day: day.to_string(),
            used: usage.units,
            used_by: usage.matching,
            live: nodes.live(*at).count(),
            recorded_at: recorded.map(Wall::rfc3339),
            recorded_seconds_ago: recorded
                .map(|recorded| nodes.clock.unwrap_or(*at).since(recorded).as_secs()),
            applications: applications.collect(),
        }
    }
}
