//! Reads the gateways on the store, and usage and requests added up over them.

use std::collections::HashMap;

use crate::clock::{Day, Wall};
use crate::keys::ApplicationId;
use crate::store::{
    NodeList, REQUEST_DAYS_KEPT, RequestList, RequestQuery, StoredApplication, UsageList, UsageQuery,
};

use super::{Registrar, RegistrarError};

/// Number of days of requests, unless requested otherwise.
const REQUEST_DAYS: u32 = 30;

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

/// Requests of an application.
#[derive(Clone, Debug)]
pub struct ApplicationRequests {
    /// The query.
    pub query: RequestQuery,
    /// The requests.
    pub requests: RequestList,
    /// The gateways, whose last reports show how current they are.
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

    /// The requests of an application from `first` to `last`, by default the 30 days that end with `last`, and today.
    pub async fn requests(
        &self,
        application: ApplicationId,
        first: Option<Day>,
        last: Option<Day>,
    ) -> Result<ApplicationRequests, RegistrarError> {
        let last = last.unwrap_or_else(|| self.clock.now().wall.day());
        let first = first.unwrap_or(Day::from_number(last.number().saturating_sub(REQUEST_DAYS - 1)));
        let query = RequestQuery { application, first, last };
        if last.number().checked_sub(first.number()).is_none_or(|days| days >= REQUEST_DAYS_KEPT) {
            return Err(RegistrarError::BadDays);
        }
        self.show(application).await?;
        // Before the requests, which contain at least what was recorded by then.
        let fleet = self.nodes().await?;
        let requests = self.store.requests(query).await?;
        Ok(ApplicationRequests { query, requests, fleet })
    }

    /// All requests of an application that are kept, by day, endpoint and outcome.
    pub async fn kept_requests(&self, application: ApplicationId) -> Result<RequestList, RegistrarError> {
        let last = self.clock.now().wall.day();
        let first = Day::from_number(last.number().saturating_sub(REQUEST_DAYS_KEPT - 1));
        Ok(self.store.requests(RequestQuery { application, first, last }).await?)
    }
}
