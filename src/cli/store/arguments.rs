//! Arguments of `scoregate store`.

use std::{num::NonZeroUsize, path::PathBuf};

use clap::{Args, Subcommand};

use crate::cli::{control::operator, serve::ServerArgs};
use scoregate_base::{clock::Day, plans::Tier};
use scoregate_store::{RoleName, maintenance::ImportOptions};

pub const AFTER_HELP: &str = include_str!("../help/store.txt");

#[derive(Debug, Args)]
pub struct StoreArgs {
    #[command(subcommand)]
    pub(super) command: StoreCommand,
    #[command(flatten)]
    pub(super) server: ServerArgs,
}

#[derive(Debug, Subcommand)]
pub enum StoreCommand {
    /// Check the store and report its contents and all errors.
    #[command(
        after_help = "Example:\n  scoregate store check --data-dir DIR --json\n\n\
        Exit codes: 0 no errors, 1 errors found, 2 unreadable. Nothing is written."
    )]
    Check {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Back up the store to a file, even while the server is running.
    #[command(
        after_help = "Examples:\n  scoregate store backup backup.db --data-dir DIR\n  \
        scoregate store backup --to BACKUPS --keep 7 --data-dir DIR\n\n\
        The backup is a consistent SQLite database. It is not encrypted. It is verified before it gets its final name. If it\n\
        contains unreadable records, no older backup is removed, and the exit code is 1."
    )]
    Backup {
        /// The file to write.
        #[arg(required_unless_present = "to", conflicts_with = "to")]
        file: Option<PathBuf>,
        /// Write a dated backup to this directory. Do not share the directory between servers.
        #[arg(long, value_name = "DIR", requires = "keep")]
        to: Option<PathBuf>,
        /// Number of dated backups to keep in the directory, including the new one.
        #[arg(long, value_name = "N", requires = "to")]
        keep: Option<NonZeroUsize>,
        /// Overwrite an existing file.
        #[arg(long, conflicts_with = "to")]
        force: bool,
    },
    /// Verify a backup or an export and report its contents. Nothing is written.
    #[command(after_help = "Example:\n  scoregate store verify-backup backup.db\n\n\
        Exit codes: 0 no errors, 1 damaged or not a backup, 2 unreadable.")]
    VerifyBackup {
        /// The backup or export.
        file: PathBuf,
    },
    /// Restore a backup to the data directory of a stopped server, or complete the restore of a database.
    #[command(
        after_help = "Examples:\n  scoregate store restore backup.db --data-dir DIR\n  \
        scoregate store restore backup.db --data-dir DIR --previous OLD_DIR\n  \
        scoregate store restore --config FILE\n\n\
        Later grants, revocations, earlier expiries, tiers and limits are carried over from the replaced store, which is\n\
        kept as scoregate.db.aside-TIME, and from the data directory of the previous server. If neither is a later state of the\n\
        backed-up store, or if one cannot be read completely, the restore needs --accept-lost-revocations, and the current\n\
        UTC day is closed: callers are refused until midnight, so that no unit is granted twice.\n\n\
        With a database (store.url), stop all gateways, restore the database with its own tools, then run the command\n\
        without a file. With an export, the command fills the empty tables that `store init` created. Until then gateways refuse the restored database."
    )]
    Restore(RestoreArgs),
    /// Export the store as JSON lines, for another engine or machine.
    #[command(
        after_help = "Examples:\n  scoregate store export keys.jsonl --data-dir DIR\n  \
        scoregate store export keys.jsonl --close --config FILE\n\n\
        With --close nothing can be changed or served after the snapshot: a store file is renamed to\n\
        scoregate.db.closed-TIME (its server must be stopped), and a database's tables move to another schema."
    )]
    Export {
        /// The file to write, or - for standard output.
        file: PathBuf,
        /// Overwrite an existing file.
        #[arg(long)]
        force: bool,
        /// Put the store out of use in the same step, to move to another store.
        #[arg(long)]
        close: bool,
    },
    /// Import an export made with --close into a store without applications.
    #[command(
        after_help = "Example:\n  scoregate store import keys.jsonl --data-dir DIR\n\n\
        Units granted and keys revoked after the export are unknown. To use an export as a backup, use `scoregate store restore`."
    )]
    Import {
        /// The export.
        file: PathBuf,
    },
    /// Close UTC days that a wrong clock opened too early; the server must be stopped.
    #[command(
        after_help = "Example:\n  scoregate store close-future-days --today 2026-11-22 --data-dir DIR\n\n\
        The server never returns to a day before the newest opened day. `scoregate store check` reports a day in the\n\
        future. Units granted for the closed days count for today, since they were used today; callers get a new quota\n\
        at 00:00 UTC. Correct the machine's clock first. The change is recorded in `scoregate keys audit`."
    )]
    CloseFutureDays {
        /// Today's date in UTC; must match the machine's clock.
        #[arg(long, value_name = "DATE")]
        today: Day,
    },
    /// Create an empty store: the tables of a database, or a store file if it is missing and has no backup.
    #[command(after_help = "Examples:\n  scoregate store init --data-dir DIR\n  \
        scoregate store init --config FILE --runtime-role gateway\n\n\
        A server does not start if its store is missing. The new store has no keys and grants today's whole quota\n\
        again. To restore a file, use `scoregate store restore BACKUP`.\n\
        Existing tables are kept. Run this command as the user that will own the tables. Servers can connect as\n\
        another user: name it with --runtime-role.")]
    Init {
        #[command(flatten)]
        grant: RuntimeRole,
    },
    /// Upgrade the tables of a database for this release; servers may keep running.
    #[command(
        after_help = "Example:\n  scoregate store upgrade --config FILE --runtime-role gateway\n\n\
        A server of this release does not start on older tables. Servers of the previous release run and restart on\n\
        upgraded tables. A store file is upgraded when a server opens it."
    )]
    Upgrade {
        #[command(flatten)]
        grant: RuntimeRole,
    },
}

/// The arguments of a restore.
#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// The backup or export to restore. For a database: an export, or omit it after a restore with the database's own tools.
    pub file: Option<PathBuf>,
    /// The data directory of the previous server, if it is a different directory.
    #[arg(long, value_name = "DIR")]
    pub previous: Option<PathBuf>,
    /// Leave the current day open; its units may then be granted twice.
    #[arg(long)]
    pub reopen_day: bool,
    /// Restore even though keys revoked after the backup may become valid again.
    #[arg(long)]
    pub accept_lost_revocations: bool,
}

impl RestoreArgs {
    /// The import options, except the directory of the previous server.
    pub fn options(&self, tiers: &[Tier]) -> ImportOptions {
        ImportOptions {
            who: operator(),
            restores: true,
            previous: None,
            reopen_day: self.reopen_day,
            accept_lost_revocations: self.accept_lost_revocations,
            tiers: tiers.to_vec(),
        }
    }
}

/// The database user of the servers, if that user does not own the tables.
#[derive(Debug, Args)]
pub struct RuntimeRole {
    /// Grant this role the rights that a server needs. It cannot alter the tables or change the audit trail.
    #[arg(long, value_name = "ROLE", value_parser = RoleName::parse)]
    pub runtime_role: Option<RoleName>,
}

/// The error message for `export --close -`.
pub const CLOSE_NEEDS_A_FILE: &str = "--close needs a file: standard output may not be durable";
