//! Exit codes.

use std::process::{ExitCode, Termination};

/// Outcome of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Success: exit code 0.
    Done,
    /// Invalid input: exit code 1.
    Input,
    /// Internal error or failure of the machine: exit code 2.
    Fault,
}

impl Termination for Exit {
    fn report(self) -> ExitCode {
        match self {
            Self::Done => ExitCode::SUCCESS,
            Self::Input => ExitCode::from(1),
            Self::Fault => ExitCode::from(2),
        }
    }
}
