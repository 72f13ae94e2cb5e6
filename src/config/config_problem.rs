//! Problems in settings. All problems are reported together.

use std::fmt;

/// A problem with a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblem {
    /// The setting's path, such as `upstream.timeout`.
    pub path: String,
    /// The value that was found. Never a secret.
    pub found: Option<String>,
    /// The correction.
    pub remedy: String,
}

/// All problems with the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblems(pub Vec<ConfigProblem>);

impl ConfigProblems {
    pub(super) fn one(
        path: impl Into<String>,
        found: Option<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self(vec![ConfigProblem {
            path: path.into(),
            found,
            remedy: remedy.into(),
        }])
    }
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.found {
            Some(found) => write!(f, "{}: found {found}; {}", self.path, self.remedy),
            None => write!(f, "{}: {}", self.path, self.remedy),
        }
    }
}

impl fmt::Display for ConfigProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, problem) in self.0.iter().enumerate() {
            if number > 0 {
                writeln!(f)?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigProblems {}
