//! A gateway that can serve nobody is not ready while others serve, and becomes ready without a restart.

use std::time::Duration;

use tokio::runtime::Runtime;

use super::{
    load_balancer::{LoadBalancer, RestartedGateway, requests_during},
    *,
};
use crate::{
    links::{FaultyLink, LinkMode},
    postgres::OWNER,
};

const GATEWAYS: usize = 3;
/// The gateway whose link to the database fails.
const CUT_OFF: usize = 2;
/// How long one gateway is cut off after its restart.
const OUTAGE: Duration = Duration::from_secs(15);
/// Silence after the first missed deadline of a start. The load balancer uses a gateway after its next check.
const FURTHER_SILENCE: Duration = Duration::from_secs(3);
/// The default values of settings that other tests replace.
const TIMEOUTS: [(&str, &str); 3] = [
    ("SCOREGATE_STORE_TIMEOUT", "2s"),
    ("SCOREGATE_STORE_START_TIMEOUT", "10s"),
    ("SCOREGATE_STORE_GATEWAYS", "3"),
];

/// Three gateways behind the shipped load balancer; one has a link to the database that can be cut.
struct BalancedFleet {
    site: Site,
    key: String,
    link: FaultyLink,
    /// The URL of the database behind the link.
    url: String,
    gateways: [RestartedGateway; GATEWAYS],
    balancer: LoadBalancer,
    _runtime: Runtime,
}

impl BalancedFleet {
    fn start() -> (Self, [Option<Program>; GATEWAYS]) {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let link = FaultyLink::open(
            runtime.handle(),
            shared_server().directory.path().join(".s.PGSQL.5432"),
        );
        let site = Site::new();
        let (_, key) = site.create_with(&[
            "--tier",
            "enterprise",
            "--minute",
            "10000000",
            "--day",
            "2000000",
        ]);
        let gateways = [(); GATEWAYS].map(|()| RestartedGateway::new());
        let url = format!("postgresql://{OWNER}@{}/postgres", link.address);
        let balancer = LoadBalancer::shipped(&gateways);
        let fleet = Self {
            site,
            key,
            link,
            url,
            gateways,
            balancer,
            _runtime: runtime,
        };
        let programs = std::array::from_fn(|number| Some(fleet.started(number)));
        fleet.balancer.uses_all();
        (fleet, programs)
    }

    fn environment(&self, number: usize) -> Vec<(&str, &str)> {
        let mut environment = [&self.site.environment()[..], &TIMEOUTS].concat();
        if number == CUT_OFF {
            environment.push(("SCOREGATE_STORE_URL", &self.url));
        }
        environment
    }

    /// Starts a gateway, and waits until it has served a request and copied the key.
    fn started(&self, number: usize) -> Program {
        let gateway = &self.gateways[number];
        let program = gateway.start(&self.environment(number));
        let served = Wire::open(gateway.public()).unwrap().get(TARGET, &self.key);
        assert_eq!(served.status_and_code().0, 200);
        until_copied(&gateway.data_dir, &self.key);
        program
    }

    /// Interrupts the link of one gateway to the database.
    fn cut(&self) {
        self.link.set(LinkMode::Silent);
        self.link.cut();
    }

    fn ready(&self, number: usize) -> (u16, String) {
        probe(self.gateways[number].side(), "/readyz")
    }
}

#[test]
fn a_gateway_that_restarts_without_its_database_gets_no_requests_until_it_can_serve() {
    needs!("postgresql", "haproxy");
    within_one_day(|| {
        let (fleet, mut programs) = BalancedFleet::start();
        let mut probes = Vec::new();
        let (delivered, failed) = requests_during(fleet.balancer.address(), &fleet.key, || {
            fleet.cut();
            programs[CUT_OFF].take().unwrap().stop();
            let directory = fleet.gateways[CUT_OFF].data_dir.path();
            forget_grace(directory);
            programs[CUT_OFF] = Some(fleet.gateways[CUT_OFF].start(&fleet.environment(CUT_OFF)));
            let clock = Clock::system();
            let start = clock.mono();
            while clock.mono().since(start) < OUTAGE {
                probes.push(fleet.ready(CUT_OFF));
                std::thread::sleep(Duration::from_millis(100));
            }
            assert_eq!(
                probe(fleet.gateways[CUT_OFF].side(), "/healthz").0,
                200,
                "a restart would not help"
            );
            fleet.link.set(LinkMode::Forward);
            until(|| fleet.ready(CUT_OFF) == (200, "ready\n".into()));
            fleet.balancer.uses_all();
        });
        note(&format!(
            "cut off and restarted: {} of {delivered} failed: {:?}",
            failed.len(),
            failed.first()
        ));
        assert!(
            failed.len() * 200 < failed.len() + delivered as usize,
            "{} of {delivered}",
            failed.len()
        );
        assert!(delivered > 2_000, "{delivered}");
        let is_unready =
            |(status, text): &(u16, String)| *status == 503 && text.contains("local copy");
        assert!(
            probes.iter().all(is_unready),
            "{:?}",
            probes.iter().find(|found| !is_unready(found))
        );
    });
}

#[test]
fn a_rolling_update_in_which_the_database_is_silent_at_a_start_fails_no_request() {
    needs!("postgresql", "haproxy");
    within_one_day(|| {
        let (fleet, mut programs) = BalancedFleet::start();
        let (delivered, failed) = requests_during(fleet.balancer.address(), &fleet.key, || {
            for (number, program) in programs.iter_mut().enumerate() {
                program.take().unwrap().stop().with(0);
                fleet.balancer.excludes(number);
                if number == CUT_OFF {
                    fleet.cut();
                }
                let started = fleet.gateways[number].spawn(&fleet.environment(number));
                if number == CUT_OFF {
                    // The database did not answer within `store.timeout`.
                    started.logs("cannot use the database");
                    std::thread::sleep(FURTHER_SILENCE);
                    fleet.link.set(LinkMode::Forward);
                }
                started.public();
                *program = Some(started);
                fleet.balancer.uses_all();
            }
            until(|| fleet.ready(CUT_OFF) == (200, "ready\n".into()));
        });
        note(&format!(
            "silent at a start: {} of {delivered} failed: {:?}",
            failed.len(),
            failed.first()
        ));
        assert!(
            failed.is_empty(),
            "{} of {delivered}: {:?}",
            failed.len(),
            failed.first()
        );
        assert!(delivered > 500, "{delivered}");
        let log = programs[CUT_OFF].take().unwrap().stop().with(0).err;
        assert!(!log.contains("local copy of the keys"), "{log}");
    });
}
