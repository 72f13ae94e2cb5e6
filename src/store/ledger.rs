//! Requests and replies of the ledger of daily units. Each names the application, the day and the node, so that
//! several machines can lease from one ledger.
//!
//! Data only. How much to request is decided in `limits`.

use crate::clock::Day;
use crate::keys::ApplicationId;

/// A request to lease units of a day's quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseRequest {
    /// The application.
    pub application: ApplicationId,
    /// The requesting process: a number unique to each start of each gateway.
    pub node: u64,
    /// The day of the units.
    pub day: Day,
    /// Units of that day known to be granted, less those returned. It lets an engine behind a network recognise a
    /// request that is repeated because its reply was lost.
    pub known: u32,
    /// Number of units requested.
    pub want: u32,
    /// The quota in force. The total of grants never exceeds it.
    pub quota: u32,
    /// Units to be delivered without a lease while the ledger is unreachable: a promise, not a grant. The total of
    /// promises never exceeds one hundredth of the quota.
    pub grace: u32,
}

/// The ledger's reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseReply {
    /// Units granted, possibly none, and the total granted to all nodes, these included.
    Granted {
        /// Units for the node.
        units: u32,
        /// Units granted of that day in total.
        total: u64,
        /// Units of grace promised to the node, possibly none. A promise to a node that crashed is not made again on
        /// that day.
        grace: u32,
    },
    /// The day is closed: this later one was opened. Nothing was granted.
    Closed {
        /// The newest opened day.
        newest: Day,
    },
}

/// Leased and unspent units that a node returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseReturn {
    /// The application.
    pub application: ApplicationId,
    /// The returning process.
    pub node: u64,
    /// The day.
    pub day: Day,
    /// Number of units.
    pub units: u32,
    /// Number of unused units of grace.
    pub grace: u32,
}

/// Units delivered on grace and not charged before the server stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwedUnits {
    /// With the application, the identity of the entry: it is charged once.
    pub id: u64,
    /// The application.
    pub application: ApplicationId,
    /// The day.
    pub day: Day,
    /// Number of units.
    pub units: u32,
}
