//! Reads the gateways on the store, and usage added up over them.

use std::collections::HashMap;

use crate::clock::{Day, Wall};
use crate::keys::ApplicationId;
use crate::store::{NodeList, StoredApplication, UsageList, UsageQuery};

use super::{Registrar, RegistrarError};

/// The known gateways.
#[derive(Clone, Debug)]
pub struct FleetNodes {
    /// The gateways.
    pub nodes: NodeList,
    /// When they were read.
    pub at: Wall,
}

/// Usage of a day.
#[derive(Clone, Debug)]
pub struct FleetUsage {
    /// The day.
    pub day: Day,
    /// Its usage.
    pub usage: UsageList,
    /// The listed applications, unreadable ones left out.
    pub applications: HashMap<ApplicationId, StoredApplication>,
    /// The gateways, whose last reports show how current it is.
    pub fleet: FleetNodes,
}

impl Registrar {
    /// The gateways that use the store.
    pub async fn nodes(&self) -> Result<FleetNodes, RegistrarError> {
        let nodes = self.store.nodes().await?;
        Ok(FleetNodes { nodes, at: self.clock.now().wall })
    }

    /// The applications with the highest usage of a day, by default today.
    pub async fn usage(&self, day: Option<Day>, limit: usize) -> Result<FleetUsage, RegistrarError> {
        let day = day.unwrap_or_else(|| self.clock.now().wall.day());
        // Before the usage, which contains at least what was recorded by then.
        let fleet = self.nodes().await?;
        let usage = self.store.usage(UsageQuery::on(day, limit)).await?;
        let ids = usage.totals.iter().map(|total| total.application).collect();
        let page = self.store.applications(ids, day).await?;
        let applications = page.applications.into_iter().map(|stored| (stored.id, stored)).collect();
        Ok(FleetUsage { day, usage, applications, fleet })
    }
}
