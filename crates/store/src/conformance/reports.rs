//! Conformance checks of the registered nodes.

use super::*;

fn node(number: u64, units_held: u64) -> NodeStatus {
    NodeStatus {
        node: number,
        name: format!("gateway {number}"),
        version: "1.2.3".into(),
        started_at: NOON,
        last_seen_at: NOON,
        units_held,
        usage_recorded_at: NOON.plus(HOUR),
    }
}

pub async fn a_node_is_listed_with_its_last_report_until_it_is_removed(store: &Store) {
    assert!(store.nodes().await.unwrap().nodes.is_empty());
    // Node numbers are random, so the highest number must work, too.
    let number = u64::MAX;
    for units in [3, 8] {
        store.report_node(node(number, units)).await.unwrap();
        let list = store.nodes().await.unwrap();
        let [found] = list.nodes.as_slice() else {
            panic!("{list:?}")
        };
        let last_seen_at = found.last_seen_at;
        assert_eq!(
            *found,
            NodeStatus {
                last_seen_at,
                ..node(number, units)
            }
        );
        assert_eq!(list.live(NOON).count(), 1);
        assert_eq!(
            last_seen_at == NOON,
            list.clock.is_none(),
            "a store with a clock sets the time"
        );
    }
    store.remove_node(1).await.unwrap();
    assert_eq!(store.nodes().await.unwrap().nodes.len(), 1);
    store.remove_node(number).await.unwrap();
    assert!(store.nodes().await.unwrap().nodes.is_empty());
}
