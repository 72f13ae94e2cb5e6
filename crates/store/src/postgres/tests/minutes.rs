//! Minute limits shared by nodes.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::*;
use scoregate_base::limits::{MinuteGrant, MinutePool, MinuteReport};

const SECOND: i64 = 1_000_000;

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

fn wants(round: u32, wanted: u32) -> MinuteReport {
    MinuteReport {
        round,
        wanted,
        limit: 60,
        lifetime: 60_000_000,
        ..MinuteReport::default()
    }
}

/// An exchange at `now` in microseconds.
async fn exchanged(
    store: &PostgresStore,
    exchange: &LedgerExchange,
    now: i64,
) -> Option<MinuteGrant> {
    let work = async |client: SchemaClient<'_>| {
        day_ledger::exchange(client, exchange, true, Some(now)).await
    };
    Box::pin(store.connection.run("test", work))
        .await
        .unwrap()
        .minutes[0]
}

#[test]
fn the_statements_follow_the_rules_of_shared_minutes() {
    needs!("postgresql");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let store = runtime.block_on(fresh());
    let numbers = (0u32..12, 0u32..70, -30i64..70, 0u32..140);
    let step = (
        0u64..3,
        numbers,
        prop_oneof![Just(60u32), Just(60), 1u32..120],
        0i64..50,
        any::<bool>(),
    );
    let config = Config {
        cases: 60,
        failure_persistence: None,
        ..Config::default()
    };
    let held = TestRunner::new(config).run(&prop::collection::vec(step, 1..20), |steps| {
        runtime.block_on(async {
            let application = created(&store).await;
            let mut now = 1_000 * SECOND;
            let mut pool = MinutePool::new(steps[0].2, 0);
            for (node, (round, kept, returned, wanted), limit, seconds, recalls) in steps {
                // A time that is no multiple of a second, and a report that goes back by one.
                now += (seconds - 1) * SECOND + seconds * 7_919;
                let returned = returned * 1_234_567;
                let lifetime = 30_000_000;
                let report = MinuteReport {
                    round,
                    kept,
                    returned,
                    wanted,
                    limit,
                    lifetime,
                    recalls,
                };
                let grant = exchanged(&store, &about(application, node, report), now).await;
                prop_assert_eq!(
                    grant,
                    Some(pool.apply(node, &report, now)),
                    "{:?} at {}",
                    report,
                    now
                );
            }
            Ok(())
        })
    });
    held.unwrap();
}

#[tokio::test]
async fn a_recall_reaches_nodes_with_a_share_until_they_return_it() {
    needs!("postgresql");
    let store = fresh().await;
    let id = created(&store).await;
    let exchange = async |node, minute| {
        let reply = store.exchange(about(id, node, minute)).await.unwrap();
        reply.minutes[0].unwrap()
    };
    assert_eq!(exchange(1, wants(1, 60)).await.tokens, 60 * SECOND);
    let recall = MinuteReport {
        recalls: true,
        ..wants(1, 20)
    };
    assert_eq!(exchange(2, recall).await.capacity, 0);
    assert_eq!(store.recalled(1).await.unwrap(), [id]);
    assert_eq!(store.recalled(2).await.unwrap(), []);
    let half = MinuteReport {
        kept: 30,
        returned: 30 * SECOND,
        ..wants(2, 30)
    };
    assert_eq!(exchange(1, half).await.capacity, 30);
    assert_eq!(store.recalled(1).await.unwrap(), []);
    let grant = exchange(2, wants(2, 20)).await;
    assert_eq!(
        (grant.capacity, grant.tokens, grant.pool_capacity),
        (20, 20 * SECOND, 10)
    );
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
        let minute = (number % 2 == 0).then(|| wants(1, 10 + number));
        let units = LedgerReport::of_units(application, NOON.day(), totals);
        reports.push(LedgerReport { minute, ..units });
    }
    let exchange = LedgerExchange {
        node: 1,
        today: NOON.day(),
        reports,
    };
    let reply = store.exchange(exchange).await.unwrap();
    let capacities: Vec<_> = reply
        .minutes
        .iter()
        .map(|grant| grant.map(|grant| grant.capacity))
        .collect();
    assert_eq!(capacities, [Some(10), None, None, None, Some(14)]);
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
    let asks = (0..100).map(|node| store.exchange(about(id, node, wants(1, 2))));
    let all = futures_util::future::join_all(asks).await;
    let grants = all
        .into_iter()
        .map(|reply| reply.unwrap().minutes[0].unwrap());
    let (capacity, tokens) = grants.fold((0, 0), |(capacity, tokens), grant| {
        (capacity + grant.capacity, tokens + grant.tokens)
    });
    assert_eq!(capacity, 60);
    assert!(tokens <= 61 * SECOND, "{tokens}");
}
