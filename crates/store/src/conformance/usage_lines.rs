//! Conformance checks of the units of closed days.

use super::*;

/// Records responses with content for each entry, and closes the days that ended three days before `NOON` or earlier.
async fn close_with(store: &Store, used: &[(ApplicationId, Day, u64)]) {
    open_day(store, before(5)).await;
    for (node, (application, day, units)) in (1..).zip(used) {
        let totals = vec![total(*application, *day, MODELS, *units)];
        store.record_requests(node, totals).await.unwrap();
    }
    open_day(store, NOON.day()).await;
    delete_outdated(store).await;
}

async fn lines(store: &Store, day: Day, owner: Option<OwnerId>) -> Option<Vec<UsageTotal>> {
    let usage = store.usage(day, usize::MAX, owner).await.unwrap();
    usage.is_closed.then_some(usage.totals)
}

pub async fn a_closed_day_has_a_line_for_each_application_with_units(store: &Store) {
    let [one, two, missing] = [created(store).await, created(store).await, an_id()];
    let me = ("me", RequestOutcome::Ok);
    open_day(store, before(5)).await;
    let unpaid = vec![total(two, before(4), me, 7), total(one, before(4), me, 7)];
    store.record_requests(9, unpaid).await.unwrap();
    let used = [
        (one, before(4), 5),
        (one, before(4), 6),
        (missing, before(4), 2),
        (two, before(3), 1),
        (two, before(2), 8),
    ];
    close_with(store, &used).await;
    let line = |application, day, tier: Option<&str>, units| UsageTotal {
        account: None,
        application,
        day,
        id: format!("{day}_{application}"),
        tier: tier.map(Into::into),
        units,
    };
    let expected = vec![
        line(one, before(4), Some("free"), 11),
        line(missing, before(4), None, 2),
    ];
    assert_eq!(lines(store, before(4), None).await, Some(expected));
    let later = vec![line(two, before(3), Some("free"), 1)];
    assert_eq!(lines(store, before(3), None).await, Some(later));
    assert_eq!(lines(store, before(6), None).await, Some(Vec::new()));
    for day in [before(2), NOON.day(), NOON.day().next()] {
        assert_eq!(lines(store, day, None).await, None, "{day}");
    }
}

pub async fn a_day_is_open_until_all_its_reports_are_merged(store: &Store) {
    let one = created(store).await;
    open_day(store, before(4)).await;
    let totals = vec![total(one, before(4), MODELS, 5)];
    store.record_requests(1, totals).await.unwrap();
    open_day(store, NOON.day()).await;
    assert_eq!(lines(store, before(4), None).await, None);
    delete_outdated(store).await;
    assert_eq!(lines(store, before(4), None).await.unwrap().len(), 1);
}

pub async fn a_line_keeps_the_account_and_the_tier_of_its_day(store: &Store) {
    let ann = signed_up(store, "ann@example.org").await.id;
    let bob = signed_up(store, "bob@example.org").await.id;
    let [closed, moved] = [(); 2].map(|()| application_of(store, ann, 2));
    let [closed, moved] = [closed.await, moved.await];
    let of_bob = application_of(store, bob, 1).await;
    let used = [closed, moved, of_bob].map(|id| (id, before(4), 3));
    // The tier changes before the day is merged.
    open_day(store, before(4)).await;
    let early = vec![total(moved, before(4), ("index", RequestOutcome::Ok), 1)];
    store.record_requests(7, early).await.unwrap();
    make(store, moved, to_tier("pro")).await;
    close_with(store, &used).await;
    let day = before(4);
    let before_changes = lines(store, day, None).await.unwrap();
    let tiers: Vec<_> = before_changes
        .iter()
        .map(|line| line.tier.as_deref())
        .collect();
    assert_eq!(tiers, [Some("free"); 3]);
    make(store, moved, to_tier("teams")).await;
    make(store, closed, ChangeKind::Close).await;
    make(store, of_bob, to_tier("teams")).await;
    assert_eq!(lines(store, day, None).await, Some(before_changes.clone()));
    for (owner, count) in [(ann, 2), (bob, 1)] {
        let of_owner = before_changes
            .iter()
            .filter(|line| line.account == Some(owner));
        let of_owner: Vec<_> = of_owner.cloned().collect();
        assert_eq!(of_owner.len(), count);
        assert_eq!(lines(store, day, Some(owner)).await, Some(of_owner));
    }
}

pub async fn units_of_the_day_on_which_an_application_was_closed_have_its_account(store: &Store) {
    let ann = signed_up(store, "ann@example.org").await.id;
    let id = application_of(store, ann, 1).await;
    let close = StoreChange {
        at: before(4).start(),
        ..changing(id, ChangeKind::Close)
    };
    store.change(close).await.unwrap();
    // The last report arrives after the application was closed.
    close_with(store, &[(id, before(4), 3)]).await;
    let lines = lines(store, before(4), Some(ann)).await.unwrap();
    assert_eq!(
        (lines.len(), lines[0].account, lines[0].units),
        (1, Some(ann), 3)
    );
}
