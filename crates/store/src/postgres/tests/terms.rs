//! Reports that assume terms of an application.

use super::*;
use crate::AssumedTerms;
use scoregate_base::limits::MinuteReport;

fn terms(tier: &str, day: Option<u32>) -> AssumedTerms {
    AssumedTerms {
        tier: tier.into(),
        own: OwnLimits { minute: None, day },
    }
}

/// A report that requests 5 units and a capacity of 20, and returns what it `knows` as returned.
fn request(
    application: ApplicationId,
    terms: Option<AssumedTerms>,
    known: NodeTotals,
) -> LedgerExchange {
    let totals = NodeReport {
        known,
        granted: known.granted + 5,
        quota: 500,
    };
    let minute = MinuteReport {
        wanted: 20,
        limit: 60,
        lifetime: 60_000_000,
        ..MinuteReport::default()
    };
    // Each report about a minute has a higher number.
    let minute = Some(MinuteReport {
        round: known.granted + 1,
        ..minute
    });
    let report = LedgerReport::of_units(application, NOON.day(), totals);
    LedgerExchange {
        node: 1,
        today: NOON.day(),
        reports: vec![LedgerReport {
            minute,
            terms,
            ..report
        }],
    }
}

/// The totals of the node, the capacity of its share, and whether its terms are outdated.
async fn exchanged(store: &PostgresStore, exchange: LedgerExchange) -> (NodeTotals, u32, bool) {
    let reply = store.exchange(exchange).await.unwrap();
    let ReportOutcome::Applied {
        node,
        has_outdated_terms,
        ..
    } = reply.outcomes[0]
    else {
        panic!("{reply:?}")
    };
    (node, reply.minutes[0].unwrap().capacity, has_outdated_terms)
}

#[tokio::test]
async fn a_report_with_outdated_terms_is_granted_nothing_and_returns_units() {
    needs!("postgresql");
    let store = fresh().await;
    let id = created(&store).await;
    let first = request(id, Some(terms("free", None)), NodeTotals::default());
    let (granted, capacity, is_outdated) = exchanged(&store, first).await;
    assert_eq!((granted.granted, capacity, is_outdated), (5, 20, false));

    make(&store, id, to_tier("pro")).await;
    let returned = NodeTotals {
        returned: 2,
        ..granted
    };
    let outdated = request(id, Some(terms("free", None)), returned);
    let (left, capacity, is_outdated) = exchanged(&store, outdated).await;
    assert_eq!((left, capacity, is_outdated), (returned, 0, true));

    let own = OwnLimits {
        minute: None,
        day: Some(7),
    };
    make(&store, id, ChangeKind::SetLimits { own, until: None }).await;
    let outdated = request(id, Some(terms("pro", None)), returned);
    assert!(exchanged(&store, outdated).await.2);
    let known = NodeTotals {
        granted: 6,
        ..returned
    };
    let current = request(id, Some(terms("pro", Some(7))), known);
    let (more, capacity, is_outdated) = exchanged(&store, current).await;
    assert_eq!((more.granted, capacity, is_outdated), (11, 20, false));
    let without = request(created(&store).await, None, NodeTotals::default());
    let (granted, capacity, is_outdated) = exchanged(&store, without).await;
    assert_eq!(
        (granted.granted, capacity, is_outdated),
        (5, 20, false),
        "they are not compared"
    );
}
