//! A rolling restart of three gateways behind `HAProxy`, which sends no request twice.

use super::{
    load_balancer::{LoadBalancer, RestartedGateway, requests_during},
    *,
};

/// More than `HAProxy` needs to notice a failed check on a busy machine.
const SHUTDOWN_DELAY: (&str, &str) = ("SCOREGATE_SERVER_SHUTDOWN_DELAY", "3s");

#[test]
fn a_rolling_restart_behind_a_load_balancer_fails_no_request_and_loses_no_unit() {
    needs!("postgresql", "haproxy");
    within_one_day(|| {
        let site = Site::new();
        let (id, key) = site.create_with(&[
            "--tier",
            "enterprise",
            "--minute",
            "10000000",
            "--day",
            "2000000",
        ]);
        let gateways = [(); 3].map(|()| RestartedGateway::new());
        let environment = [&site.environment()[..], &[SHUTDOWN_DELAY]].concat();
        let mut programs = gateways
            .each_ref()
            .map(|gateway| Some(gateway.start(&environment)));
        let balancer = LoadBalancer::without_retries(&gateways);
        balancer.uses_all();
        let (delivered, failed) = requests_during(balancer.address(), &key, || {
            for (gateway, program) in gateways.iter().zip(&mut programs) {
                program.take().unwrap().stop().with(0);
                *program = Some(gateway.start(&environment));
                balancer.uses_all();
            }
        });
        assert!(
            failed.is_empty(),
            "{} of {delivered} requests failed: {:?}",
            failed.len(),
            failed.first()
        );
        assert!(delivered > 500, "{delivered}");
        for program in programs.into_iter().flatten() {
            program.stop().with(0);
        }
        let shown = run_with(&["keys", "show", &id, "--json"], &site.environment())
            .with(0)
            .json();
        assert_eq!(shown["granted_today"], delivered, "{shown}");
    });
}
