//! Why an export or an import failed.

use scoregate_base::clock::Wall;

/// Why an export could not be written, read or imported. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The file cannot be read or written.
    #[error("the file: {0}")]
    File(#[from] std::io::Error),
    /// The content of the file is invalid.
    #[error("the file cannot be imported: {0}")]
    Unfit(String),
    /// A record was changed by hand.
    #[error("a record cannot be exported: {0}. Correct it with SQL and export again")]
    Unreadable(String),
    /// The database is in use.
    #[error(
        "the database holds {0} applications: put its tables aside with `scoregate store export FILE --close` and create new ones \
         with `scoregate store init`, or use another store.schema"
    )]
    InUse(u64),
    /// The tables may have columns that are unknown to this program.
    #[error(
        "the tables have format {0}, which is newer than this release; export with the newer release"
    )]
    Newer(i32),
    /// A restore would lose changes that live gateways make during the restore.
    #[error(
        "{0} gateways reported within the last half minute; stop all gateways, and wait half a minute after killing one"
    )]
    LiveGateways(u64),
    /// Changes since the backup are unknown.
    #[error(
        "revocations, earlier expiries and tier changes {} are lost. Accept the loss with --accept-lost-revocations, and \
         repeat the changes that you know of; the current UTC day is then closed, unless --reopen-day is given", since(*after)
    )]
    LostRevocations {
        /// The last change in the backup.
        after: Option<Wall>,
    },
    /// The current day is unknown.
    #[error("the clock of the database ({}) is behind the backup; correct the clock, or leave the day open with --reopen-day", .0.rfc3339())]
    ClockBehind(Wall),
}

/// Describes which changes are lost: all changes after the last one in the backup.
pub fn since(last_change: Option<Wall>) -> String {
    last_change.map_or_else(
        || "that were ever made".into(),
        |at| format!("after {}, the last change in the backup,", at.rfc3339()),
    )
}
