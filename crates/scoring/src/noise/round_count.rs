//! Numbers of rounds that depend on the length of a round.

/// A number of rounds for hourly ones. With longer rounds it is as many times smaller, down to a minimum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RoundCount {
    /// With rounds of one hour.
    pub hourly: usize,
    /// The minimum.
    pub least: usize,
}
