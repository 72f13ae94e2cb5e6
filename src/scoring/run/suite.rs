//! Suites: the kinds of tasks.

/// A kind of task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "named by `word`")]
pub enum Suite {
    Coding,
    Reasoning,
    Tooling,
}

impl Suite {
    /// All suites, in the order of the specification.
    pub const ALL: [Self; 3] = [Self::Coding, Self::Reasoning, Self::Tooling];

    /// Its name in responses.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Coding => "coding",
            Self::Reasoning => "reasoning",
            Self::Tooling => "tooling",
        }
    }

    /// The element for this suite, in the order of [`Suite::ALL`].
    pub fn of<T>(self, [coding, reasoning, tooling]: &[T; 3]) -> &T {
        match self {
            Self::Coding => coding,
            Self::Reasoning => reasoning,
            Self::Tooling => tooling,
        }
    }

    /// Like [`Suite::of`], mutable.
    pub fn of_mut<T>(self, [coding, reasoning, tooling]: &mut [T; 3]) -> &mut T {
        match self {
            Self::Coding => coding,
            Self::Reasoning => reasoning,
            Self::Tooling => tooling,
        }
    }
}
