//! Lower limits apply to all gateways together, including their existing leases.

use super::*;

/// Sends requests to all gateways in turn until each has refused one, and returns the number of 200s.
fn served_by_all(gateways: &[SiteGateway], key: &str) -> u32 {
    gateways
        .iter()
        .map(|gateway| use_up(gateway.public, key))
        .sum()
}

/// Sets limits, and waits until every gateway has applied them.
fn set_limits(site: &Site, gateways: &[SiteGateway], id: &str, limits: &[&str]) {
    let (marker_id, marker) = site.create("10");
    for gateway in gateways {
        gateway.reaches(&marker, 200);
    }
    let arguments = [&["keys", "set-limits", id], limits].concat();
    run_with(&arguments, &site.environment()).with(0);
    // Changes are applied in order.
    run_with(&["keys", "revoke", &marker_id], &site.environment()).with(0);
    for gateway in gateways {
        gateway.reaches(&marker, 401);
    }
}

#[test]
fn after_a_lower_daily_limit_gateways_deliver_what_is_left_of_it_and_no_more() {
    needs!("postgresql");
    within_one_day(|| {
        let site = Site::new();
        let (id, key) = site.create("100000");
        let gateways = [site.gateway(), site.gateway(), site.gateway()];
        // Each gateway has leased more than it used.
        for gateway in &gateways {
            let mut connection = Wire::open(gateway.public).unwrap();
            assert!((0..50).all(|_| connection.get(TARGET, &key).status_and_code().0 == 200));
        }
        set_limits(
            &site,
            &gateways,
            &id,
            &["--minute", "1000000", "--day", "170"],
        );
        let clock = Clock::system();
        let start = clock.mono();
        let mut served = 150;
        while clock.mono().since(start).as_secs() < 2 * PROPAGATION && served < 170 {
            served += served_by_all(&gateways, &key);
        }
        assert_eq!(served + served_by_all(&gateways, &key), 170);

        set_limits(
            &site,
            &gateways,
            &id,
            &["--minute", "1000000", "--day", "180"],
        );
        gateways[2].reaches(&key, 200);
    });
}

#[test]
fn after_a_lower_minute_limit_gateways_have_what_is_left_of_it() {
    needs!("postgresql");
    let site = Site::new();
    let (id, key) = site.create_with(&["--tier", "enterprise"]);
    let gateways = [site.gateway(), site.gateway(), site.gateway()];
    for gateway in &gateways {
        let mut connection = Wire::open(gateway.public).unwrap();
        assert!((0..50).all(|_| connection.get(TARGET, &key).status_and_code().0 == 200));
    }
    set_limits(&site, &gateways, &id, &["--minute", "6"]);
    // Use the remaining tokens of the old limit.
    served_by_all(&gateways, &key);
    let clock = Clock::system();
    let start = clock.mono();
    let mut served = 0;
    while clock.mono().since(start).as_secs() < 15 {
        served += served_by_all(&gateways, &key);
    }
    // One token every ten seconds, and at most one from before.
    let most = 2 + u32::try_from(clock.mono().since(start).as_secs() / 10).unwrap();
    assert!(
        (1..=most).contains(&served),
        "{served} were served, of at most {most}"
    );
}
