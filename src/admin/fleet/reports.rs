//! Reads the list of gateways from the store, and the total usage and requests of all gateways.

use std::{collections::HashMap, sync::Arc};

use crate::{
    admin::command_problem::{CommandProblem, CommandResult},
    registry::Registrar,
};
use scoregate_base::{
    clock::{Clock, Day},
    evidence::judgement::SuspectRules,
    keys::ApplicationId,
};
use scoregate_store::{REQUEST_DAYS_KEPT, RequestList, RequestQuery, Store, StoreError};

use super::{
    requests_view::ApplicationRequestsView,
    views::{FleetUsageView, NodesRead},
};

/// Reads the reports of gateways.
pub struct FleetReports {
    store: Store,
    registrar: Arc<Registrar>,
    rules: SuspectRules,
    clock: Clock,
}

impl FleetReports {
    /// Reads reports from `store`, and applications from `registrar`.
    pub fn new(store: Store, registrar: Arc<Registrar>, rules: SuspectRules, clock: Clock) -> Self {
        Self {
            store,
            registrar,
            rules,
            clock,
        }
    }

    pub(in crate::admin) fn store(&self) -> &Store {
        &self.store
    }

    pub(in crate::admin) fn registrar(&self) -> &Registrar {
        &self.registrar
    }

    pub(in crate::admin) const fn rules(&self) -> &SuspectRules {
        &self.rules
    }

    /// The first and the last of the most recent days, including today.
    pub(in crate::admin) fn last_days(&self, days: u32) -> (Day, Day) {
        let last = self.clock.now().wall.day();
        (
            Day::from_number(last.number().saturating_sub(days - 1)),
            last,
        )
    }

    async fn read_nodes(&self) -> Result<NodesRead, StoreError> {
        let nodes = self.store.nodes().await?;
        Ok(NodesRead {
            nodes,
            at: self.clock.now().wall,
        })
    }

    /// The gateways that use the store.
    pub(in crate::admin) async fn nodes(&self) -> CommandResult {
        Ok(self.read_nodes().await?.view())
    }

    /// The applications with the highest usage on a day, by default today.
    pub(in crate::admin) async fn usage(
        &self,
        day: Option<Day>,
        limit: usize,
    ) -> CommandResult<FleetUsageView> {
        let day = day.unwrap_or_else(|| self.clock.now().wall.day());
        // The time is read before the usage, so the usage contains at least the records up to that time.
        let nodes = self.read_nodes().await?;
        let usage = self.store.usage(day, limit, None).await?;
        let ids = usage.totals.iter().map(|total| total.application).collect();
        let found = self.registrar.find(ids, day).await?;
        let applications: HashMap<_, _> = found
            .into_iter()
            .map(|stored| (stored.id, stored))
            .collect();
        Ok(FleetUsageView::new(day, &usage, &applications, &nodes))
    }

    /// The requests of an application on consecutive days up to `last`, by default today.
    pub(in crate::admin) async fn requests(
        &self,
        application: ApplicationId,
        days: u32,
        last: Option<Day>,
    ) -> CommandResult<ApplicationRequestsView> {
        if !(1..=REQUEST_DAYS_KEPT).contains(&days) {
            return Err(CommandProblem::bad(format!(
                "days: write a number from 1 to {REQUEST_DAYS_KEPT}; requests are kept for that many days"
            )));
        }
        let last = last.unwrap_or_else(|| self.clock.now().wall.day());
        let first = Day::from_number(last.number().saturating_sub(days - 1));
        let query = RequestQuery {
            application,
            first,
            last,
        };
        self.registrar.show(application).await?;
        // The time is read before the requests, so the requests contain at least the records up to that time.
        let nodes = self.read_nodes().await?;
        let requests = self.store.requests(query).await?;
        Ok(ApplicationRequestsView::new(&query, &requests, &nodes))
    }

    /// All stored requests of an application, by day, endpoint and outcome.
    pub(in crate::admin) async fn kept_requests(
        &self,
        application: ApplicationId,
    ) -> Result<RequestList, StoreError> {
        let (first, last) = self.last_days(REQUEST_DAYS_KEPT);
        self.store
            .requests(RequestQuery {
                application,
                first,
                last,
            })
            .await
    }
}
