//! Conformance checks of windows that are longer than a day.

use futures_util::future::join_all;
use scoregate_base::limits::{CalendarQuota, LimitRule, Window};

use super::{attachments::attach, *};

/// A request for units of a day, with the quota of its month, if any.
#[derive(Clone, Copy)]
struct MonthRequest {
    application: ApplicationId,
    node: u64,
    day: Day,
    want: u32,
    month: Option<u32>,
}

/// The units granted to a request, and the units granted in its month.
type Brought = (u32, Option<u64>);

/// A day of the month in which the checks begin.
fn day(number: u32) -> Day {
    let [first, _] = NOON.day().month(1);
    Day::from_number(first.number() + number - 1)
}

fn asks(application: ApplicationId, number: u32, want: u32, month: u32) -> MonthRequest {
    MonthRequest {
        application,
        node: 1,
        day: day(number),
        want,
        month: Some(month),
    }
}

impl MonthRequest {
    fn report(self, known: NodeTotals, granted: u32, quota: u32) -> LedgerReport {
        let totals = NodeReport {
            known,
            granted,
            quota,
        };
        let window = Window::around(self.day, LimitRule::Month, 1).unwrap();
        let limit = self.month.map(|quota| CalendarQuota { window, quota });
        LedgerReport {
            windows: limit.into_iter().collect(),
            ..LedgerReport::of_units(self.application, self.day, totals)
        }
    }
}

async fn sent(store: &Store, node: u64, today: Day, report: LedgerReport) -> Brought {
    let reports = vec![report];
    let exchange = LedgerExchange {
        node,
        today,
        reports,
    };
    let reply = store.exchange(exchange).await.unwrap();
    let [ReportOutcome::Applied { node, .. }] = reply.outcomes[..] else {
        panic!("{reply:?}");
    };
    let windows = reply.windows.first().and_then(|windows| windows.first());
    (node.held(), windows.map(|units| units.granted))
}

async fn leased(store: &Store, request: MonthRequest) -> Brought {
    let report = request.report(NodeTotals::default(), request.want, 10);
    sent(store, request.node, request.day, report).await
}

pub async fn a_grant_fits_into_the_month_and_a_return_leaves_it(store: &Store) {
    let id = created(store).await;
    assert_eq!(leased(store, asks(id, 20, 8, 12)).await, (8, Some(8)));
    assert_eq!(
        leased(store, asks(id, 20, 8, 12)).await,
        (8, Some(8)),
        "repeated"
    );
    assert_eq!(leased(store, asks(id, 21, 8, 12)).await, (4, Some(12)));
    let nothing = MonthRequest {
        node: 2,
        ..asks(id, 21, 5, 12)
    };
    assert_eq!(leased(store, nothing).await, (0, Some(12)));
    let known = NodeTotals {
        granted: 4,
        returned: 3,
    };
    let returned = asks(id, 21, 0, 12).report(known, 0, 0);
    assert_eq!(sent(store, 1, day(21), returned).await, (1, Some(9)));
    assert_eq!(leased(store, nothing).await, (3, Some(12)));
}

pub async fn a_month_ends_with_its_last_day(store: &Store) {
    let id = created(store).await;
    let [_, next] = NOON.day().month(1);
    let last = next.number() - day(1).number();
    assert_eq!(leased(store, asks(id, last, 9, 9)).await, (9, Some(9)));
    assert_eq!(leased(store, asks(id, last + 1, 7, 9)).await, (7, Some(7)));
}

pub async fn a_month_counts_its_days_before_and_while_no_limit_needs_it(store: &Store) {
    let id = created(store).await;
    let unlimited = |number, want| MonthRequest {
        month: None,
        ..asks(id, number, want, 0)
    };
    assert_eq!(leased(store, unlimited(3, 5)).await, (5, None));
    assert_eq!(leased(store, unlimited(4, 6)).await, (6, None));
    assert_eq!(leased(store, asks(id, 5, 2, 100)).await, (2, Some(13)));
    assert_eq!(leased(store, unlimited(6, 4)).await, (4, None));
    assert_eq!(leased(store, asks(id, 7, 9, 20)).await, (3, Some(20)));
    let other = created(store).await;
    assert_eq!(leased(store, asks(other, 7, 9, 20)).await, (9, Some(9)));
}

pub async fn units_of_yesterday_are_returned_to_the_month(store: &Store) {
    let id = created(store).await;
    assert_eq!(leased(store, asks(id, 8, 10, 10)).await, (10, Some(10)));
    assert_eq!(leased(store, asks(id, 9, 5, 10)).await, (0, Some(10)));
    let known = NodeTotals {
        granted: 10,
        returned: 6,
    };
    let returned = asks(id, 8, 0, 10).report(known, 0, 0);
    assert_eq!(sent(store, 1, day(9), returned).await, (4, Some(4)));
    assert_eq!(leased(store, asks(id, 9, 5, 10)).await, (5, Some(9)));
}

pub async fn a_final_report_finds_and_returns_units_whose_grant_was_not_answered(store: &Store) {
    let id = created(store).await;
    // The node got no reply to its first lease, and spent four units of the second one.
    for (number, spent) in [(8, 0), (9, 4)] {
        leased(store, asks(id, number, 9, 100)).await;
        let last = asks(id, number, 0, 100).report(
            NodeTotals {
                granted: spent,
                returned: 0,
            },
            0,
            0,
        );
        let exchange = LedgerExchange {
            node: 1,
            today: day(number + 1),
            reports: vec![last.clone()],
        };
        let reply = store.exchange(exchange).await.unwrap();
        let found = LedgerReport::of_unknown_units(&last, &reply.outcomes[0]).unwrap();
        let settled = sent(store, 1, day(number + 1), found.clone()).await;
        assert_eq!(settled.0, spent);
        let outcome = ReportOutcome::Applied {
            node: found.totals.known,
            granted: 0,
            has_outdated_terms: false,
        };
        for report in [&last, &found] {
            assert_eq!(
                LedgerReport::of_unknown_units(report, &outcome),
                None,
                "returned twice"
            );
        }
    }
    assert_eq!(leased(store, asks(id, 10, 0, 100)).await, (0, Some(4)));
}

pub async fn a_closed_day_stays_closed_and_uncounted_after_returns(store: &Store) {
    let id = created(store).await;
    let closed = asking(id, day(14), u32::MAX, u32::MAX);
    assert_eq!(units(store, closed).await, u32::MAX);
    store.give_back(closed, 5).await.unwrap();
    assert_eq!(units(store, asking(id, day(14), 1, 10)).await, 0);
    assert_eq!(leased(store, asks(id, 15, 3, 20)).await, (3, Some(3)));
}

pub async fn leases_of_two_days_at_once_never_exceed_the_month(store: &Store) {
    let id = created(store).await;
    let today = day(10);
    let ask = |node: u64| {
        let number = if node.is_multiple_of(2) { 10 } else { 11 };
        let request = MonthRequest {
            node,
            ..asks(id, number, 3, 100)
        };
        let report = request.report(NodeTotals::default(), 3, 500);
        sent(store, node, today, report)
    };
    let all = join_all((0..120).map(ask)).await;
    assert_eq!(all.iter().map(|(units, _)| units).sum::<u32>(), 100);
}

pub async fn days_of_one_exchange_share_their_month(store: &Store) {
    let id = created(store).await;
    let reports = [12, 13]
        .map(|number| asks(id, number, 8, 10).report(NodeTotals::default(), 8, 10))
        .to_vec();
    let exchange = LedgerExchange {
        node: 1,
        today: day(12),
        reports,
    };
    let reply = store.exchange(exchange).await.unwrap();
    let units: Vec<u32> = reply
        .outcomes
        .iter()
        .map(|outcome| match outcome {
            ReportOutcome::Applied { node, .. } => node.granted,
            ReportOutcome::Closed | ReportOutcome::UnknownApplication => 0,
        })
        .collect();
    assert_eq!(units, [8, 2]);
}

/// Units of an owner's day and month, requested for an application.
async fn ask_owner(store: &Store, application: ApplicationId, number: u32, node: u64) -> Brought {
    let request = MonthRequest {
        month: None,
        ..asks(application, number, 8, 0)
    };
    let limit = |(rule, quota)| CalendarQuota {
        window: Window::around(request.day, rule, 1).unwrap(),
        quota,
    };
    let limits = [(LimitRule::OwnerDay, 12), (LimitRule::OwnerMonth, 15)].map(limit);
    let report = LedgerReport {
        windows: limits.to_vec(),
        ..request.report(NodeTotals::default(), 8, 10)
    };
    sent(store, node, request.day, report).await
}

pub async fn applications_of_an_owner_share_its_windows(store: &Store) {
    let owner = signed_up(store, "ann@example.org").await.id;
    let one = application_of(store, owner, 3).await;
    let other = application_of(store, owner, 3).await;
    let alone = created(store).await;
    let ask = async |application, number, node| ask_owner(store, application, number, node).await;
    assert_eq!(ask(one, 20, 1).await, (8, Some(8)));
    assert_eq!(ask(other, 20, 1).await, (4, Some(12)), "of the owner's day");
    assert_eq!(ask(alone, 20, 1).await, (8, None), "without an owner");
    assert_eq!(ask(one, 21, 1).await, (3, Some(3)), "of the owner's month");
    make(store, other, ChangeKind::Close).await;
    assert_eq!(
        ask(one, 21, 2).await,
        (0, Some(3)),
        "units of a closed application still count"
    );
}

pub async fn returns_of_an_attached_application_leave_the_units_of_its_owner(store: &Store) {
    let one = created(store).await;
    attach(store, one, "ann@example.org", "1").await;
    assert_eq!(ask_owner(store, one, 20, 1).await, (8, Some(8)));
    let other = created(store).await;
    let first = MonthRequest {
        month: None,
        ..asks(other, 20, 6, 0)
    };
    assert_eq!(leased(store, first).await, (6, None));
    attach(store, other, "ann@example.org", "2").await;
    let known = NodeTotals {
        granted: 6,
        returned: 6,
    };
    let returned = first.report(known, 0, 0);
    assert_eq!(sent(store, 1, day(20), returned).await, (0, None));
    assert_eq!(
        ask_owner(store, one, 20, 2).await,
        (2, Some(10)),
        "of its day"
    );
    let more = ask_owner(store, other, 20, 2).await;
    assert_eq!(more, (2, Some(12)), "of the owner's day");
    assert_eq!(
        ask_owner(store, one, 21, 1).await,
        (3, Some(3)),
        "of the month"
    );
}
