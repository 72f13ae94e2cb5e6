//! The fleet on the side port: `GET /v1/nodes/list` lists the gateways that use the store, and `GET
//! /v1/usage/top?fleet=true` sums their usage.
//!
//! Both are read from the store. Requests counted by this process are in `usage_view`.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::{Value, json};

use scoregate_base::{
    clock::{Day, Wall},
    keys::ApplicationId,
};
use scoregate_store::{NodeList, NodeStatus, StoredApplication, UsageList};

/// The known gateways, and the time at which they were read.
pub struct NodesRead {
    pub nodes: NodeList,
    pub at: Wall,
}

/// Usage of a day, summed over all gateways.
#[derive(Serialize)]
pub struct FleetUsageView {
    /// The day.
    day: String,
    /// Units delivered to all applications.
    used: u64,
    /// Number of applications with usage.
    used_by: u64,
    /// Number of live gateways.
    live: usize,
    /// The usage contains all units that live gateways delivered before this time. Null if there is no live gateway.
    recorded_at: Option<String>,
    /// Seconds since `recorded_at`.
    recorded_seconds_ago: Option<u64>,
    /// The applications with the highest usage.
    applications: Vec<FleetApplicationView>,
}

/// Usage of an application.
#[derive(Serialize)]
pub struct FleetApplicationView {
    /// The application's id.
    application: String,
    /// The application's name. Null if its record is unreadable.
    name: Option<String>,
    /// The application's tier. Null if its record is unreadable.
    tier: Option<String>,
    /// Units delivered to the application.
    used: u64,
    /// Units granted to all gateways, used or not.
    granted: u64,
}

impl NodesRead {
    /// The gateways as JSON: totals of the live gateways, then all gateways, oldest first.
    pub fn view(&self) -> Value {
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
            // Unique for each start.
            "node": format!("{:016x}", node.node),
            "name": node.name,
            "version": node.version,
            "started_at": node.started_at.rfc3339(),
            "last_seen_at": node.last_seen_at.rfc3339(),
            "last_seen_seconds_ago": self.nodes.unseen_for(node, self.at).as_secs(),
            "live": self.nodes.is_live(node, self.at),
            "units_held": node.units_held,
            // Units that the gateway delivered before this time are included in the usage.
            "usage_recorded_at": node.usage_recorded_at.rfc3339(),
        })
    }
}

impl FleetUsageView {
    /// Creates the view. Unreadable applications are omitted from `applications`.
    pub fn new(
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
