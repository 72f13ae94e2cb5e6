//! Minute limits shared by nodes.

use super::*;
use scoregate_base::limits::{MinuteGrant, MinuteReport};

fn about(application: ApplicationId, node: u64, minute: MinuteReport) -> LedgerExchange {
    let units = LedgerReport::of_units(application, NOON.day(), NodeReport::default());
    let reports = vec![LedgerReport {
        minute: Some(minute),
        ..units
    }];
    LedgerExchange {
        node,
        today: NOON.day(),
        reports,
    }
}

fn wants(wanted: u32) -> MinuteReport {
    MinuteReport {
        wanted,
        limit: 60,
        ..MinuteReport::default()
    }
}

async fn granted_to(
    store: &Store,
    application: ApplicationId,
    node: u64,
    minute: MinuteReport,
) -> MinuteGrant {
    let reply = store.exchange(about(application, node, minute)).await;
    reply.unwrap().minutes[0].unwrap()
}

#[tokio::test]
async fn tokens_that_a_node_returns_are_granted_to_another_one() {
    needs!("postgresql");
    let store = fresh().await;
    let id = created(&store).await;
    assert_eq!(granted_to(&store, id, 1, wants(60)).await.tokens, 60);
    assert_eq!(granted_to(&store, id, 2, wants(60)).await.tokens, 0);
    let half = MinuteReport {
        held: 30,
        returned: 30,
        ..wants(0)
    };
    assert_eq!(granted_to(&store, id, 1, half).await.tokens, 0);
    let rest = granted_to(&store, id, 2, wants(60)).await;
    assert!((30..=31).contains(&rest.tokens), "{rest:?}");
    assert!(rest.elsewhere >= 30_000_000, "{rest:?}");
}

#[tokio::test]
async fn an_exchange_answers_each_report_in_order_and_names_unknown_applications() {
    needs!("postgresql");
    let store = fresh().await;
    let mut reports = Vec::new();
    for number in 0..5 {
        let application = match number {
            2 => an_id(),
            _ => created(&store).await,
        };
        let totals = NodeReport {
            granted: 3 + number,
            quota: 500,
            ..NodeReport::default()
        };
        let minute = (number % 2 == 0).then(|| wants(10 + number));
        let units = LedgerReport::of_units(application, NOON.day(), totals);
        reports.push(LedgerReport { minute, ..units });
    }
    let exchange = LedgerExchange {
        node: 1,
        today: NOON.day(),
        reports,
    };
    let reply = store.exchange(exchange).await.unwrap();
    let tokens: Vec<_> = reply
        .minutes
        .iter()
        .map(|grant| grant.map(|grant| grant.tokens))
        .collect();
    assert_eq!(tokens, [Some(10), None, None, None, Some(14)]);
    let units: Vec<Option<u32>> = reply
        .outcomes
        .iter()
        .map(|outcome| match outcome {
            ReportOutcome::Applied { node, .. } => Some(node.granted),
            ReportOutcome::Closed | ReportOutcome::UnknownApplication => None,
        })
        .collect();
    assert_eq!(units, [Some(3), Some(4), None, Some(6), Some(7)]);
    assert_eq!(reply.outcomes[2], ReportOutcome::UnknownApplication);
}

#[tokio::test]
async fn many_nodes_at_once_never_get_more_than_the_minute() {
    needs!("postgresql");
    let store = fresh().await;
    let id = created(&store).await;
    let asks = (0..100).map(|node| granted_to(&store, id, node, wants(2)));
    let grants = futures_util::future::join_all(asks).await;
    let tokens: u32 = grants.iter().map(|grant| grant.tokens).sum();
    assert_eq!(tokens, 60);
}
