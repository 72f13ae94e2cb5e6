//! The scores that models can be ranked by.

use scoregate_base::routes::SortBy;

/// A score that models can be ranked by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// The weighted mean of the suites that feed `combined`.
    Combined,
    /// The mean of the suites that feed `coding`: by default, only the suite `coding`.
    Coding,
    /// The mean of the suites that feed `reasoning`.
    Reasoning,
    /// The mean of the suites that feed `tooling`.
    Tooling,
    /// The unweighted mean of the axes, over the weighted suites that feed `7axis`.
    SevenAxis,
}

impl Measure {
    /// All measures.
    pub const ALL: [Self; 5] = [
        Self::Combined,
        Self::Coding,
        Self::Reasoning,
        Self::Tooling,
        Self::SevenAxis,
    ];

    /// The `sortBy` value for this measure. A suite's `feeds` lists such values.
    pub const fn sort_by(self) -> SortBy {
        match self {
            Self::Combined => SortBy::Combined,
            Self::Coding => SortBy::Coding,
            Self::Reasoning => SortBy::Reasoning,
            Self::Tooling => SortBy::Tooling,
            Self::SevenAxis => SortBy::SevenAxis,
        }
    }

    /// The element for this measure, in the order of [`Measure::ALL`].
    pub fn of<T>(self, [combined, coding, reasoning, tooling, seven_axis]: &[T; 5]) -> &T {
        match self {
            Self::Combined => combined,
            Self::Coding => coding,
            Self::Reasoning => reasoning,
            Self::Tooling => tooling,
            Self::SevenAxis => seven_axis,
        }
    }
}
