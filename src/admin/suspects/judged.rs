//! `GET /v1/suspects/list` and `GET /v1/suspects/show`: applications whose use looks like misuse, and the evidence
//! about one application. The evidence is read from the store, where all gateways merge it. A finding is a reason to
//! review an application; no action follows automatically.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use scoregate_base::{
    clock::Day,
    evidence::{
        DayEvidence, EVIDENCE_DAYS_KEPT, HourSummary,
        judgement::{Advice, CallerDays, Figure, Finding, advice, judge},
    },
    keys::{ApplicationId, OwnerId},
};
use scoregate_store::{DayRecord, EvidenceQuery, OwnerQuery, StoreError, StoredApplication};

use crate::admin::{
    command_problem::{CommandProblem, CommandResult},
    fleet::FleetReports,
};

/// Default number of days that are evaluated.
pub const SUSPECT_DAYS: u32 = 7;
/// Number of rows per store call.
const PAGE: usize = 1_000;

/// The suspects of some days.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SuspectsView {
    /// The first day.
    pub from: String,
    /// The last day. An hour is included a few minutes after its end.
    pub to: String,
    /// Number of applications with requests on these days.
    pub applications: usize,
    /// The findings, by application.
    pub suspects: Vec<SuspectView>,
}

/// A finding.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SuspectView {
    /// The application.
    pub application: String,
    /// The application's name.
    pub name: String,
    /// The application's tier.
    pub tier: String,
    /// The kind of misuse.
    pub suspicion: String,
    /// The rule that fired.
    pub rule: String,
    /// The finding in plain English.
    pub sentence: String,
    /// The other applications in the same group.
    pub others: Vec<String>,
    /// The figures that the rule compared. Shares are from 0 to 1.
    pub figures: Vec<Value>,
    /// Number of days on which the rule fired.
    pub days: usize,
    /// Days with requests.
    pub of_days: usize,
}

/// The evidence about an application.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EvidenceView {
    /// The application.
    pub application: String,
    /// The application's name.
    pub name: String,
    /// The application's tier.
    pub tier: String,
    /// The days with requests, oldest first.
    pub days: Vec<EvidenceDayView>,
    /// The findings about the application.
    pub suspects: Vec<SuspectView>,
    /// Advice that the owner gets.
    pub advice: Vec<String>,
}

/// A day of evidence.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EvidenceDayView {
    /// The day.
    pub day: String,
    /// Documents delivered.
    pub delivered: u32,
    /// 304 responses.
    pub unchanged: u32,
    /// Estimated number of delivered documents that had already been delivered in the same hour.
    pub repeated: u32,
    /// Requests refused by a limit.
    pub limited: u32,
    /// Size of the delivered documents.
    pub bytes: u64,
    /// Share of the models that were requested, from 0 to 1.
    pub models: f64,
    /// Estimated number of networks. Null if there are too many.
    pub networks: Option<u32>,
    /// Estimated number of products in user agents. Null if there are too many.
    pub products: Option<u32>,
    /// Maximum number of networks within ten minutes.
    pub concurrent_networks: u8,
    /// The hours, from 00:00 UTC.
    pub hours: Vec<EvidenceHourView>,
}

/// An hour of evidence.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EvidenceHourView {
    /// Number of requests for documents, accurate to within 5 %.
    pub requests: u32,
    /// Share of the models that were requested, from 0 to 1.
    pub models: f64,
    /// Number of networks, rounded down.
    pub networks: u8,
    /// Number of products in user agents, rounded down.
    pub products: u8,
    /// The minute in which the first model was requested.
    pub first_minute: Option<u8>,
}

impl FleetReports {
    /// The suspects of the most recent days.
    pub(in crate::admin) async fn suspects(
        &self,
        days: Option<u32>,
    ) -> CommandResult<SuspectsView> {
        let days = days.unwrap_or(SUSPECT_DAYS);
        if !(1..=EVIDENCE_DAYS_KEPT).contains(&days) {
            return Err(CommandProblem::bad(format!(
                "the number of days must be from 1 to {EVIDENCE_DAYS_KEPT}; evidence is kept for that many days"
            )));
        }
        let (first, last) = self.last_days(days);
        self.judged(first, last).await
    }

    /// The suspects from `first` to `last`.
    pub(super) async fn judged(&self, first: Day, last: Day) -> CommandResult<SuspectsView> {
        let (callers, names) = self.callers(first, last).await?;
        let applications = callers.len();
        let rules = *self.rules();
        // With many applications this takes some time, and the side port must still answer in the meantime.
        let judged = tokio::task::spawn_blocking(move || judge(&callers, &rules)).await;
        let suspects = judged.map_err(|_| {
            CommandProblem::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "the evaluation failed; see the log",
            )
        })?;
        Ok(SuspectsView {
            from: first.to_string(),
            to: last.to_string(),
            applications,
            suspects: suspects
                .iter()
                .map(|finding| SuspectView::new(finding, &names))
                .collect(),
        })
    }

    /// The evidence about an application.
    pub(in crate::admin) async fn evidence(
        &self,
        id: ApplicationId,
    ) -> CommandResult<EvidenceView> {
        let StoredApplication { name, tier, .. } = self.registrar().show(id).await?;
        let records = self.kept_evidence(id).await?;
        let recent = self.last_days(SUSPECT_DAYS).0;
        let advised: Vec<DayEvidence> = records
            .iter()
            .filter(|record| record.day >= recent)
            .map(|record| record.evidence.clone())
            .collect();
        let suspects = self.suspects(None).await?.suspects;
        Ok(EvidenceView {
            application: id.to_string(),
            name,
            tier,
            days: records.iter().map(EvidenceDayView::from).collect(),
            suspects: suspects
                .into_iter()
                .filter(|suspect| suspect.application == id.to_string())
                .collect(),
            advice: advice(&advised).into_iter().map(Advice::sentence).collect(),
        })
    }

    /// All stored evidence of an application, by day.
    pub(in crate::admin) async fn kept_evidence(
        &self,
        application: ApplicationId,
    ) -> Result<Vec<DayRecord>, StoreError> {
        let (first, last) = self.last_days(EVIDENCE_DAYS_KEPT);
        self.store()
            .evidence(EvidenceQuery {
                application: Some(application),
                first,
                last,
            })
            .await
    }

    /// All applications with evidence, and their names.
    async fn callers(
        &self,
        first: Day,
        last: Day,
    ) -> Result<(Vec<CallerDays>, HashMap<ApplicationId, String>), StoreError> {
        let records = self
            .store()
            .evidence(EvidenceQuery {
                application: None,
                first,
                last,
            })
            .await?;
        let mut days: BTreeMap<ApplicationId, Vec<(Day, DayEvidence)>> = BTreeMap::new();
        for record in records {
            days.entry(record.application)
                .or_default()
                .push((record.day, record.evidence));
        }
        let owners = self.owners().await?;
        let ids = days.keys().copied().collect::<Vec<_>>();
        let mut callers = Vec::new();
        let mut names = HashMap::new();
        for ids in ids.chunks(PAGE) {
            for StoredApplication { id, name, tier, .. } in
                self.registrar().find(ids.to_vec(), last).await?
            {
                let owner = owners.get(&id).copied();
                let days = days.remove(&id).unwrap_or_default();
                callers.push(CallerDays {
                    application: id,
                    owner,
                    tier: Arc::from(tier),
                    days,
                });
                names.insert(id, name);
            }
        }
        Ok((callers, names))
    }

    async fn owners(&self) -> Result<HashMap<ApplicationId, OwnerId>, StoreError> {
        let mut owners = HashMap::new();
        let mut after = None;
        loop {
            let query = OwnerQuery {
                after,
                limit: PAGE,
                ..OwnerQuery::default()
            };
            let page = self.store().owners(query).await?;
            let Some(last) = page.last() else {
                return Ok(owners);
            };
            after = Some(last.id);
            for owner in page {
                owners.extend(
                    owner
                        .applications
                        .into_iter()
                        .map(|application| (application, owner.id)),
                );
            }
        }
    }
}

impl SuspectView {
    fn new(finding: &Finding, names: &HashMap<ApplicationId, String>) -> Self {
        Self {
            application: finding.application.to_string(),
            name: names.get(&finding.application).cloned().unwrap_or_default(),
            tier: finding.tier.to_string(),
            suspicion: finding.suspicion.word().into(),
            rule: finding.rule.word().into(),
            sentence: finding.sentence(),
            others: finding.others.iter().map(ToString::to_string).collect(),
            figures: finding
                .figures
                .iter()
                .map(|figure: &Figure| {
                    json!({
                        "name": figure.kind.name(),
                        "value": figure.value,
                        // The rule fires at this value.
                        "threshold": figure.threshold,
                        // The median of the callers of the same tier.
                        "median": figure.median,
                    })
                })
                .collect(),
            days: finding.days,
            of_days: finding.of_days,
        }
    }
}

impl From<&DayRecord> for EvidenceDayView {
    fn from(DayRecord { day, evidence, .. }: &DayRecord) -> Self {
        Self {
            day: day.to_string(),
            delivered: evidence.counts.delivered,
            unchanged: evidence.counts.unchanged,
            repeated: evidence.repeated,
            limited: evidence.counts.limited,
            bytes: evidence.counts.bytes,
            models: evidence.share(),
            networks: evidence.networks.distinct(),
            products: evidence.agents.distinct(),
            concurrent_networks: evidence.concurrent,
            hours: evidence
                .hours
                .iter()
                .map(|hour: &HourSummary| EvidenceHourView {
                    requests: hour.requests(),
                    models: evidence.share_of_hour(hour),
                    networks: hour.networks,
                    products: hour.agents,
                    first_minute: hour.first_minute(),
                })
                .collect(),
        }
    }
}
