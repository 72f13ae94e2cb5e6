//! `scoregate keys`: applications and their keys.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::Value;

use crate::admin::{ApplicationView, Command, IssuedView, KeyView, NewKey, PageView};
use crate::config::{Config, Problems, read_environment, read_file, resolve};
use crate::keys::ApplicationId;

use super::control::{Undone, carry_out};
use super::exit::Exit;
use super::printer;
use super::serve::{environment, runtime};

pub(super) const AFTER_HELP: &str = "Examples:\n  \
scoregate keys create --name 'Weather site' --tier pro --data-dir DIR\n  \
scoregate keys list --data-dir DIR --json\n  \
scoregate keys rotate app_0123456789a --overlap-hours 24 --data-dir DIR\n\n\
DIR is the server's data directory; --config FILE finds it there. With a running server changes hold at once.\n\
A key is printed once, when it is made: only its SHA-256 is kept.";

#[derive(Debug, Args)]
pub(super) struct KeysArgs {
    #[command(subcommand)]
    verb: Verb,
    /// The server's data directory.
    #[arg(long, value_name = "DIR", global = true)]
    data_dir: Option<PathBuf>,
    /// The server's configuration: its data directory, tiers and key prefix.
    #[arg(long, value_name = "FILE", env = "SCOREGATE_CONFIG", global = true)]
    config: Option<PathBuf>,
    /// Print JSON in place of a table.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Create an application with its first key, and print the key.
    #[command(
        after_help = "Example:\n  scoregate keys create --name 'Weather site' --tier pro --data-dir DIR"
    )]
    Create {
        /// Its name, for people.
        #[arg(long)]
        name: String,
        /// Its tier: free, pro, developer, teams or enterprise, or one of your own.
        #[arg(long)]
        tier: String,
        /// Requests a minute, in place of the tier's.
        #[arg(long, value_name = "N")]
        minute_limit: Option<u32>,
        /// Requests a day, in place of the tier's.
        #[arg(long, value_name = "N")]
        day_limit: Option<u32>,
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
    #[command(after_help = "Example:\n  scoregate keys show app_0123456789a --data-dir DIR")]
    Show {
        /// The application, such as `app_0123456789a`.
        id: ApplicationId,
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
    },
    /// Revoke an application's keys, at once.
    #[command(after_help = "Examples:\n  scoregate keys revoke app_0123456789a --data-dir DIR\n  \
        scoregate keys revoke app_0123456789a --key sg_live_abcd --data-dir DIR")]
    Revoke {
        /// The application.
        id: ApplicationId,
        /// Only the key that begins like this.
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
}

pub(super) fn run(args: KeysArgs) -> Exit {
    let config = match settings(&args) {
        Ok(config) => config,
        Err(problems) => return printer::input(&problems.to_string()),
    };
    let json = args.json;
    let command = args.verb.into_command();
    let asked = command.clone();
    let answer = match runtime(Some(1)) {
        Ok(runtime) => runtime.block_on(carry_out(&config, command)),
        Err(error) => Err(Undone::Fault(error)),
    };
    match answer {
        Ok(answer) if json => printer::data(&format!("{answer:#}\n")),
        Ok(answer) => show(&asked, answer),
        Err(Undone::Input(problem)) => printer::input(&problem),
        Err(Undone::Fault(error)) => printer::fault(&error),
    }
}

/// The server's settings, as far as they matter here: which backend it has does not.
fn settings(args: &KeysArgs) -> Result<Config, Problems> {
    let mut written = args.config.as_deref().map(read_file).transpose()?.unwrap_or_default();
    written.overlay(read_environment(environment())?);
    if let Some(directory) = &args.data_dir {
        written.set("data_dir", directory.to_string_lossy().into_owned());
    }
    if !written.says("upstream") {
        written.set("upstream", "built-in");
    }
    resolve(&written)
}

impl Verb {
    fn into_command(self) -> Command {
        match self {
            Self::Create { name, tier, minute_limit, day_limit, contact, note, expires_at } => {
                Command::Create(NewKey { name, tier, minute_limit, day_limit, contact, note, expires_at })
            }
            Self::List { after, most } => Command::List { after, most },
            Self::Show { id } => Command::Show(id),
            Self::Rotate { id, overlap_hours } => {
                Command::Rotate { id, overlap_seconds: overlap_hours.saturating_mul(3_600) }
            }
            Self::Revoke { id, key } => Command::Revoke { id, key },
            Self::SetTier { id, tier } => Command::SetTier { id, tier },
        }
    }
}

fn show(command: &Command, answer: Value) -> Exit {
    let shown = match command {
        Command::Create(_) | Command::Rotate { .. } => {
            serde_json::from_value(answer).map(|issued: IssuedView| {
                printer::say(&format!("{}: this key is shown only now", issued.application.id));
                printer::data(&format!("{}\n", issued.key))
            })
        }
        Command::List { .. } => serde_json::from_value(answer).map(|page| list(&page)),
        Command::Show(_) | Command::Revoke { .. } | Command::SetTier { .. } => {
            serde_json::from_value(answer).map(|application| one(&application))
        }
    };
    shown.unwrap_or_else(|error| {
        printer::fault(&anyhow::anyhow!("the server's answer cannot be read: {error}"))
    })
}

fn list(page: &PageView) -> Exit {
    for reason in &page.skipped {
        printer::say(&format!("passed over: {reason}"));
    }
    let row = |application: &ApplicationView| {
        let in_force = application.keys.iter().filter(|key| key.revoked_at.is_none()).count();
        vec![
            application.id.clone(),
            application.tier.clone(),
            in_force.to_string(),
            application.granted_today.to_string(),
            application.created_at.clone(),
            application.name.clone(),
        ]
    };
    let rows: Vec<Vec<String>> = page.applications.iter().map(row).collect();
    let exit = printer::table(&["application", "tier", "keys", "today", "created", "name"], &rows);
    if let Some(next) = &page.next {
        printer::say(&format!("there are more: --after {next}"));
    }
    exit
}

fn one(application: &ApplicationView) -> Exit {
    let own = |limit: Option<u32>| limit.map_or_else(|| "the tier's".into(), |limit| limit.to_string());
    let facts = [
        ("application", application.id.clone()),
        ("name", application.name.clone()),
        ("tier", application.tier.clone()),
        ("requests a minute", own(application.minute_limit)),
        ("requests a day", own(application.day_limit)),
        ("granted today", application.granted_today.to_string()),
        ("contact", or_dash(application.contact.as_ref())),
        ("note", or_dash(application.note.as_ref())),
        ("created", application.created_at.clone()),
    ];
    let lines: Vec<String> = facts.iter().map(|(name, value)| format!("{name:<18} {value}")).collect();
    let exit = printer::data(&format!("{}\n\n", lines.join("\n")));
    let row = |key: &KeyView| {
        let (expires, revoked) = (or_dash(key.expires_at.as_ref()), or_dash(key.revoked_at.as_ref()));
        vec![key.prefix.clone(), key.created_at.clone(), expires, revoked]
    };
    let rows: Vec<Vec<String>> = application.keys.iter().map(row).collect();
    if exit == Exit::Done {
        printer::table(&["key begins", "created", "expires", "revoked"], &rows)
    } else {
        exit
    }
}

fn or_dash(text: Option<&String>) -> String {
    text.cloned().unwrap_or_else(|| "-".into())
}
