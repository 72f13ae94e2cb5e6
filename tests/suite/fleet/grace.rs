//! Grace while the database is unreachable. Every gateway delivers its share to every paid application. Restarts and
//! copies of a data directory add nothing. A refusal for lack of units or minute tokens does not count as a refusal by
//! a limit.
//!
//! `SCOREGATE_FULL=1` runs the outage for ten minutes and writes the figures to `tests/results/`.

use std::{path::Path, time::Duration};

use super::{
    faults::{DAY, offset_to_midnight},
    minutes::served,
    without_database::{ObservedGateway, SETTINGS, digest, restartable_site},
    *,
};
use crate::{
    fake_clock::FakeClock,
    full_runs::{BUILD, CARGO_TEST, cores, write_page},
};

const GATEWAYS: usize = 3;
const SHARE: &str = "scoregate_grace_share";
const GRACE_DECISIONS: &str = "scoregate_ledger_unreachable_decisions_total{decision=\"grace\"}";

/// The size of an outage.
struct OutageSize {
    quota: u32,
    /// Requests of each client, and the pause after each.
    requests: u32,
    pause: Duration,
}

const SMALL: OutageSize = OutageSize {
    quota: 36_000,
    requests: 100,
    pause: Duration::from_millis(20),
};
const FULL: OutageSize = OutageSize {
    quota: 600_000,
    requests: 1_500,
    pause: Duration::from_millis(400),
};

/// Sends requests and returns the number of 200s.
fn paced(public: SocketAddr, key: &str, size: &OutageSize) -> u32 {
    let mut connection = Wire::open(public).unwrap();
    let mut served = 0;
    for _ in 0..size.requests {
        served += u32::from(connection.get(TARGET, key).status_and_code().0 == 200);
        std::thread::sleep(size.pause);
    }
    served
}

fn started(site: &Site) -> ObservedGateway {
    let gateway = ObservedGateway::start(site, TempDir::new().unwrap());
    until(|| gateway.metric(SHARE) == "1");
    gateway
}

fn granted_today(site: &Site, id: &str) -> u64 {
    let shown = run_with(&["keys", "show", id, "--json"], &site.environment())
        .with(0)
        .json();
    shown["granted_today"].as_u64().unwrap()
}

#[test]
fn without_the_database_every_gateway_serves_every_paid_application_until_its_share_is_used() {
    needs!("postgresql");
    let outage = if is_full_size() { FULL } else { SMALL };
    within_one_day(|| {
        let (mut server, site) = restartable_site();
        let applications = [
            site.create(&outage.quota.to_string()),
            site.create(&outage.quota.to_string()),
        ];
        let gateways = [(); GATEWAYS].map(|()| started(&site));
        // The first application was used at one gateway only, the second one at none.
        assert_eq!(gateways[0].gateway.status(&applications[0].1), 200);
        for gateway in &gateways {
            for (_, key) in &applications {
                gateway.copies(&digest(key));
            }
        }
        server.stop();
        let clients = gateways
            .iter()
            .flat_map(|gateway| applications.iter().map(move |one| (gateway, one)));
        let paced: Vec<u32> = std::thread::scope(|scope| {
            let outage = &outage;
            let clients: Vec<_> = clients
                .clone()
                .map(|(gateway, (_, key))| {
                    let public = gateway.gateway.public;
                    scope.spawn(move || paced(public, key, outage))
                })
                .collect();
            clients
                .into_iter()
                .map(|client| client.join().unwrap())
                .collect()
        });
        let until_used: Vec<u32> = clients
            .map(|(gateway, (_, key))| gateway.served_until(key, "overloaded"))
            .collect();
        let decisions: Vec<String> = gateways
            .iter()
            .map(|gateway| gateway.metric(GRACE_DECISIONS))
            .collect();
        let totals = [0, 1].map(|number| {
            let of_one = |all: &[u32]| all.iter().skip(number).step_by(2).sum::<u32>();
            of_one(&paced) + of_one(&until_used)
        });
        let rows = format!(
            "200s for {} requests at each gateway, by application: {paced:?}; then until the shares were used up: {until_used:?}; \
             in total {totals:?}; grace {}; grace units by gateway: {decisions:?}",
            outage.requests,
            outage.quota / 100
        );
        note(&rows);
        assert!(
            paced
                .iter()
                .all(|served| served * 100 >= outage.requests * 99),
            "{rows}"
        );
        assert_eq!(totals[1], outage.quota / 100, "{rows}");
        // One unit was leased with the first request, and one in advance.
        assert!(
            (outage.quota / 100..=outage.quota / 100 + 2).contains(&totals[0]),
            "{rows}"
        );

        server.restart(&SETTINGS);
        for (gateway, (_, key)) in gateways
            .iter()
            .flat_map(|one| applications.iter().map(move |app| (one, app)))
        {
            gateway.gateway.reaches_within(key, 200, 30);
        }
        for ((id, _), total) in applications.iter().zip(totals) {
            assert!(
                granted_today(&site, id) >= u64::from(total),
                "units delivered on grace are charged"
            );
        }
        if is_full_size() {
            write(&rows);
        }
    });
}

/// Copies the files of a data directory.
fn copied(from: &Path) -> TempDir {
    let to = TempDir::new().unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), to.path().join(entry.file_name())).unwrap();
        }
    }
    to
}

#[test]
fn a_gateway_killed_without_its_database_continues_its_share_and_a_copy_of_its_directory_has_none()
{
    needs!("postgresql");
    within_one_day(|| {
        let (mut server, site) = restartable_site();
        // 240 units of grace, 80 for each gateway, reserved ten by ten.
        let (id, key) = site.create("24000");
        let first = started(&site);
        first.copies(&digest(&key));
        server.stop();
        // The part of the minute limit is empty when the outage is noticed.
        first.gateway.reaches(&key, 200);
        let mut connection = Wire::open(first.gateway.public).unwrap();
        assert!((0..24).all(|_| connection.get(TARGET, &key).status_and_code().0 == 200));
        let SiteGateway {
            data_dir, program, ..
        } = first.gateway;
        program.signal("KILL");
        program.end();
        let copy = copied(data_dir.path());

        let next = ObservedGateway::start(&site, data_dir);
        let other = ObservedGateway::start(&site, copy);
        assert_eq!(
            (next.metric(SHARE), other.metric(SHARE)),
            ("1".into(), "0".into())
        );
        let continued = next.served_until(&key, "overloaded");
        assert!((70..=80).contains(&(25 + continued)), "25 and {continued}");
        assert_eq!(other.served_until(&key, "overloaded"), 0);

        server.restart(&SETTINGS);
        next.gateway.reaches_within(&key, 200, 30);
        assert!(granted_today(&site, &id) >= u64::from(25 + continued));
        until(|| other.metric(SHARE) == "1");
        assert_eq!(next.metric(SHARE), "1", "the share is confirmed");
    });
}

#[test]
fn the_share_of_a_stopped_gateway_is_free_and_that_of_a_killed_one_is_lost() {
    needs!("postgresql");
    within_one_day(|| {
        let (_server, site) = restartable_site();
        let [stopped, killed, _last] = [(); GATEWAYS].map(|()| started(&site));
        killed.gateway.program.signal("KILL");
        let waiting = ObservedGateway::start(&site, TempDir::new().unwrap());
        assert_eq!(waiting.metric(SHARE), "0", "three shares are held");
        stopped.gateway.program.stop().with(0);
        until(|| waiting.metric(SHARE) == "1");
    });
}

#[test]
fn a_part_of_the_minute_that_is_used_up_without_the_database_is_an_overload_and_free() {
    needs!("postgresql");
    within_one_day(|| {
        let (mut server, site) = restartable_site();
        let (_, key) = site.create_with(&["--tier", "pro", "--minute", "60", "--day", "100000"]);
        let gateway = started(&site);
        gateway.copies(&digest(&key));
        server.stop();
        // A token every three seconds, from the beginning of the outage.
        gateway.gateway.reaches_within(&key, 200, 30);
        let mut connection = Wire::open(gateway.gateway.public).unwrap();
        for _ in 0..80 {
            let (status, code) = connection.get(TARGET, &key).status_and_code();
            assert!(
                status == 200 || (status, &*code) == (503, "overloaded"),
                "{status} {code}"
            );
        }
        let refused = gateway.raw(&format!(
            "GET {TARGET} HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {key}\r\nConnection: close\r\n\r\n"
        ));
        let wait = refused.lines().find_map(|line| {
            line.to_lowercase()
                .strip_prefix("retry-after: ")?
                .parse::<u32>()
                .ok()
        });
        assert!(
            wait.is_some_and(|wait| (1..=3).contains(&wait)),
            "{refused}"
        );
    });
}

/// The daily grace in [`MidnightOutage`]: sixty units at each gateway.
const GRACE: u32 = 180;
/// Requests to each gateway in the five minutes after midnight.
const AFTER_MIDNIGHT: u32 = 54;
/// Gateways follow a larger step of the clock only after a minute.
const MAX_STEP: i64 = 50;

/// Gateways with a paid application, and a database that has been unreachable since six minutes before midnight. All
/// share one clock.
struct MidnightOutage {
    server: PostgresServer,
    site: Site,
    application: (String, String),
    clock: FakeClock,
    /// Difference from the machine's clock, in seconds.
    offset: i64,
    gateways: Vec<ObservedGateway>,
}

impl MidnightOutage {
    fn begin() -> Self {
        let offset = offset_to_midnight(380);
        let clock = FakeClock::new(offset);
        let server = PostgresServer::start_with(&SETTINGS, clock.environment());
        let site = Site {
            url: server.url(),
            schema: new_schema(),
        };
        run_with(&["store", "init"], &site.environment()).with(0);
        let mut outage = Self {
            application: site.create(&(GRACE * 100).to_string()),
            server,
            site,
            clock,
            offset,
            gateways: Vec::new(),
        };
        for _ in 0..GATEWAYS {
            let gateway = outage.start(TempDir::new().unwrap());
            gateway.copies(&digest(&outage.application.1));
            outage.gateways.push(gateway);
        }
        assert!(outage.seconds() < -300, "{}", outage.seconds());
        outage.server.stop();
        outage
    }

    fn with_clock<T>(&self, work: impl FnOnce(&[(&str, &str)]) -> T) -> T {
        let clock = self.clock.environment();
        let mut environment = self.site.environment().to_vec();
        for (name, value) in &clock {
            environment.push((name, value));
        }
        work(&environment)
    }

    fn start(&self, data_dir: TempDir) -> ObservedGateway {
        self.with_clock(|environment| ObservedGateway::start_with(environment, data_dir))
    }

    /// Seconds since midnight; negative before it.
    fn seconds(&self) -> i64 {
        let now = i64::try_from(Clock::system().now().wall.seconds()).unwrap();
        (now + self.offset + DAY / 2) % DAY - DAY / 2
    }

    /// Sets the clock ahead to this time, in steps that gateways follow immediately.
    fn set_to(&mut self, seconds: i64) {
        while self.seconds() < seconds {
            self.offset += (seconds - self.seconds()).min(MAX_STEP);
            self.clock.set(self.offset);
            // Processes read the file once a second, and compare their clocks as often. A gateway that sees two steps
            // together follows them only after a minute, like one larger step.
            for gateway in &self.gateways {
                until(|| self.is_followed(gateway));
            }
        }
    }

    /// Whether the gateway states the time until midnight by the current clock. `/me` costs no unit and no token except
    /// one of the guard, so it is not requested continuously.
    fn is_followed(&self, gateway: &ObservedGateway) -> bool {
        std::thread::sleep(Duration::from_millis(250));
        let key = &self.application.1;
        let reply = gateway.raw(&format!(
            "GET /api/v1/me HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {key}\r\nConnection: close\r\n\r\n"
        ));
        let left = reply
            .lines()
            .find_map(|line| line.strip_prefix("ratelimit: "))
            .and_then(|limits| limits.split_once("\"day\";"))
            .and_then(|(_, day)| day.rsplit_once("t="))
            .map(|(_, left)| left.trim().parse::<i64>().unwrap());
        let expected = (DAY - self.seconds()).rem_euclid(DAY);
        left.is_some_and(|left| (left.rem_euclid(DAY) - expected).abs() <= 5)
    }

    /// Sends requests to each gateway until its share is used. Returns the number of 200s.
    fn use_shares(&self) -> u32 {
        let key = &self.application.1;
        self.gateways
            .iter()
            .map(|gateway| gateway.served_until(key, "overloaded"))
            .sum()
    }

    fn restart_after_kill(&mut self, number: usize) {
        let SiteGateway {
            data_dir, program, ..
        } = self.gateways.remove(number).gateway;
        program.signal("KILL");
        program.end();
        let next = self.start(data_dir);
        self.gateways.insert(number, next);
    }

    /// Uses up the daily grace, then serves callers for the first five minutes of the next day. If `is_killed`, a
    /// gateway is killed in that time.
    fn run(mut self, is_killed: bool) {
        self.set_to(-10);
        // The part of the minute limit is empty when the outage is noticed.
        for gateway in &self.gateways {
            gateway.gateway.reaches(&self.application.1, 200);
        }
        assert_eq!(3 + self.use_shares(), GRACE, "the grace of the day");
        self.set_to(1);
        let mut delivered = [0; GATEWAYS];
        for part in 0..6 {
            self.set_to(1 + part * 60);
            if is_killed && part == 1 {
                self.restart_after_kill(1);
            }
            for (gateway, delivered) in self.gateways.iter().zip(&mut delivered) {
                let key = &self.application.1;
                *delivered += served(gateway.gateway.public, key, AFTER_MIDNIGHT / 6);
            }
        }
        assert!(self.seconds() >= 300);
        assert_eq!(delivered, [AFTER_MIDNIGHT; GATEWAYS], "all are served");
        for gateway in &self.gateways {
            assert_eq!(gateway.metric(SHARE), "1");
            assert_eq!(probe(gateway.gateway.side, "/readyz").0, 200);
        }
        let total = delivered.iter().sum::<u32>() + self.use_shares();
        // A kill loses one block of an eighth.
        let lost = if is_killed { 8 } else { 0 };
        note(&format!("{delivered:?} after midnight, {total} in total"));
        assert!((GRACE - lost..=GRACE).contains(&total), "{total}");

        self.server.restart(&SETTINGS);
        let (id, key) = &self.application;
        for gateway in &self.gateways {
            gateway.gateway.reaches_within(key, 200, 30);
        }
        let shown = self.with_clock(|environment| {
            run_with(&["keys", "show", id, "--json"], environment)
                .with(0)
                .json()
        });
        let granted = shown["granted_today"].as_u64().unwrap();
        assert!(granted >= u64::from(total), "{granted} of {total} charged");
    }
}

#[test]
fn in_an_outage_over_midnight_every_gateway_serves_the_first_minutes_of_the_day() {
    needs!("postgresql", "libfaketime");
    MidnightOutage::begin().run(false);
}

#[test]
fn a_gateway_killed_in_an_outage_after_midnight_continues_its_share_of_the_day() {
    needs!("postgresql", "libfaketime");
    MidnightOutage::begin().run(true);
}

fn is_ready(gateway: &ObservedGateway) -> bool {
    probe(gateway.gateway.side, "/readyz").0 == 200
}

#[test]
fn without_the_database_a_gateway_without_a_share_is_not_ready_while_others_hold_one() {
    needs!("postgresql");
    let (mut server, site) = restartable_site();
    let (_, key) = site.create("100000");
    let holders = [(); GATEWAYS].map(|()| started(&site));
    until(|| holders[2].metric("scoregate_fleet_gateways") == "3");
    let other = ObservedGateway::start(&site, TempDir::new().unwrap());
    other.gateway.reaches(&key, 200);
    assert!(is_ready(&other), "the database is reachable");
    server.stop();
    other.served_until(&key, "overloaded");
    let (status, reason) = probe(other.gateway.side, "/readyz");
    assert_eq!(status, 503);
    assert!(reason.contains("other gateways hold"), "{reason}");
    assert!(holders.iter().all(is_ready));
    server.restart(&SETTINGS);
    until(|| is_ready(&other));
}

/// Writes the page to `tests/results/`.
fn write(rows: &str) {
    let cores = cores();
    let page = format!(
        "`{CARGO_TEST} --test suite fleet::grace`: three gateways, two paid applications with 600,000 requests a \
         day, and a stopped database. Each application sends {} requests to each gateway in ten minutes, then requests until they \
         are refused. The {BUILD} build on {cores} cores shared with the clients. Required: each gateway serves at least 99 % of the \
         paced requests, and each application gets exactly one hundredth of its daily quota as grace.\n\n{rows}\n",
        FULL.requests
    );
    write_page("fleet-grace", "Grace without the database", &page);
}
