//! How the program ends.

use std::process::{ExitCode, Termination};

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done,
    /// Something in the operator's input has to be mended.
    Input,
    /// Our fault, or the machine's.
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
