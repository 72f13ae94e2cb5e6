//! Commands on accounts of owners: `GET /v1/accounts`, `GET /v1/accounts/ID`, `GET /v1/accounts/ID/export`,
//! `POST /v1/accounts/ID/suspend`, `resume`, `tier` and `delete`, `POST /v1/accounts/contact`.

use http::Method;
use serde_json::json;

use crate::admin::paths::ACCOUNTS;
use crate::admin::query::{QueryPairs, parsed_id};
use crate::admin::suspects::EvidenceDayView;
use crate::admin::view::ApplicationView;
use crate::registry::{ContactRequest, FieldChange};
use crate::site::is_address_fragment;
use scoregate_base::keys::OwnerId;
use scoregate_store::{AuditQuery, OwnerQuery, StoredWebhook};

use super::bodies::{NoBody, OwnerTierBody, read, to_json};
use super::contact;
use crate::admin::administration::Administration;
use crate::admin::command_problem::{CommandProblem, CommandResult};

const DEFAULT_LIMIT: usize = 100;
/// Audit records of an application in the export of an account.
const EXPORTED_RECORDS: usize = 1_000;

/// A command on accounts of owners.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "each is a command of `scoregate accounts`, documented in its help"
)]
pub enum OwnerCommand {
    List(OwnerQuery),
    Show(OwnerId),
    Export(OwnerId),
    Suspend(OwnerId),
    Resume(OwnerId),
    SetTier {
        owner: OwnerId,
        tier: Option<String>,
    },
    Delete(OwnerId),
    Contact(ContactRequest),
}

impl OwnerCommand {
    /// Converts the command to method, target and body.
    pub(super) fn to_request(&self) -> (Method, String, Vec<u8>) {
        let get = |target: String| (Method::GET, target, Vec::new());
        let post = |id: &OwnerId, action: &str| {
            (
                Method::POST,
                format!("{ACCOUNTS}/{id}/{action}"),
                to_json(&NoBody {}),
            )
        };
        match self {
            Self::List(OwnerQuery {
                email,
                application,
                after,
                limit,
            }) => {
                let part = |name, text: Option<String>| text.map(|text| format!("&{name}={text}"));
                let parts = [
                    part("email", email.as_deref().map(encoded)),
                    part("application", application.map(|id| id.to_string())),
                    part("after", after.map(|id| id.to_string())),
                ];
                let parts: String = parts.into_iter().flatten().collect();
                get(format!("{ACCOUNTS}?most={limit}{parts}"))
            }
            Self::Show(id) => get(format!("{ACCOUNTS}/{id}")),
            Self::Export(id) => get(format!("{ACCOUNTS}/{id}/export")),
            Self::Suspend(id) => post(id, "suspend"),
            Self::Resume(id) => post(id, "resume"),
            Self::Delete(id) => post(id, "delete"),
            Self::Contact(request) => (
                Method::POST,
                format!("{ACCOUNTS}/contact"),
                contact::to_body(request),
            ),
            Self::SetTier { owner, tier } => {
                let tier = tier.clone().map_or(FieldChange::Remove, FieldChange::Set);
                (
                    Method::POST,
                    format!("{ACCOUNTS}/{owner}/tier"),
                    to_json(&OwnerTierBody { tier }),
                )
            }
        }
    }

    /// Parses the command of a request for a path below `/v1/accounts`.
    pub(super) fn from_request(
        method: &Method,
        below: &[&str],
        query: Option<&str>,
        body: &[u8],
    ) -> CommandResult<Self> {
        match (method.as_str(), below) {
            ("GET", []) => Self::list(query),
            ("GET", [id]) => Ok(Self::Show(parsed_id(id)?)),
            ("GET", [id, "export"]) => Ok(Self::Export(parsed_id(id)?)),
            ("POST", ["contact"]) => Ok(Self::Contact(contact::from_body(body)?)),
            ("POST", [id, "tier"]) => {
                let owner = parsed_id(id)?;
                let OwnerTierBody { tier } = read(body)?;
                let tier = match tier {
                    FieldChange::Set(tier) => Some(tier),
                    FieldChange::Remove => None,
                    FieldChange::Keep => {
                        return Err(CommandProblem::bad(
                            "send tier: a name, or null for the default",
                        ));
                    }
                };
                Ok(Self::SetTier { owner, tier })
            }
            ("POST", [id, action @ ("suspend" | "resume" | "delete")]) => {
                let id = parsed_id(id)?;
                let NoBody {} = read(body)?;
                Ok(match *action {
                    "suspend" => Self::Suspend(id),
                    "resume" => Self::Resume(id),
                    _ => Self::Delete(id),
                })
            }
            _ => Err(CommandProblem::not_found()),
        }
    }

    fn list(query: Option<&str>) -> CommandResult<Self> {
        let pairs = QueryPairs::read(query, &["email", "application", "after", "most"])?;
        let email = pairs.get("email").map(decoded);
        if email
            .as_ref()
            .is_some_and(|text| !is_address_fragment(text))
        {
            return Err(CommandProblem::bad(format!("email: {NOT_SEARCHABLE}")));
        }
        Ok(Self::List(OwnerQuery {
            email,
            application: pairs.id("application")?,
            after: pairs.id("after")?,
            limit: pairs.number("most")?.unwrap_or(DEFAULT_LIMIT),
        }))
    }

    /// Performs the command.
    pub(super) async fn perform(
        self,
        administration: &Administration,
        actor: &str,
    ) -> CommandResult {
        let owners = &administration.owners;
        let owner = match self {
            Self::List(query) => {
                let (owners, next) = owners.list(query).await?;
                return Ok(json!({ "accounts": owners, "next": next }));
            }
            Self::Export(id) => return exported(administration, id).await,
            Self::Contact(request) => {
                return Ok(json!(administration.mail.send(actor, request).await?));
            }
            Self::Show(id) => owners.show(id).await?,
            Self::Suspend(id) => owners.suspend(actor, id).await?,
            Self::Resume(id) => owners.resume(actor, id).await?,
            Self::SetTier { owner, tier } => owners.set_tier(actor, owner, tier).await?,
            Self::Delete(id) => owners.delete(actor, id).await?,
        };
        Ok(json!(owner))
    }
}

/// The error for a text that cannot be a part of an address.
pub const NOT_SEARCHABLE: &str = "write a part of an e-mail address; addresses have letters, digits and @ . ! # $ % & ' * + - / = ? ^ _ ` { | } ~";

fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// Decodes a value. A plus sign is one: addresses contain no spaces.
fn decoded(value: &str) -> String {
    let pair = format!("={}", value.replace('+', "%2B"));
    form_urlencoded::parse(pair.as_bytes())
        .map(|(_, value)| value.into_owned())
        .collect()
}

/// The account, its webhooks without secrets, the applications, and the requests, the evidence of use and the newest audit records of each.
async fn exported(administration: &Administration, id: OwnerId) -> CommandResult {
    let Administration {
        registrar, reports, ..
    } = administration;
    let owner = administration.owners.show(id).await?;
    let query = AuditQuery {
        owner: Some(id),
        limit: EXPORTED_RECORDS,
        ..AuditQuery::default()
    };
    let (mut records, _) = registrar.audit(query).await?;
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
        let query = AuditQuery {
            application: Some(*id),
            limit: EXPORTED_RECORDS,
            ..AuditQuery::default()
        };
        let (found, _) = registrar.audit(query).await?;
        records.extend(found);
    }
    let webhook =
        |webhook: StoredWebhook| json!({ "url": webhook.url, "verified_at": webhook.verified_at });
    let webhooks = reports
        .store()
        .webhooks(id.to_string())
        .await?
        .into_iter()
        .map(webhook);
    Ok(json!({
        "account": owner,
        "webhooks": webhooks.collect::<Vec<_>>(),
        "applications": applications,
        "requests": requests,
        "evidence": evidence,
        "audit": records,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::ContactSelection;

    fn parsed(method: &Method, target: &str, body: &[u8]) -> CommandResult<OwnerCommand> {
        let (path, query) = target
            .split_once('?')
            .map_or((target, None), |(path, query)| (path, Some(query)));
        let below: Vec<&str> = path
            .trim_start_matches(ACCOUNTS)
            .split('/')
            .skip(1)
            .collect();
        OwnerCommand::from_request(method, &below, query, body)
    }

    fn contacting(selection: ContactSelection) -> OwnerCommand {
        let subject = "Über".into();
        let message = "one\n\"two\"".into();
        let is_dry_run = selection == ContactSelection::All;
        OwnerCommand::Contact(ContactRequest {
            selection,
            subject,
            message,
            is_dry_run,
        })
    }

    #[test]
    fn an_account_command_survives_the_conversion_to_a_request_and_back() {
        let id: OwnerId = "own_0123456789a".parse().unwrap();
        let query = OwnerQuery {
            limit: 7,
            ..OwnerQuery::default()
        };
        let narrow = OwnerQuery {
            email: Some("ann+x@example.org".into()),
            application: Some("app_0123456789a".parse().unwrap()),
            after: Some(id),
            limit: 3,
        };
        let unusual = Some("o'!#$%&'*+-/=?^_`{|}~brien@".into());
        let unusual = OwnerQuery {
            email: unusual,
            limit: 3,
            ..OwnerQuery::default()
        };
        for command in [
            OwnerCommand::List(query),
            OwnerCommand::List(narrow),
            OwnerCommand::List(unusual),
            OwnerCommand::Show(id),
            OwnerCommand::Export(id),
            OwnerCommand::Suspend(id),
            OwnerCommand::Resume(id),
            OwnerCommand::SetTier {
                owner: id,
                tier: Some("pro".into()),
            },
            OwnerCommand::SetTier {
                owner: id,
                tier: None,
            },
            OwnerCommand::Delete(id),
            contacting(ContactSelection::Applications(vec![
                "app_0123456789a".parse().unwrap(),
            ])),
            contacting(ContactSelection::Tier("pro".into())),
            contacting(ContactSelection::Accounts(vec![id, id])),
            contacting(ContactSelection::All),
        ] {
            let (method, target, body) = command.to_request();
            assert_eq!(parsed(&method, &target, &body), Ok(command));
        }
    }

    #[test]
    fn an_unknown_account_command_is_refused() {
        for (method, below, body, status) in [
            (Method::POST, "", "{}", 404),
            (Method::GET, "/app_0123456789a", "", 400),
            (Method::GET, "/own_0123456789a/suspend", "", 404),
            (Method::DELETE, "/own_0123456789a", "", 404),
            (Method::POST, "/own_0123456789a/suspend", "", 400),
            (
                Method::POST,
                "/own_0123456789a/delete",
                r#"{"force":true}"#,
                400,
            ),
            (Method::POST, "/own_0123456789a/tier", "{}", 400),
            (Method::POST, "/own_0123456789a/tier", r#"{"tier":7}"#, 400),
            (Method::POST, "/own_0123456789a/elevate", "{}", 404),
            (Method::GET, "/contact", "", 400),
            (
                Method::POST,
                "/contact",
                r#"{"subject":"s","message":"m"}"#,
                400,
            ),
            (
                Method::POST,
                "/contact",
                r#"{"subject":"s","message":"m","all":false}"#,
                400,
            ),
            (
                Method::POST,
                "/contact",
                r#"{"subject":"s","message":"m","all":true,"tier":"pro"}"#,
                400,
            ),
            (
                Method::POST,
                "/contact",
                r#"{"subject":"s","message":"m","accounts":[]}"#,
                400,
            ),
            (
                Method::POST,
                "/contact",
                r#"{"subject":"s","message":"m","accounts":["app_0123456789a"]}"#,
                400,
            ),
            (
                Method::POST,
                "/contact",
                r#"{"message":"m","all":true}"#,
                400,
            ),
            (Method::GET, "?email=a%20b", "", 400),
            (Method::GET, "?email=%ff", "", 400),
            (Method::GET, "?email=", "", 400),
            (Method::GET, "?mail=a", "", 400),
            (Method::GET, "?after=app_0123456789a", "", 400),
        ] {
            let refused =
                parsed(&method, &format!("{ACCOUNTS}{below}"), body.as_bytes()).unwrap_err();
            assert_eq!(
                refused.status, status,
                "{method} {below} {body}: {}",
                refused.error
            );
        }
    }
}
