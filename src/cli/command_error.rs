//! The error of a command. `command_line` reports it.

use std::fmt;

use crate::{admin::CommandProblem, config::ConfigProblems};
use scoregate_scoring::ArchiveError;
use scoregate_store::maintenance::MaintenanceError;

use super::exit::Exit;

/// The error of a command.
#[derive(Debug)]
pub enum CommandError {
    /// An error that the operator can correct.
    Input(String),
    /// An internal error or a failure of the machine.
    Fault(anyhow::Error),
    /// The command reported its errors.
    Reported(Exit),
}

/// The outcome of a command.
pub type CommandOutcome<T = ()> = Result<T, CommandError>;

/// The outcome of a command that has reported all errors in its input.
pub fn input_is_fine(is_fine: bool) -> CommandOutcome {
    if is_fine {
        Ok(())
    } else {
        Err(CommandError::Reported(Exit::Input))
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(problem) => f.write_str(problem),
            Self::Fault(error) => write!(f, "{error:#}"),
            Self::Reported(exit) => write!(f, "{exit:?}"),
        }
    }
}

impl From<anyhow::Error> for CommandError {
    fn from(error: anyhow::Error) -> Self {
        Self::Fault(error)
    }
}

impl From<ArchiveError> for CommandError {
    fn from(error: ArchiveError) -> Self {
        Self::Fault(error.into())
    }
}

impl From<ConfigProblems> for CommandError {
    fn from(problems: ConfigProblems) -> Self {
        Self::Input(problems.to_string())
    }
}

impl From<CommandProblem> for CommandError {
    fn from(problem: CommandProblem) -> Self {
        if problem.is_input() {
            Self::Input(problem.error)
        } else {
            Self::Fault(anyhow::anyhow!(problem.error))
        }
    }
}

impl From<MaintenanceError> for CommandError {
    fn from(error: MaintenanceError) -> Self {
        let is_input = error.is_input();
        // The error is not wrapped, so that `printer::reason` finds the repair steps.
        let error = if let MaintenanceError::Store(error) = error {
            error.into()
        } else {
            anyhow::Error::from(error)
        };
        if is_input {
            Self::Input(error.to_string())
        } else {
            Self::Fault(error)
        }
    }
}
