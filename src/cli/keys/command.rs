//! What can be said to `scoregate keys`, with its help: a table. Each becomes one command.

use clap::Subcommand;

use crate::accounts::FieldChange;
use crate::admin::{AdminCommand, NewKey};
use crate::keys::ApplicationId;
use crate::store::AuditQuery;

#[derive(Debug, Subcommand)]
pub(super) enum KeysCommand {
    /// Create an application with its first key, and print the key.
    #[command(
        after_help = "Examples:\n  scoregate keys create --name 'Weather site' --tier pro --data-dir DIR\n  \
        scoregate keys create --name 'Weather site' --tier pro --day 50000 --data-dir DIR\n\n\
        It works before the first start of the server: a store is created in a data directory that has none."
    )]
    Create {
        /// Its name, for people.
        #[arg(long)]
        name: String,
        /// Its tier: free, pro, developer, teams or enterprise, or one of your own.
        #[arg(long)]
        tier: String,
        /// Requests a minute, in place of the tier's.
        #[arg(long, alias = "minute-limit", value_name = "N")]
        minute: Option<u32>,
        /// Requests a day, in place of the tier's.
        #[arg(long, alias = "day-limit", value_name = "N")]
        day: Option<u32>,
        /// How to reach its owner.
        #[arg(long)]
        contact: Option<String>,
        /// A remark.
        #[arg(long)]
        note: Option<String>,
        /// When the key ends, such as 2027-01-31T00:00:00Z.
        #[arg(long, value_name = "INSTANT")]
        expires_at: Option<String>,
    },
    /// List applications, a page at a time.
    #[command(after_help = "Example:\n  scoregate keys list --data-dir DIR --json")]
    List {
        /// Go on after this one.
        #[arg(long, value_name = "APP")]
        after: Option<ApplicationId>,
        /// At most so many.
        #[arg(long, default_value_t = 100, value_name = "N")]
        most: usize,
    },
    /// Show one application and its keys.
    #[command(after_help = "Examples:\n  scoregate keys show app_0123456789a --data-dir DIR\n  \
        scoregate keys show app_0123456789a --usage --data-dir DIR")]
    Show {
        /// The application, such as `app_0123456789a`.
        id: ApplicationId,
        /// Tell what it uses, too, as the running server has counted it.
        #[arg(long)]
        usage: bool,
    },
    /// Give an application a new key. Its older ones end after the overlap; its quota stays.
    #[command(
        after_help = "Example:\n  scoregate keys rotate app_0123456789a --overlap-hours 24 --data-dir DIR"
    )]
    Rotate {
        /// The application.
        id: ApplicationId,
        /// How long the older keys go on.
        #[arg(long, default_value_t = 24, value_name = "HOURS")]
        overlap_hours: u64,
        /// When the new key ends, such as 2027-01-31T00:00:00Z.
        #[arg(long, value_name = "INSTANT")]
        expires_at: Option<String>,
    },
    /// Revoke an application's keys, at once.
    #[command(after_help = "Examples:\n  scoregate keys revoke app_0123456789a --data-dir DIR\n  \
        scoregate keys revoke app_0123456789a --key sg_live_abcd --data-dir DIR")]
    Revoke {
        /// The application.
        id: ApplicationId,
        /// Only the key that begins like this, or has this SHA-256.
        #[arg(long, value_name = "PREFIX")]
        key: Option<String>,
    },
    /// Move an application to another tier, at once. What it used today stays used.
    #[command(after_help = "Example:\n  scoregate keys set-tier app_0123456789a teams --data-dir DIR")]
    SetTier {
        /// The application.
        id: ApplicationId,
        /// The tier.
        tier: String,
    },
    /// Give an application limits of its own, or its tier's back, at once. What it used today stays used.
    #[command(after_help = "Examples:\n  \
        scoregate keys set-limits app_0123456789a --day 50000 --data-dir DIR\n  \
        scoregate keys set-limits app_0123456789a --minute none --day none --data-dir DIR")]
    SetLimits {
        /// The application.
        id: ApplicationId,
        /// Requests a minute; `none` for the tier's. What is not said stays.
        #[arg(long, alias = "minute-limit", value_name = "N|none", value_parser = limit, required_unless_present = "day")]
        minute: Option<FieldChange<u32>>,
        /// Requests a day; `none` for the tier's.
        #[arg(long, alias = "day-limit", value_name = "N|none", value_parser = limit)]
        day: Option<FieldChange<u32>>,
    },
    /// Say when an application's keys end.
    #[command(after_help = "Examples:\n  \
        scoregate keys set-expiry app_0123456789a --at 2027-01-31T00:00:00Z --data-dir DIR\n  \
        scoregate keys set-expiry app_0123456789a --key sg_live_abcd --at never --data-dir DIR\n\n\
        Without --key it holds for every key that has not ended; with several of those none is put off, since one\n\
        may be ending after a rotation. One that has ended is brought back by --key only; one that was revoked, never.")]
    SetExpiry {
        /// The application.
        id: ApplicationId,
        /// Only the key that begins like this, or has this SHA-256.
        #[arg(long, value_name = "PREFIX")]
        key: Option<String>,
        /// When, such as 2027-01-31T00:00:00Z; `never` for no end.
        #[arg(long, value_name = "INSTANT|never")]
        at: String,
    },
    /// Change an application's name, its owner's contact or its note.
    #[command(after_help = "Examples:\n  \
        scoregate keys describe app_0123456789a --contact ops@example.org --data-dir DIR\n  \
        scoregate keys describe app_0123456789a --note '' --data-dir DIR\n\n\
        An empty text removes a contact or a note. What is not said stays.")]
    Describe {
        /// The application.
        id: ApplicationId,
        /// Its name, for people.
        #[arg(long, required_unless_present_any = ["contact", "note"])]
        name: Option<String>,
        /// How to reach its owner.
        #[arg(long)]
        contact: Option<String>,
        /// A remark.
        #[arg(long)]
        note: Option<String>,
    },
    /// Tell who changed what and when, newest first.
    #[command(after_help = "Examples:\n  scoregate keys audit --data-dir DIR\n  \
        scoregate keys audit app_0123456789a --most 20 --data-dir DIR")]
    Audit {
        /// Only of this application.
        id: Option<ApplicationId>,
        /// Only changes before the one with this number.
        #[arg(long, value_name = "N")]
        before: Option<u64>,
        /// At most so many.
        #[arg(long, default_value_t = 100, value_name = "N")]
        most: usize,
    },
}

impl KeysCommand {
    /// The application whose use is asked for as well.
    pub(super) fn whose_usage(&self) -> Option<ApplicationId> {
        if let Self::Show { id, usage: true } = self { Some(*id) } else { None }
    }

    /// The command it is.
    pub(super) fn into_command(self) -> AdminCommand {
        match self {
            Self::Create { name, tier, minute, day, contact, note, expires_at } => {
                let (minute_limit, day_limit) = (minute, day);
                AdminCommand::Create(NewKey {
                    name,
                    tier,
                    minute_limit,
                    day_limit,
                    contact,
                    note,
                    expires_at,
                })
            }
            Self::List { after, most } => AdminCommand::List { after, most },
            Self::Show { id, usage: _ } => AdminCommand::Show(id),
            Self::Rotate { id, overlap_hours, expires_at } => {
                AdminCommand::Rotate { id, overlap_seconds: overlap_hours.saturating_mul(3_600), expires_at }
            }
            Self::Revoke { id, key } => AdminCommand::Revoke { id, key },
            Self::SetTier { id, tier } => AdminCommand::SetTier { id, tier },
            Self::SetLimits { id, minute, day } => AdminCommand::SetLimits {
                id,
                minute: minute.unwrap_or_default(),
                day: day.unwrap_or_default(),
            },
            Self::SetExpiry { id, key, at } => {
                let expires_at = if at == "never" { FieldChange::Remove } else { FieldChange::Set(at) };
                AdminCommand::SetExpiry { id, key, expires_at }
            }
            Self::Describe { id, name, contact, note } => {
                AdminCommand::Describe { id, name, contact: words(contact), note: words(note) }
            }
            Self::Audit { id, before, most } => {
                AdminCommand::Audit(AuditQuery { application: id, before, most })
            }
        }
    }
}

fn limit(text: &str) -> Result<FieldChange<u32>, String> {
    match text {
        "none" => Ok(FieldChange::Remove),
        number => number.parse().map(FieldChange::Set).map_err(|_| "a whole number, or `none`".into()),
    }
}

fn words(said: Option<String>) -> FieldChange<String> {
    match said {
        None => FieldChange::Keep,
        Some(text) if text.is_empty() => FieldChange::Remove,
        Some(text) => FieldChange::Set(text),
    }
}
