//! Exports everything that is stored about an account.

use serde_json::{Value, json};

use crate::admin::{
    administration::Administration, command_problem::CommandResult, suspects::EvidenceDayView,
    view::ApplicationView,
};
use scoregate_base::keys::OwnerId;
use scoregate_store::{AuditQuery, AuditRecord};

/// Maximum number of exported audit records of an account, and of each of its applications.
const RECORDS: usize = 1_000;

/// The account, its webhooks without secrets, and its applications, each with its requests, evidence of use and newest
/// audit records.
pub async fn exported(administration: &Administration, id: OwnerId) -> CommandResult {
    let Administration {
        registrar, reports, ..
    } = administration;
    let owner = administration.owners.show(id).await?;
    let of_owner = AuditQuery {
        owner: Some(id),
        ..AuditQuery::default()
    };
    let mut records = audit(administration, of_owner).await?;
    let mut applications = Vec::new();
    let mut requests = Vec::new();
    let mut evidence = Vec::new();
    for id in &owner.applications {
        let stored = registrar.show(*id).await?;
        applications.push(json!(ApplicationView::new(&stored, registrar)));
        requests.extend(reports.kept_requests(*id).await?.totals);
        let days = reports.kept_evidence(*id).await?;
        let days: Vec<EvidenceDayView> = days.iter().map(Into::into).collect();
        evidence.push(json!({ "application": id, "days": days }));
        let of_application = AuditQuery {
            application: Some(*id),
            ..AuditQuery::default()
        };
        records.extend(audit(administration, of_application).await?);
    }
    Ok(json!({
        "account": owner,
        "webhooks": webhooks(administration, id).await?,
        "applications": applications,
        "requests": requests,
        "evidence": evidence,
        "audit": records,
    }))
}

async fn audit(
    administration: &Administration,
    query: AuditQuery,
) -> CommandResult<Vec<AuditRecord>> {
    let query = AuditQuery {
        limit: RECORDS,
        ..query
    };
    Ok(administration.registrar.audit(query).await?.0)
}

async fn webhooks(administration: &Administration, id: OwnerId) -> CommandResult<Vec<Value>> {
    let stored = administration.reports.store().webhooks(id.to_string());
    let webhooks = stored.await?.into_iter();
    Ok(webhooks
        .map(|webhook| json!({ "url": webhook.url, "verified_at": webhook.verified_at }))
        .collect())
}
