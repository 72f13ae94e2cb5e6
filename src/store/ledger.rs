//! What is said between a gateway and the ledger of the days. Every word names the application, the day and the node, so
//! that several machines can lease from one ledger.
//!
//! Inert data. Not for: how much to ask (`limits`), nor for what an engine does with it.

use crate::clock::Day;
use crate::keys::ApplicationId;

/// A wish to lease units of a day's quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseRequest {
    /// For which application.
    pub application: ApplicationId,
    /// Which gateway asks: a number of its own for each life of each gateway.
    pub node: u64,
    /// Units of which day.
    pub day: Day,
    /// How many of that day it knows to have been granted, those it gave back taken off. It lets an engine behind a
    /// network tell a wish that is repeated, because its answer was lost, from a new one.
    pub known: u32,
    /// How many it would like.
    pub want: u32,
    /// The quota in force. What is granted in all never exceeds it.
    pub quota: u32,
    /// Units it would like to be allowed to deliver on top while the ledger cannot be reached: a promise for bad times,
    /// not a grant. What is promised in all never exceeds a hundredth of the quota.
    pub grace: u32,
}

/// What the ledger says to a wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseReply {
    /// So many units are the node's to spend, perhaps none; and so many are granted in all, to any node, with these.
    Granted {
        /// Units for the node.
        units: u32,
        /// Units granted of that day in all.
        total: u64,
        /// Units promised to the node for bad times, perhaps none. A promise that was made to a node which then crashed
        /// is not made again on that day.
        grace: u32,
    },
    /// That day is closed: a later one, this, was already opened. Nothing was granted.
    Closed {
        /// The newest day that was opened.
        newest: Day,
    },
}

/// Units that a node leased, did not spend and returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseReturn {
    /// Whose.
    pub application: ApplicationId,
    /// Which gateway returns them.
    pub node: u64,
    /// Of which day.
    pub day: Day,
    /// How many.
    pub units: u32,
    /// How many of those that it was promised for bad times it did not need.
    pub grace: u32,
}

/// Units that were delivered on grace and not charged before the server stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwedUnits {
    /// With the application, the identity of the entry: it is charged once.
    pub id: u64,
    /// Whose.
    pub application: ApplicationId,
    /// Of which day.
    pub day: Day,
    /// How many.
    pub units: u32,
}
