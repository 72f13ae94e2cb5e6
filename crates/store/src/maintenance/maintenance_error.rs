//! Why an operation on the store file failed.

use std::{io, path::PathBuf};

use crate::{StoreError, transfer_error::since};
use scoregate_base::clock::{Day, Wall};

/// The result of an operation on a store file.
pub type MaintenanceResult<T> = Result<T, MaintenanceError>;

/// Why an operation failed. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum MaintenanceError {
    /// There is no store.
    #[error("there is no store at {}; set the server's data directory with --data-dir or --config", .0.display())]
    NoStore(PathBuf),
    /// A store already exists.
    #[error(
        "there is a store at {}; to replace it with a new one, move it away first",
        .0.display()
    )]
    IsThere(PathBuf),
    /// The output file already exists.
    #[error("{} exists; use another name, or --force to overwrite it", .0.display())]
    Exists(PathBuf),
    /// The store would be replaced.
    #[error(
        "the store at {} holds {applications} applications; `scoregate store restore` replaces it", path.display()
    )]
    InUse {
        /// Path of the store.
        path: PathBuf,
        /// Number of applications in the store.
        applications: u64,
    },
    /// The backup or export is not suitable.
    #[error("{} cannot be used: {reason}", path.display())]
    Unfit {
        /// Path of the file.
        path: PathBuf,
        /// The problem.
        reason: String,
    },
    /// Changes since the backup are unknown.
    #[error(
        "revocations, earlier expiries and tier changes {} are lost: {}. Name the data directory of the previous server \
         with --previous, or accept the loss with --accept-lost-revocations; the current UTC day is then closed, unless \
         --reopen-day is given", since(*after), gaps.join("; ")
    )]
    LostRevocations {
        /// The last change in the backup.
        after: Option<Wall>,
        /// Why these changes are unknown.
        gaps: Vec<String>,
    },
    /// The given date differs from the machine's clock.
    #[error(
        "today is {} according to this machine's clock ({}), not {given}; correct the clock or pass today's date",
        clock.day(), clock.rfc3339()
    )]
    OtherDay {
        /// The given date.
        given: Day,
        /// The clock's time.
        clock: Wall,
    },
    /// The output cannot be written.
    #[error("{} cannot be written: {source}", path.display())]
    Unwritable {
        /// Path of the output.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// An error of the store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl MaintenanceError {
    /// Whether the operation could succeed with other arguments.
    pub const fn is_input(&self) -> bool {
        !matches!(self, Self::Unwritable { .. } | Self::Store(_))
    }
}
