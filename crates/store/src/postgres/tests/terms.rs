//! Reports that assume certain application terms.

use super::*;
use crate::AssumedTerms;
use scoregate_base::limits::MinuteReport;

fn terms(tier: &str, day: Option<u32>) -> AssumedTerms {
    AssumedTerms {
        tier: tier.into(),
        own: OwnLimits::NONE.with(LimitSetting::Day, day),
    }
}

/// A report that requests 5 units and 20 tokens and repeats the returned units in `known`.
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

/// The totals of the node, the tokens granted to it, and whether the terms are outdated.
async fn exchanged(store: &Store, exchange: LedgerExchange) -> (NodeTotals, u32, bool) {
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
    let first = request(id, Some(terms("free", None)), NodeTotals::default());
    let (granted, tokens, is_outdated) = exchanged(&store, first).await;
    assert_eq!((granted.granted, tokens, is_outdated), (5, 20, false));

    make(&store, id, to_tier("pro")).await;
    let returned = NodeTotals {
        returned: 2,
        ..granted
    };
    let outdated = request(id, Some(terms("free", None)), returned);
    let (left, tokens, is_outdated) = exchanged(&store, outdated).await;
    assert_eq!((left, tokens, is_outdated), (returned, 0, true));

    let own = OwnLimits::NONE.with(LimitSetting::Day, 7);
    make(&store, id, limits_set(own, None)).await;
    let outdated = request(id, Some(terms("pro", None)), returned);
    assert!(exchanged(&store, outdated).await.2);
    let known = NodeTotals {
        granted: 6,
        ..returned
    };
    let current = request(id, Some(terms("pro", Some(7))), known);
    let (more, tokens, is_outdated) = exchanged(&store, current).await;
    assert_eq!((more.granted, tokens, is_outdated), (11, 20, false));
    let without = request(created(&store).await, None, NodeTotals::default());
    let (granted, tokens, is_outdated) = exchanged(&store, without).await;
    assert_eq!(
        (granted.granted, tokens, is_outdated),
        (5, 20, false),
        "they are not compared"
    );
}
