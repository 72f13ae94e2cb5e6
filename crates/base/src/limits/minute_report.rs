//! The rules of a minute limit that several gateways share: one bucket, of which each gateway takes a share.
//!
//! A share is a part of the bucket's capacity, with the refill that belongs to it, and some of its tokens. The rest is
//! the pool. So pool and shares together never hold more tokens than one bucket would, and refill no faster:
//!
//! 1. Capacities of the pool and of all shares add up to the limit, and tokens only move between them.
//! 2. A share ends after its lifetime. The gateway counts from before its report, the pool from the decision, so that
//!    the gateway stops first. Tokens that were not returned by then count as spent.
//! 3. Reports are numbered. A late or repeated report changes nothing.
//! 4. A lower limit takes tokens out of the pool. If shares hold them, the pool owes them until they are returned.
//!
//! An engine locks the pool, applies one report, and commits pool and shares in one transaction. The rules are in its
//! SQL. `minute_pool` is their model for tests.

/// A gateway's report about its share of an application's minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MinuteReport {
    /// Its number. Each report has a higher one.
    pub round: u32,
    /// Capacity that the gateway keeps.
    pub kept: u32,
    /// Millionths of a token that it returns with the remainder of its share. Negative for tokens that it spent without
    /// a share.
    pub returned: i64,
    /// Capacity that it wants, including the kept one.
    pub wanted: u32,
    /// The limit in force.
    pub limit: u32,
    /// Lifetime of the share in microseconds.
    pub lifetime: u32,
    /// Requests shares of other gateways if the pool is empty.
    pub recalls: bool,
}

/// The reply to a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MinuteGrant {
    /// The number of the newest report that was applied.
    pub round: u32,
    /// Whether the kept capacity is still part of the share. If not, its tokens are void.
    pub is_kept: bool,
    /// The capacity of the share.
    pub capacity: u32,
    /// Millionths of a token granted in addition to those that the gateway has.
    pub tokens: i64,
    /// Capacity of the pool.
    pub pool_capacity: u32,
    /// Content of the pool in millionths of a token.
    pub pool_tokens: i64,
}
