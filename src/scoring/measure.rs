//! The scores that models can be ranked by.
//!
//! Not for: how they are computed (`series.rs`).

/// A score that models can be ranked by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    /// The suites, weighed.
    Combined,
    /// The suite of that name alone.
    Coding,
    /// Likewise.
    Reasoning,
    /// Likewise.
    Tooling,
    /// The plain mean of the axes.
    SevenAxis,
}

impl Measure {
    /// All of them.
    pub(super) const ALL: [Self; 5] =
        [Self::Combined, Self::Coding, Self::Reasoning, Self::Tooling, Self::SevenAxis];

    /// Its own of things that stand in the order of [`Measure::ALL`].
    pub(super) fn of<T>(self, [combined, coding, reasoning, tooling, seven_axis]: &[T; 5]) -> &T {
        match self {
            Self::Combined => combined,
            Self::Coding => coding,
            Self::Reasoning => reasoning,
            Self::Tooling => tooling,
            Self::SevenAxis => seven_axis,
        }
    }
}
