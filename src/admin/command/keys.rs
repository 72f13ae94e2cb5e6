//! Commands on applications and their keys: `scoregate keys`.

use std::time::Duration;

use clap::{ArgGroup, Args, Subcommand};
use serde::{Deserialize, Serialize};
use serde_json::{json, value::RawValue};

use crate::{
    admin::{
        command_problem::{CommandProblem, CommandResult},
        fleet::FleetReports,
        key_lines::read_json,
        view::{ApplicationView, ExportView, ImportView},
    },
    registry::{
        BadField, DescriptionChange, FieldChange, ImportedKey, IssuedKey, KeyDetails,
        NewApplication, Registrar, RegistrarError, given,
    },
};
use scoregate_base::clock::{Day, Wall};
use scoregate_base::{keys::ApplicationId, limits::OwnLimits, secret::Secret};
use scoregate_store::{AuditQuery, Description, REQUEST_DAYS_KEPT, StoredApplication};

use super::attachments::{OwnerAttachment, owner_address};
use super::limit_options::LimitOptions;
use super::limits::{MAX_BATCH, default_limit};

const DEFAULT_OVERLAP_HOURS: u32 = 24;
const DEFAULT_REQUEST_DAYS: u32 = 30;

/// A command on applications and their keys.
#[derive(Clone, Debug, Subcommand, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum KeysCommand {
    /// Create an application with its first key, and print the key.
    #[command(
        after_help = "Examples:\n  scoregate keys create --name 'Weather site' --tier pro --data-dir DIR\n  \
        scoregate keys create --name 'Weather site' --tier pro --day 50000 --data-dir DIR\n\n\
        Works before the first start of the server: a missing store is created."
    )]
    Create(NewKey),
    /// List applications.
    #[command(after_help = "Example:\n  scoregate keys list --data-dir DIR --json")]
    List {
        /// Continue after this application.
        #[arg(long, value_name = "APP")]
        after: Option<ApplicationId>,
        /// Maximum number of rows.
        #[arg(long, default_value_t = default_limit(), value_name = "N")]
        #[serde(default = "default_limit")]
        limit: usize,
    },
    /// Show one application and its keys.
    #[command(
        after_help = "Examples:\n  scoregate keys show app_0123456789a --data-dir DIR\n  \
        scoregate keys show app_0123456789a --usage --data-dir DIR"
    )]
    Show {
        /// Application id, such as `app_0123456789a`.
        id: ApplicationId,
        /// Also show today's usage; requires a running server.
        #[arg(long)]
        #[serde(skip)]
        usage: bool,
    },
    /// Create a new key for an application. Older keys expire after the overlap, or are revoked if there is none; all keys
    /// share the quota.
    #[command(
        after_help = "Example:\n  scoregate keys rotate app_0123456789a --overlap-hours 24 --data-dir DIR"
    )]
    Rotate(KeyRotation),
    /// Revoke the keys of an application immediately.
    #[command(
        after_help = "Examples:\n  scoregate keys revoke app_0123456789a --data-dir DIR\n  \
        scoregate keys revoke app_0123456789a --key sg_live_abcd --data-dir DIR"
    )]
    Revoke {
        /// Application id.
        id: ApplicationId,
        /// Only the key with this prefix or SHA-256.
        #[arg(long, value_name = "PREFIX")]
        key: Option<String>,
    },
    /// Move an application to another tier immediately. Today's usage counts against the new quota.
    #[command(
        after_help = "Example:\n  scoregate keys set-tier app_0123456789a teams --data-dir DIR"
    )]
    SetTier {
        /// Application id.
        id: ApplicationId,
        /// The tier.
        tier: String,
    },
    /// Set or remove individual limits of an application immediately. Today's usage counts against the new quota.
    #[command(after_help = "Examples:\n  \
        scoregate keys set-limits app_0123456789a --day 50000 --data-dir DIR\n  \
        scoregate keys set-limits app_0123456789a --month 1000000 --month-anchor 15 --data-dir DIR\n  \
        scoregate keys set-limits app_0123456789a --minute none --day none --data-dir DIR\n  \
        scoregate keys set-limits app_0123456789a --minute 10 --until 2026-12-10T00:00:00Z --data-dir DIR")]
    SetLimits(LimitChange),
    /// Set the expiry of an application's keys.
    #[command(after_help = "Examples:\n  \
        scoregate keys set-expiry app_0123456789a --at 2027-01-31T00:00:00Z --data-dir DIR\n  \
        scoregate keys set-expiry app_0123456789a --key sg_live_abcd --at never --data-dir DIR\n\n\
        Without --key, the command applies to all valid keys. If there are several, it cannot extend any of them, because\n\
        a rotation may be about to retire one. An expired key can be extended only with --key, a revoked key never.")]
    SetExpiry(ExpiryChange),
    /// Change the name, website, contact or note of an application.
    #[command(after_help = "Examples:\n  \
        scoregate keys update app_0123456789a --contact ops@example.org --data-dir DIR\n  \
        scoregate keys update app_0123456789a --note '' --data-dir DIR\n\n\
        An empty string removes a website, a contact or a note. Omitted fields stay unchanged.")]
    Update(ApplicationUpdate),
    /// Attach an application to an account. An address without an account gets an invitation.
    #[command(after_help = "Examples:\n  \
        scoregate keys attach app_0123456789a ann@example.org --data-dir DIR\n  \
        scoregate keys attach app_0123456789a bob@example.com --move --data-dir DIR\n  \
        scoregate keys attach --from-contact --dry-run --data-dir DIR\n\n\
        The link of an invitation works once, for 7 days. Until it is accepted, mail about the application goes to the address.")]
    Attach(OwnerAttachment),
    /// Detach an application from its account, which is notified by email. Its keys still work.
    #[command(after_help = "Example:\n  scoregate keys detach app_0123456789a --data-dir DIR")]
    Detach {
        /// Application id.
        id: ApplicationId,
    },
    /// Show the requests of an application by day, endpoint and outcome.
    #[command(
        after_help = "Examples:\n  scoregate keys requests app_0123456789a --data-dir DIR\n  \
        scoregate keys requests app_0123456789a --days 7 --json --data-dir DIR\n\n\
        All gateways count requests with a valid key, and record the counts every minute. Days without\n\
        requests are not shown."
    )]
    Requests {
        /// Application id.
        id: ApplicationId,
        /// Number of days.
        #[arg(long, default_value_t = DEFAULT_REQUEST_DAYS, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(REQUEST_DAYS_KEPT)))]
        #[serde(default = "default_request_days")]
        days: u32,
        /// The last day, such as 2027-01-31; default: today.
        #[arg(long, value_name = "DAY")]
        to: Option<Day>,
    },
    /// Show the audit trail, newest change first.
    #[command(after_help = "Examples:\n  scoregate keys audit --data-dir DIR\n  \
        scoregate keys audit app_0123456789a --limit 20 --data-dir DIR")]
    Audit {
        /// Only changes to this application.
        id: Option<ApplicationId>,
        /// Only changes before this number.
        #[arg(long, value_name = "N")]
        before: Option<u64>,
        /// Maximum number of rows.
        #[arg(long, default_value_t = default_limit(), value_name = "N")]
        #[serde(default = "default_limit")]
        limit: usize,
    },
    /// Import a batch of keys. The command line reads them from a file.
    #[command(skip)]
    Import {
        /// Each line is parsed separately, so that an invalid line does not affect the others.
        keys: Vec<Box<RawValue>>,
    },
    /// Export the keys of a page of applications. The command line writes them to a file.
    #[command(skip)]
    Export {
        /// Continue after this application.
        after: Option<ApplicationId>,
        /// Maximum number of applications.
        #[serde(default = "default_limit")]
        limit: usize,
    },
}

/// A new application with its first key.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewKey {
    /// Display name.
    #[arg(long)]
    name: String,
    /// Tier: free, pro, developer, teams, enterprise, or a configured tier.
    #[arg(long)]
    tier: String,
    /// Individual limits of the application.
    #[command(flatten)]
    #[serde(default)]
    limits: LimitOptions<false>,
    /// Website of the application; begins with `https://` or `http://`.
    #[arg(long)]
    url: Option<String>,
    /// Contact of the owner.
    #[arg(long)]
    contact: Option<String>,
    /// Email address of the owner. An address without an account gets an invitation.
    #[arg(long, value_name = "EMAIL")]
    owner: Option<String>,
    /// Free text.
    #[arg(long)]
    note: Option<String>,
    /// Expiry of the key, such as 2027-01-31T00:00:00Z.
    #[arg(long, value_name = "TIME")]
    expires_at: Option<Wall>,
    #[arg(skip)]
    #[serde(skip)]
    pub(super) issued: Option<Secret>,
}

/// A new key for an application, which replaces the older keys.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyRotation {
    /// Application id.
    id: ApplicationId,
    /// Hours for which the older keys stay valid; 0 revokes them.
    #[arg(long, default_value_t = DEFAULT_OVERLAP_HOURS, value_name = "HOURS")]
    #[serde(default = "default_overlap_hours")]
    overlap_hours: u32,
    /// Name of the new key, to distinguish it from other keys.
    #[arg(long, value_name = "NAME")]
    key_name: Option<String>,
    /// Expiry of the new key, such as 2027-01-31T00:00:00Z.
    #[arg(long, value_name = "TIME")]
    expires_at: Option<Wall>,
    #[arg(skip)]
    #[serde(skip)]
    pub(super) issued: Option<Secret>,
}

/// New limits of an application.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitChange {
    /// Application id.
    id: ApplicationId,
    /// The limits. Omitted limits are unchanged.
    #[command(flatten)]
    #[serde(default)]
    limits: LimitOptions<false>,
    /// Time at which the previous limits are restored. Without it, the new limits are permanent.
    #[arg(long, value_name = "TIME")]
    until: Option<Wall>,
}

/// A new expiry for an application's keys.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpiryChange {
    /// Application id.
    id: ApplicationId,
    /// Only the key with this prefix or SHA-256.
    #[arg(long, value_name = "PREFIX")]
    key: Option<String>,
    /// Expiry, such as 2027-01-31T00:00:00Z; `never` for none.
    #[arg(long, value_name = "TIME|never", value_parser = time_or_never)]
    #[serde(deserialize_with = "FieldChange::deserialize")]
    at: FieldChange<Wall>,
}

/// A new name or description of an application.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
#[command(group = ArgGroup::new("change").required(true).multiple(true))]
#[serde(deny_unknown_fields)]
pub struct ApplicationUpdate {
    /// Application id.
    id: ApplicationId,
    /// Display name.
    #[arg(long, group = "change")]
    name: Option<String>,
    /// Website of the application; begins with `https://` or `http://`.
    #[arg(long, group = "change")]
    #[serde(
        default,
        deserialize_with = "given",
        skip_serializing_if = "Option::is_none"
    )]
    url: Option<FieldChange<String>>,
    /// Contact of the owner.
    #[arg(long, group = "change")]
    #[serde(
        default,
        deserialize_with = "given",
        skip_serializing_if = "Option::is_none"
    )]
    contact: Option<FieldChange<String>>,
    /// Free text.
    #[arg(long, group = "change")]
    #[serde(
        default,
        deserialize_with = "given",
        skip_serializing_if = "Option::is_none"
    )]
    note: Option<FieldChange<String>>,
}

impl KeysCommand {
    pub(super) async fn perform(
        self,
        keys: &Registrar,
        reports: &FleetReports,
        actor: &str,
    ) -> CommandResult {
        match self {
            Self::Create(new) => create(keys, actor, new).await,
            Self::List { after, limit } => list(keys, after, limit).await,
            Self::Show { id, .. } => shown(keys, keys.show(id).await),
            Self::Rotate(rotation) => rotate(keys, actor, rotation).await,
            Self::Revoke { id, key } => revoke(keys, actor, id, key.as_deref()).await,
            Self::SetTier { id, tier } => set_tier(keys, actor, id, &tier).await,
            Self::SetLimits(change) => set_limits(keys, actor, change).await,
            Self::SetExpiry(change) => set_expiry(keys, actor, change).await,
            Self::Update(update) => describe(keys, actor, update).await,
            Self::Attach(attachment) => attachment.perform(keys, actor).await,
            Self::Detach { id } => detach(keys, actor, id).await,
            Self::Requests { id, days, to } => requests(reports, id, days, to).await,
            Self::Audit { id, before, limit } => audit(keys, id, before, limit).await,
            Self::Import { keys: lines } => import(keys, &lines, actor).await,
            Self::Export { after, limit } => export(keys, after, limit).await,
        }
    }
}

impl TryFrom<NewKey> for NewApplication {
    type Error = CommandProblem;

    fn try_from(new: NewKey) -> CommandResult<Self> {
        let owner = new.owner.map(|email| owner_address(&email, false));
        Ok(Self {
            name: new.name,
            tier: new.tier,
            own: new.limits.changes().over(OwnLimits::NONE),
            description: Description {
                url: new.url,
                contact: new.contact,
                note: new.note,
            },
            expires_at: new.expires_at,
            owner: owner.transpose()?,
            key: new.issued,
        })
    }
}

async fn create(keys: &Registrar, actor: &str, new: NewKey) -> CommandResult {
    issued(keys, keys.create(actor, new.try_into()?).await)
}

fn issued(keys: &Registrar, issued: Result<IssuedKey, RegistrarError>) -> CommandResult {
    let IssuedKey { application, key } = issued?;
    let application = ApplicationView::new(&application, keys);
    Ok(json!({ "key": key.expose(), "application": application }))
}

fn shown(
    keys: &Registrar,
    application: Result<StoredApplication, RegistrarError>,
) -> CommandResult {
    Ok(json!(ApplicationView::new(&application?, keys)))
}

async fn list(keys: &Registrar, after: Option<ApplicationId>, limit: usize) -> CommandResult {
    let page = keys.list(after, limit).await?;
    let views: Vec<_> = page
        .applications
        .iter()
        .map(|stored| ApplicationView::new(stored, keys))
        .collect();
    Ok(json!({ "applications": views, "skipped": page.skipped, "next": page.next }))
}

async fn rotate(keys: &Registrar, actor: &str, rotation: KeyRotation) -> CommandResult {
    let overlap = Duration::from_hours(rotation.overlap_hours.into());
    let details = KeyDetails {
        name: rotation.key_name,
        expires_at: rotation.expires_at,
        allowance: None,
        key: rotation.issued,
    };
    issued(
        keys,
        keys.rotate(actor, rotation.id, overlap, details).await,
    )
}

async fn revoke(
    keys: &Registrar,
    actor: &str,
    id: ApplicationId,
    key: Option<&str>,
) -> CommandResult {
    shown(keys, keys.revoke(actor, id, key).await)
}

async fn set_tier(keys: &Registrar, actor: &str, id: ApplicationId, tier: &str) -> CommandResult {
    shown(keys, keys.set_tier(actor, id, tier).await)
}

async fn set_limits(keys: &Registrar, actor: &str, change: LimitChange) -> CommandResult {
    let LimitChange { id, limits, until } = change;
    let changes = limits.needed()?;
    shown(keys, keys.set_limits(actor, id, changes, until).await)
}

async fn describe(keys: &Registrar, actor: &str, update: ApplicationUpdate) -> CommandResult {
    let change = DescriptionChange {
        name: update.name,
        url: update.url.unwrap_or_default(),
        contact: update.contact.unwrap_or_default(),
        note: update.note.unwrap_or_default(),
    };
    if change == DescriptionChange::default() {
        return Err(CommandProblem::bad(
            "set name, url, contact or note; null removes a url, a contact or a note",
        ));
    }
    shown(keys, keys.describe(actor, update.id, change).await)
}

async fn set_expiry(keys: &Registrar, actor: &str, change: ExpiryChange) -> CommandResult {
    let ExpiryChange { id, key, at } = change;
    let at = at.over(None);
    shown(keys, keys.set_expiry(actor, id, key.as_deref(), at).await)
}

async fn requests(
    reports: &FleetReports,
    id: ApplicationId,
    days: u32,
    to: Option<Day>,
) -> CommandResult {
    Ok(json!(reports.requests(id, days, to).await?))
}

async fn detach(keys: &Registrar, actor: &str, id: ApplicationId) -> CommandResult {
    shown(keys, keys.detach(actor, id).await)
}

async fn export(keys: &Registrar, after: Option<ApplicationId>, limit: usize) -> CommandResult {
    Ok(json!(ExportView::from(&keys.list(after, limit).await?)))
}

async fn audit(
    keys: &Registrar,
    application: Option<ApplicationId>,
    before: Option<u64>,
    limit: usize,
) -> CommandResult {
    let query = AuditQuery {
        application,
        owner: None,
        before,
        limit,
    };
    let (records, next) = keys.audit(query).await?;
    Ok(json!({ "records": records, "next": next }))
}

/// Imports the valid lines. The outcomes are in the order of the lines.
async fn import(keys: &Registrar, lines: &[Box<RawValue>], actor: &str) -> CommandResult {
    if lines.len() > MAX_BATCH {
        return Err(CommandProblem::bad(format!(
            "a batch has at most {MAX_BATCH} keys: send several batches"
        )));
    }
    let mut outcomes = Vec::with_capacity(lines.len());
    let mut readable = Vec::with_capacity(lines.len());
    for line in lines {
        outcomes.push(read_json(line.get()).map(|record| readable.push(record)));
    }
    let mut imported = keys.import(actor, readable).await?.into_iter();
    let outcomes: Vec<Result<ImportedKey, BadField>> = outcomes
        .into_iter()
        .filter_map(|read| match read {
            Ok(()) => imported.next(),
            Err(bad) => Some(Err(bad)),
        })
        .collect();
    Ok(json!(ImportView::new(&outcomes, keys.accepts_imported())))
}

const fn default_overlap_hours() -> u32 {
    DEFAULT_OVERLAP_HOURS
}

const fn default_request_days() -> u32 {
    DEFAULT_REQUEST_DAYS
}

fn time_or_never(text: &str) -> Result<FieldChange<Wall>, String> {
    match text {
        "never" => Ok(FieldChange::Remove),
        time => time
            .parse()
            .map(FieldChange::Set)
            .map_err(|bad| format!("{bad}, or `never`")),
    }
}
