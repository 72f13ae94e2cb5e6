//! The fleet over the side port: `GET /v1/nodes/list` lists the gateways on the store, `GET /v1/usage/top?fleet=true` adds up usage
//! over them.
//!
//! Both are read from the store. Requests counted by this process alone are in `usage`.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::{Value, json};

use scoregate_base::clock::{Day, Wall};
use scoregate_base::keys::ApplicationId;
use scoregate_store::{NodeList, NodeStatus, StoredApplication, UsageList};

/// The known gateways, and when they were read.
pub(in crate::admin) struct NodesRead {
    pub(in crate::admin) nodes: NodeList,
    pub(in crate::admin) at: Wall,
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

impl NodesRead {
    /// The gateways as JSON: the live ones in numbers, then all, oldest first.
    pub(in crate::admin) fn view(&self) -> Value {
        let Self { nodes, at } = self;
        let all: Vec<Value> = nodes.nodes.iter().map(|node| self.node(node)).collect();
        json!({
            "live": nodes.live(*at).count(),
            "units_held": nodes.live(*at).map(|node| node.units_held).sum::<u64>(),
            "nodes": all,
        })
    }

    fn node(&self, node: &NodeStatus) -> Value {
        json!({
            // Unique to each start.
            "node": format!("{:016x}", node.node),
            "name": node.name,
            "version": node.version,
            "started_at": node.started_at.rfc3339(),
            "last_seen_at": node.last_seen_at.rfc3339(),
            "last_seen_seconds_ago": self.nodes.unseen_for(node, self.at).as_secs(),
            "live": self.nodes.is_live(node, self.at),
            "units_held": node.units_held,
            // Units that it delivered before this time are in the usage.
            "usage_recorded_at": node.usage_recorded_at.rfc3339(),
        })
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
