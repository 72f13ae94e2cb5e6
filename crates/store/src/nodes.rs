//! The gateway processes (nodes) that use a store.
//!
//! The list is informational: no unit depends on whether a node is listed or live. If the ledger is unavailable,
//! gateways divide minute limits by the number of live nodes or by the configured number, whichever is greater.

use std::time::Duration;

use scoregate_base::clock::Wall;

/// A node that was seen within this time is live.
pub const LIVE: Duration = Duration::from_secs(30);

/// The last report of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeStatus {
    /// The node: a number unique to each start of each gateway.
    pub node: u64,
    /// The name of the gateway, which several nodes may share.
    pub name: String,
    /// The program version.
    pub version: String,
    /// When the node started.
    pub started_at: Wall,
    /// When the node last reported.
    pub last_seen_at: Wall,
    /// Units of the day that are leased but not delivered, including units of requests in flight.
    pub units_held: u64,
    /// The time until which all delivered units are recorded as usage.
    pub usage_recorded_at: Wall,
}

/// The known nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeList {
    /// The nodes, oldest first. Nodes that shut down cleanly are not listed.
    pub nodes: Vec<NodeStatus>,
    /// The clock of the engine when it answered. `None` if the engine has no clock.
    pub clock: Option<Wall>,
}

impl NodeList {
    /// The time since a node was last seen; `now` is the reader's time.
    pub fn unseen_for(&self, node: &NodeStatus, now: Wall) -> Duration {
        self.clock.unwrap_or(now).since(node.last_seen_at)
    }

    /// Whether a node was seen recently.
    pub fn is_live(&self, node: &NodeStatus, now: Wall) -> bool {
        self.unseen_for(node, now) < LIVE
    }

    /// Whether this node is the oldest live one. The oldest node of a fleet does the work that must be done only once.
    pub fn is_oldest(&self, node: u64, now: Wall) -> bool {
        self.live(now)
            .next()
            .is_some_and(|oldest| oldest.node == node)
    }

    /// The nodes that were seen recently.
    pub fn live(&self, now: Wall) -> impl Iterator<Item = &NodeStatus> {
        self.nodes
            .iter()
            .filter(move |node| self.is_live(node, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Wall {
        Wall::from_seconds(seconds)
    }

    fn seen_at(node: u64, seconds: u64) -> NodeStatus {
        NodeStatus {
            node,
            name: "one".into(),
            version: "1.0.0".into(),
            started_at: at(50),
            last_seen_at: at(seconds),
            units_held: 0,
            usage_recorded_at: at(50),
        }
    }

    #[test]
    fn a_node_is_live_for_half_a_minute_by_the_clock_of_the_store() {
        let live = |clock, now| {
            NodeList {
                nodes: vec![seen_at(1, 100)],
                clock,
            }
            .live(at(now))
            .count()
        };
        assert_eq!([live(None, 129), live(None, 130)], [1, 0]);
        assert_eq!([live(Some(at(129)), 900), live(Some(at(130)), 100)], [1, 0]);
        assert_eq!(live(Some(at(99)), 100), 1, "the clock was set back");
    }
    #[test]
    fn the_oldest_node_is_the_first_live_one() {
        let nodes = NodeList {
            nodes: vec![seen_at(7, 100), seen_at(3, 120)],
            clock: None,
        };
        let oldest = |now| [7, 3, 9].map(|node| nodes.is_oldest(node, at(now)));
        assert_eq!(oldest(129), [true, false, false]);
        assert_eq!(
            oldest(130),
            [false, true, false],
            "the first node was killed"
        );
        assert_eq!(oldest(150), [false; 3]);
    }
}
