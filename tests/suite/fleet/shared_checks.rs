//! Health checks of the addresses of a backend: one gateway checks for all.

use std::time::Duration;

use tokio::runtime::Handle;

use crate::backend::{Backend, json, respond};
use crate::load_clients::Reply;

use super::*;

const GATEWAYS: usize = 4;
const INTERVAL: Duration = Duration::from_secs(1);
/// Intervals in which checks are counted.
const INTERVALS: usize = 8;
/// The longest wait for the results of a few checks.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// A backend whose health checks pass.
async fn address() -> Backend {
    Backend::start(|_| json(r#"{"success":true,"data":[]}"#)).await
}

/// Whether each gateway may use an address.
fn usable(gateways: &[SiteGateway], backend: &Backend) -> Vec<bool> {
    let series = format!(
        "scoregate_upstream_address_usable{{address=\"{}\"}} ",
        backend.address
    );
    let one = |gateway: &SiteGateway| {
        let Reply::Response { body, .. } = Wire::open(gateway.side).unwrap().get("/metrics", "")
        else {
            panic!("no metrics")
        };
        let value = body
            .lines()
            .find_map(|line| line.strip_prefix(&series).map(str::to_owned));
        value.unwrap_or_else(|| panic!("no {series} in {body}")) == "1"
    };
    gateways.iter().map(one).collect()
}

fn become_usable(gateways: &[SiteGateway], backend: &Backend, expected: bool) {
    let clock = Clock::system();
    let start = Clock::system().mono();
    while usable(gateways, backend).contains(&!expected) {
        assert!(
            clock.mono().since(start) < LONGEST_WAIT,
            "{:?}",
            usable(gateways, backend)
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_gateway_checks_each_address_and_all_apply_the_result() {
    needs!("postgresql");
    let one = address().await;
    let other = address().await;
    tokio::task::block_in_place(|| {
        let runtime = Handle::current();
        let site = Site::new();
        let urls = format!("{},{}", one.url(), other.url());
        let more = [
            ("SCOREGATE_UPSTREAM_URLS", &*urls),
            ("SCOREGATE_UPSTREAM_HEALTH_PATH", "/health"),
            ("SCOREGATE_UPSTREAM_HEALTH_INTERVAL", "1s"),
        ];
        let gateways: Vec<_> = (0..GATEWAYS).map(|_| site.gateway_before(&more)).collect();
        let checks = |backend: &Backend| {
            backend
                .received()
                .iter()
                .filter(|received| received.target().ends_with("/health"))
                .count()
        };
        let before = [&one, &other].map(checks);
        runtime.block_on(Clock::system().sleep(INTERVAL * u32::try_from(INTERVALS).unwrap()));
        for (backend, before) in [(&one, before[0]), (&other, before[1])] {
            let checks = checks(backend) - before;
            note(&format!(
                "{checks} checks of an address by {GATEWAYS} gateways in {INTERVALS} intervals"
            ));
            // An interval may begin before the first and end after the last.
            assert!(checks > 0 && checks <= INTERVALS + 2, "{checks} checks");
        }
        assert!(!usable(&gateways, &one).contains(&false));
        one.set_script(|_| respond("500 Internal Server Error", &[], ""));
        become_usable(&gateways, &one, false);
        assert!(!usable(&gateways, &other).contains(&false));
        one.set_script(|_| json(r#"{"success":true,"data":[]}"#));
        become_usable(&gateways, &one, true);
    });
}
