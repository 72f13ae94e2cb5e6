//! Conformance checks of shares of a day's grace.

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

async fn claimed(store: &Store, claim: GraceClaim) -> Option<GraceShare> {
    store.claim_grace(claim).await.unwrap()
}

pub async fn a_share_of_grace_has_one_holder_until_its_next_process_returns_it(store: &Store) {
    let share = |number| Some(GraceShare { number, shares: 2 });
    let more = GraceClaim {
        gateways: 9,
        ..claim(2)
    };
    let tomorrow = GraceClaim {
        day: NOON.day().next(),
        ..claim(3)
    };
    let next = GraceClaim {
        held: share(0),
        life: 1,
        node: 4,
        ..claim(1)
    };
    let copy = GraceClaim { node: 5, ..next };
    for (claim, granted, reason) in [
        (claim(1), share(0), "the first one"),
        (claim(1), share(0), "a repeated claim"),
        (more, share(1), "the first claim sets the number of shares"),
        (claim(3), None, "both are held"),
        (tomorrow, share(0), "each day has separate shares"),
        (next, share(0), "the next process continues"),
        (next, share(0), "confirmed"),
        (claim(1), None, "an old copy of the data directory"),
        (copy, None, "a copy of the newest state"),
    ] {
        assert_eq!(claimed(store, claim).await, granted, "{reason}");
    }
    let of_next = held(
        next,
        GraceShare {
            number: 0,
            shares: 2,
        },
    );
    let another = HeldGraceShare {
        token: 7,
        ..of_next
    };
    for (returned, granted) in [(another, None), (of_next, share(0))] {
        store.return_grace(returned).await.unwrap();
        assert_eq!(claimed(store, claim(3)).await, granted, "{returned:?}");
    }
}

pub async fn claims_of_grace_made_at_once_get_shares_of_their_own(store: &Store) {
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

pub async fn a_claim_of_grace_for_a_future_day_keeps_the_shares_of_the_present_one(store: &Store) {
    let claim = |node, days| GraceClaim {
        gateways: 1,
        day: Day::from_number(NOON.day().number() + days),
        ..claim(node)
    };
    let all = Some(GraceShare {
        number: 0,
        shares: 1,
    });
    // Shares are claimed before a day is opened, and again afterwards.
    for (node, days) in [(2, 3), (3, 5)] {
        assert_eq!(claimed(store, claim(1, 0)).await, all);
        assert_eq!(claimed(store, claim(node, days)).await, all);
        assert_eq!(
            claimed(store, claim(4, 0)).await,
            None,
            "the share would be granted twice"
        );
        units(store, asking(created(store).await, NOON.day(), 1, 10)).await;
    }
}
