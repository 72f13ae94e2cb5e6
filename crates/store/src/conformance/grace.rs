//! Shares of a day's grace.

use super::*;
use scoregate_base::limits::{GraceClaim, GraceShare};

fn claim(node: u64) -> GraceClaim {
    GraceClaim {
        day: NOON.day(),
        gateways: 2,
        held: None,
        token: 10 + node,
        life: 0,
        node,
    }
}

fn held(claim: GraceClaim, share: GraceShare) -> HeldGraceShare {
    HeldGraceShare {
        day: claim.day,
        share,
        token: claim.token,
        life: claim.life,
    }
}

pub(crate) async fn shares_of_grace_have_one_holder_until_they_are_returned(store: &dyn Store) {
    let claimed = |claim| async move { store.claim_grace(claim).await.unwrap() };
    let share = |number| Some(GraceShare { number, shares: 2 });
    assert_eq!(claimed(claim(1)).await, share(0));
    assert_eq!(claimed(claim(1)).await, share(0), "a repeated claim");
    let more = GraceClaim {
        gateways: 9,
        ..claim(2)
    };
    assert_eq!(
        claimed(more).await,
        share(1),
        "the first holder has fixed the number"
    );
    assert_eq!(claimed(claim(3)).await, None);
    let tomorrow = GraceClaim {
        day: NOON.day().next(),
        ..claim(3)
    };
    assert_eq!(
        claimed(tomorrow).await,
        share(0),
        "a day has shares of its own"
    );
    store
        .return_grace(HeldGraceShare {
            token: 7,
            ..held(claim(1), share(0).unwrap())
        })
        .await
        .unwrap();
    assert_eq!(
        claimed(claim(3)).await,
        None,
        "another token returns nothing"
    );
    store
        .return_grace(held(claim(1), share(0).unwrap()))
        .await
        .unwrap();
    assert_eq!(claimed(claim(3)).await, share(0));
}

pub(crate) async fn a_share_of_grace_is_continued_by_the_next_process_only(store: &dyn Store) {
    let claimed = |claim| async move { store.claim_grace(claim).await.unwrap() };
    let first = claimed(claim(1)).await;
    let next = GraceClaim {
        held: first,
        life: 1,
        node: 2,
        ..claim(1)
    };
    assert_eq!(claimed(next).await, first);
    assert_eq!(claimed(next).await, first, "confirmed");
    for late in [claim(1), GraceClaim { node: 3, ..next }] {
        assert_eq!(claimed(late).await, None, "a copy of the data directory");
    }
    // A failover lost the row.
    store
        .return_grace(held(next, first.unwrap()))
        .await
        .unwrap();
    assert_eq!(claimed(next).await, first);
    assert_eq!(
        claimed(GraceClaim {
            held: first,
            ..claim(4)
        })
        .await,
        None,
        "its holder is another one"
    );
}

pub(crate) async fn claims_of_grace_made_at_once_get_shares_of_their_own(store: &dyn Store) {
    let claims = (0..12).map(|node| {
        store.claim_grace(GraceClaim {
            gateways: 8 + u32::try_from(node).unwrap() % 3,
            ..claim(node)
        })
    });
    let shares = futures_util::future::join_all(claims).await;
    let got: Vec<GraceShare> = shares.into_iter().filter_map(Result::unwrap).collect();
    let of = got[0].shares;
    assert!(got.iter().all(|share| share.shares == of), "{got:?}");
    let mut numbers: Vec<u32> = got.iter().map(|share| share.number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..of).collect::<Vec<u32>>());
}

pub(crate) async fn a_claim_of_grace_for_a_future_day_keeps_the_shares_of_the_present_one(
    store: &dyn Store,
) {
    let claimed = |claim| async move { store.claim_grace(claim).await.unwrap() };
    let claim = |node, days| GraceClaim {
        gateways: 1,
        day: Day::from_number(NOON.day().number() + days),
        ..claim(node)
    };
    let all = Some(GraceShare {
        number: 0,
        shares: 1,
    });
    // Before a day is opened, and after.
    for (node, days) in [(2, 3), (3, 5)] {
        assert_eq!(claimed(claim(1, 0)).await, all);
        assert_eq!(claimed(claim(node, days)).await, all);
        assert_eq!(
            claimed(claim(4, 0)).await,
            None,
            "the share would be granted twice"
        );
        units(store, asking(created(store).await, NOON.day(), 1, 10)).await;
    }
}
