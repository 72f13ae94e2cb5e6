//! What kind of task a run sets.
//!
//! Not for: how suites are weighed (`method.rs`).

/// What kind of task a run sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "named by `word`")]
pub enum Suite {
    Coding,
    Reasoning,
    Tooling,
}

impl Suite {
    /// All of them, in the order of the documents.
    pub const ALL: [Self; 3] = [Self::Coding, Self::Reasoning, Self::Tooling];

    /// Its word in answers.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Coding => "coding",
            Self::Reasoning => "reasoning",
            Self::Tooling => "tooling",
        }
    }

    /// Its own of three things that stand in the order of [`Suite::ALL`].
    pub fn of<T>(self, [coding, reasoning, tooling]: &[T; 3]) -> &T {
        match self {
            Self::Coding => coding,
            Self::Reasoning => reasoning,
            Self::Tooling => tooling,
        }
    }

    /// As [`Suite::of`], to be changed.
    pub fn of_mut<T>(self, [coding, reasoning, tooling]: &mut [T; 3]) -> &mut T {
        match self {
            Self::Coding => coding,
            Self::Reasoning => reasoning,
            Self::Tooling => tooling,
        }
    }
}
