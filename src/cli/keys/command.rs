//! The subcommands of `scoregate keys` with their help. Each is converted to one admin command.

use clap::{Args, Subcommand};

use crate::admin::{
    AdminCommand, ExpiryBody, LimitsBody, NewKey, RevokeBody, RotateBody, TierBody,
};
use crate::registry::{DescriptionChange, FieldChange};
use scoregate_base::keys::ApplicationId;
use scoregate_store::AuditQuery;

use super::requests_command::{self, RequestsArgs};

/// The description of an application.
#[derive(Debug, Args)]
pub(super) struct DescriptionArgs {
    /// Website of the application; begins with `https://` or `http://`.
    #[arg(long)]
    url: Option<String>,
    /// Contact of the owner.
    #[arg(long)]
    contact: Option<String>,
    /// Free text.
    #[arg(long)]
    note: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(super) enum KeysCommand {
    /// Create an application with its first key, and print the key.
    #[command(
        after_help = "Examples:\n  scoregate keys create --name 'Weather site' --tier pro --data-dir DIR\n  \
        scoregate keys create --name 'Weather site' --tier pro --day 50000 --data-dir DIR\n\n\
        Works before the first start of the server: a missing store is created."
    )]
    Create {
        /// Display name.
        #[arg(long)]
        name: String,
        /// Tier: free, pro, developer, teams, enterprise, or a configured one.
        #[arg(long)]
        tier: String,
        /// Requests per minute, instead of the tier's limit.
        #[arg(long, value_name = "N")]
        minute: Option<u32>,
        /// Requests per day, instead of the tier's quota.
        #[arg(long, value_name = "N")]
        day: Option<u32>,
        #[command(flatten)]
        description: DescriptionArgs,
        /// Expiry of the key, such as 2027-01-31T00:00:00Z.
        #[arg(long, value_name = "TIME")]
        expires_at: Option<String>,
    },
    /// List applications.
    #[command(after_help = "Example:\n  scoregate keys list --data-dir DIR --json")]
    List {
        /// Continue after this application.
        #[arg(long, value_name = "APP")]
        after: Option<ApplicationId>,
        /// Maximum number of rows.
        #[arg(long, default_value_t = 100, value_name = "N")]
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
        /// Show the usage of today as well; needs a running server.
        #[arg(long)]
        usage: bool,
    },
    /// Create a new key for an application. The older keys expire after the overlap, and are revoked without one; the quota is
    /// shared.
    #[command(
        after_help = "Example:\n  scoregate keys rotate app_0123456789a --overlap-hours 24 --data-dir DIR"
    )]
    Rotate {
        /// Application id.
        id: ApplicationId,
        /// Hours for which the older keys stay valid.
        #[arg(long, default_value_t = 24, value_name = "HOURS")]
        overlap_hours: u64,
        /// Name of the new key, to tell keys apart.
        #[arg(long, value_name = "NAME")]
        key_name: Option<String>,
        /// Expiry of the new key, such as 2027-01-31T00:00:00Z.
        #[arg(long, value_name = "TIME")]
        expires_at: Option<String>,
    },
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
        scoregate keys set-limits app_0123456789a --minute none --day none --data-dir DIR\n  \
        scoregate keys set-limits app_0123456789a --minute 10 --until 2026-12-10T00:00:00Z --data-dir DIR")]
    SetLimits {
        /// Application id.
        id: ApplicationId,
        /// Requests per minute; `none` for the tier's limit. Unchanged if left out.
        #[arg(long, value_name = "N|none", value_parser = limit_or_none, required_unless_present = "day")]
        minute: Option<FieldChange<u32>>,
        /// Requests per day; `none` for the tier's quota. Unchanged if left out.
        #[arg(long, value_name = "N|none", value_parser = limit_or_none)]
        day: Option<FieldChange<u32>>,
        /// Restore the previous limits then. Limits that are set without it stay.
        #[arg(long, value_name = "TIME")]
        until: Option<String>,
    },
    /// Set the expiry of an application's keys.
    #[command(after_help = "Examples:\n  \
        scoregate keys set-expiry app_0123456789a --at 2027-01-31T00:00:00Z --data-dir DIR\n  \
        scoregate keys set-expiry app_0123456789a --key sg_live_abcd --at never --data-dir DIR\n\n\
        Without --key it applies to all valid keys, and cannot extend one if there are several, since one may be expiring\n\
        after a rotation. An expired key can be extended with --key only, a revoked key never.")]
    SetExpiry {
        /// Application id.
        id: ApplicationId,
        /// Only the key with this prefix or SHA-256.
        #[arg(long, value_name = "PREFIX")]
        key: Option<String>,
        /// Expiry, such as 2027-01-31T00:00:00Z; `never` for none.
        #[arg(long, value_name = "TIME|never")]
        at: String,
    },
    /// Change the name, website, contact or note of an application.
    #[command(after_help = "Examples:\n  \
        scoregate keys update app_0123456789a --contact ops@example.org --data-dir DIR\n  \
        scoregate keys update app_0123456789a --note '' --data-dir DIR\n\n\
        An empty string removes a website, a contact or a note. Fields that are left out stay unchanged.")]
    Update {
        /// Application id.
        id: ApplicationId,
        /// Display name.
        #[arg(long, required_unless_present = "DescriptionArgs")]
        name: Option<String>,
        #[command(flatten)]
        description: DescriptionArgs,
    },
    /// Show the requests of an application by day, endpoint and outcome.
    #[command(after_help = requests_command::AFTER_HELP)]
    Requests(RequestsArgs),
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
        #[arg(long, default_value_t = 100, value_name = "N")]
        limit: usize,
    },
}

impl KeysCommand {
    /// The application whose usage is requested too.
    pub(super) fn usage_id(&self) -> Option<ApplicationId> {
        if let Self::Show { id, usage: true } = self {
            Some(*id)
        } else {
            None
        }
    }

    pub(super) fn into_command(self) -> AdminCommand {
        match self {
            Self::Create {
                name,
                tier,
                minute,
                day,
                description,
                expires_at,
            } => {
                let minute_limit = minute;
                let day_limit = day;
                let DescriptionArgs { url, contact, note } = description;
                let new = NewKey {
                    name,
                    tier,
                    minute_limit,
                    day_limit,
                    url,
                    contact,
                    note,
                    expires_at,
                };
                AdminCommand::Create(new)
            }
            Self::List { after, limit } => AdminCommand::List { after, limit },
            Self::Show { id, usage: _ } => AdminCommand::Show(id),
            Self::Rotate {
                id,
                overlap_hours,
                key_name,
                expires_at,
            } => {
                let overlap_seconds = overlap_hours.saturating_mul(3_600);
                AdminCommand::Rotate(
                    id,
                    RotateBody {
                        overlap_seconds,
                        key_name,
                        expires_at,
                    },
                )
            }
            Self::Revoke { id, key } => AdminCommand::Revoke(id, RevokeBody { key }),
            Self::SetTier { id, tier } => AdminCommand::SetTier(id, TierBody { tier }),
            Self::SetLimits {
                id,
                minute,
                day,
                until,
            } => {
                let minute_limit = minute.unwrap_or_default();
                let day_limit = day.unwrap_or_default();
                AdminCommand::SetLimits(
                    id,
                    LimitsBody {
                        minute_limit,
                        day_limit,
                        until,
                    },
                )
            }
            Self::SetExpiry { id, key, at } => {
                let expires_at = if at == "never" {
                    FieldChange::Remove
                } else {
                    FieldChange::Set(at)
                };
                AdminCommand::SetExpiry(id, ExpiryBody { key, expires_at })
            }
            Self::Update {
                id,
                name,
                description: DescriptionArgs { url, contact, note },
            } => {
                let [url, contact, note] = [url, contact, note].map(text_change);
                AdminCommand::Update {
                    id,
                    change: DescriptionChange {
                        name,
                        url,
                        contact,
                        note,
                    },
                }
            }
            Self::Requests(args) => args.into_command(),
            Self::Audit { id, before, limit } => AdminCommand::Audit(AuditQuery {
                application: id,
                before,
                limit,
                owner: None,
            }),
        }
    }
}

fn limit_or_none(text: &str) -> Result<FieldChange<u32>, String> {
    match text {
        "none" => Ok(FieldChange::Remove),
        number => number
            .parse()
            .map(FieldChange::Set)
            .map_err(|_| "write an integer, or `none`".into()),
    }
}

/// An empty string removes a field.
fn text_change(given: Option<String>) -> FieldChange<String> {
    match given {
        None => FieldChange::Keep,
        Some(text) if text.is_empty() => FieldChange::Remove,
        Some(text) => FieldChange::Set(text),
    }
}
