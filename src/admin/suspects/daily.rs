//! Evaluates complete days, once a day on one gateway, for the metric and the operator's webhook.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use metrics::Gauge;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::admin::{administration::Administration, command_problem::CommandResult};
use scoregate_base::{
    clock::{Clock, Day},
    evidence::judgement::Suspicion,
};
use scoregate_observe::telemetry::metrics::{MetricFamily, MetricsRegistry, number_value};
use scoregate_store::NewMail;

use super::judged::{SUSPECT_DAYS, SuspectView, SuspectsView};

/// Delay after midnight. By then, the last hour of the previous day has been merged.
const AFTER_MIDNIGHT: Duration = Duration::from_mins(30);
/// Maximum number of findings in one message.
const LISTED: usize = 100;

/// The daily evaluation.
pub struct DailySuspects {
    administration: Arc<Administration>,
    applications: MetricFamily<Gauge, Suspicion>,
    tells_operator: bool,
    clock: Clock,
    /// The first day that has not been evaluated.
    judged_before: Mutex<Option<Day>>,
}

impl DailySuspects {
    /// Evaluates the evidence that `administration` reads.
    pub fn new(
        administration: Arc<Administration>,
        registry: &MetricsRegistry,
        tells_operator: bool,
        clock: Clock,
    ) -> Self {
        let applications = registry.gauges("scoregate_suspects");
        let judged_before = Mutex::default();
        Self {
            administration,
            applications,
            tells_operator,
            clock,
            judged_before,
        }
    }

    /// Evaluates the most recent complete days, once a day, if this gateway `is_chosen` from the fleet. On other
    /// gateways the metric is 0. Called every minute.
    pub async fn judge(&self, is_chosen: bool) {
        let before = self.clock.now().wall.minus(AFTER_MIDNIGHT).day();
        let mut judged_before = self.judged_before.lock().await;
        if !is_chosen {
            *judged_before = None;
            self.count(&[]);
        } else if *judged_before != Some(before) {
            match self.judge_before(before).await {
                Ok(()) => *judged_before = Some(before),
                Err(problem) => {
                    tracing::warn!(
                        reason = problem.error,
                        "cannot evaluate suspects for recent days; will retry"
                    );
                }
            }
        }
    }

    async fn judge_before(&self, before: Day) -> CommandResult<()> {
        let [first, last] = [SUSPECT_DAYS, 1].map(|days| before.number().saturating_sub(days));
        let reports = &self.administration.reports;
        let last = Day::from_number(last);
        let view = reports.judged(Day::from_number(first), last).await?;
        if self.tells_operator && !view.suspects.is_empty() {
            let now = self.clock.now().wall;
            let message = NewMail::to_operator("suspects", &last.to_string(), &data(&view), now);
            reports.store().queue_once(vec![message]).await?;
        }
        self.count(&view.suspects);
        Ok(())
    }

    /// Sets the metric to the number of applications for each suspicion.
    fn count(&self, suspects: &[SuspectView]) {
        for suspicion in Suspicion::ALL {
            let found = suspects
                .iter()
                .filter(|suspect| suspect.suspicion == suspicion.word());
            let applications: BTreeSet<&str> =
                found.map(|suspect| suspect.application.as_str()).collect();
            if let Some(gauge) = self.applications.of(suspicion) {
                gauge.set(number_value(applications.len() as u64));
            }
        }
    }
}

/// The data of a message, with at most `LISTED` findings.
fn data(
    SuspectsView {
        from,
        to,
        applications,
        suspects,
    }: &SuspectsView,
) -> Value {
    let listed: Vec<_> = suspects.iter().take(LISTED).collect();
    json!({"from": from, "to": to, "applications": applications, "findings": suspects.len(), "suspects": listed})
}
