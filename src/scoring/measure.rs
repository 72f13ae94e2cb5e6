//! The scores that models can be ranked by.

/// A score that models can be ranked by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    /// The weighted mean of the suites.
    Combined,
    /// This suite alone.
    Coding,
    /// This suite alone.
    Reasoning,
    /// This suite alone.
    Tooling,
    /// The plain mean of the axes.
    SevenAxis,
}

impl Measure {
    /// All measures.
    pub(super) const ALL: [Self; 5] =
        [Self::Combined, Self::Coding, Self::Reasoning, Self::Tooling, Self::SevenAxis];

    /// The element for this measure, in the order of [`Measure::ALL`].
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
