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

/// A report that requests 5 units and 20 tokens, and returns the units that are `known` as returned.
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
    let minute = Some(MinuteReport {
        wanted: 20,
        limit: 60,
        ..MinuteReport::default()
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

/// The totals of the node, the tokens granted to it, and whether its terms are outdated.
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
    (node, reply.minutes[0].unwrap().tokens, has_outdated_terms)
}

#[tokio::test]
async fn a_report_with_outdated_terms_is_granted_nothing_and_returns_units() {
    needs!("postgresql");
    let store = fresh().await;
    let id = created(&store).await;
    let (granted, tokens, is_outdated) = exchanged(
        &store,
        request(id, Some(terms("pro", None)), NodeTotals::default()),
    )
    .await;
    assert_eq!((granted.granted, tokens, is_outdated), (5, 20, false));

    let change = |what| StoreChange {
        at: NOON,
        who: "a test".into(),
        owner: None,
        application: id,
        what,
        notice: None,
    };
    store
        .change(change(ChangeKind::SetTier {
            tier: "free".into(),
        }))
        .await
        .unwrap();
    let returned = NodeTotals {
        returned: 2,
        ..granted
    };
    let (left, tokens, is_outdated) =
        exchanged(&store, request(id, Some(terms("pro", None)), returned)).await;
    assert_eq!((left, tokens, is_outdated), (returned, 0, true));

    let own = OwnLimits {
        minute: None,
        day: Some(7),
    };
    store
        .change(change(ChangeKind::SetLimits { own, until: None }))
        .await
        .unwrap();
    let (_, _, is_outdated) =
        exchanged(&store, request(id, Some(terms("free", None)), returned)).await;
    assert!(is_outdated);
    let current = request(
        id,
        Some(terms("free", Some(7))),
        NodeTotals {
            granted: 6,
            ..returned
        },
    );
    let (more, tokens, is_outdated) = exchanged(&store, current).await;
    assert_eq!((more.granted, tokens, is_outdated), (11, 20, false));
}

#[tokio::test]
async fn a_report_without_terms_is_not_compared() {
    needs!("postgresql");
    let store = fresh().await;
    let id = created(&store).await;
    let (granted, tokens, is_outdated) =
        exchanged(&store, request(id, None, NodeTotals::default())).await;
    assert_eq!((granted.granted, tokens, is_outdated), (5, 20, false));
}
