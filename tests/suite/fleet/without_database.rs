//! Starts while the database is unreachable: keys are known from the local copy, and nothing is delivered without units
//! or a share of grace.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
};

use super::*;

pub const SETTINGS: [&str; 1] = ["fsync=off"];
const QUOTA: u32 = 2_000;
/// The first of three shares of the grace.
const GRACE: u32 = 7;

/// A site whose database is stopped and restarted.
pub fn restartable_site() -> (PostgresServer, Site) {
    let server = PostgresServer::start(&SETTINGS);
    let site = Site {
        url: server.url(),
        schema: new_schema(),
    };
    run_with(&["store", "init"], &site.environment()).with(0);
    (server, site)
}

/// A gateway with access to its side port.
pub struct ObservedGateway {
    pub gateway: SiteGateway,
    probes: SocketAddr,
}

impl ObservedGateway {
    pub fn start(site: &Site, data_dir: TempDir) -> Self {
        Self::start_with(&site.environment(), data_dir)
    }

    pub fn start_with(environment: &[(&str, &str)], data_dir: TempDir) -> Self {
        let program = Program::serve(data_dir.path(), environment);
        let (public, probes) = program.ports();
        Self {
            gateway: SiteGateway {
                data_dir,
                program,
                public,
                side: probes,
            },
            probes,
        }
    }

    /// Restarts the gateway on its data directory.
    fn restarted(self, site: &Site, signal: &str) -> Self {
        let SiteGateway {
            data_dir, program, ..
        } = self.gateway;
        program.signal(signal);
        program.end();
        Self::start(site, data_dir)
    }

    /// Restarts the gateway without its records of grace.
    fn restarted_without_a_share(self, site: &Site) -> Self {
        let SiteGateway {
            data_dir, program, ..
        } = self.gateway;
        program.stop();
        forget_grace(data_dir.path());
        Self::start(site, data_dir)
    }

    /// A response of the side port with its head.
    fn side(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(self.probes).unwrap();
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    pub fn metric(&self, name: &str) -> String {
        let all = self.side("/metrics");
        let line = all
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.unwrap_or_else(|| panic!("no {name} in {all}"))
            .to_owned()
    }

    /// Waits until the local copy contains this text.
    pub fn copies(&self, text: &str) {
        until(|| is_copied(self.gateway.data_dir.path(), text));
    }

    /// Sends requests until one has this code, and returns the number of 200s.
    pub fn served_until(&self, key: &str, code: &str) -> u32 {
        let mut connection = Wire::open(self.gateway.public).unwrap();
        let mut served = 0;
        until(|| {
            let (status, found) = connection.get(TARGET, key).status_and_code();
            served += u32::from(status == 200);
            found == code
        });
        served
    }

    /// The status of a conditional request with the entity tag of the caller's copy.
    fn revalidated(&self, key: &str, tag: &str) -> String {
        revalidated(self.gateway.public, key, tag)
    }

    pub fn raw(&self, request: &str) -> String {
        raw(self.gateway.public, request)
    }

    /// The entity tag of the document.
    pub fn tag(&self, key: &str) -> String {
        let head = self.raw(&format!(
            "GET {TARGET} HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {key}\r\nConnection: close\r\n\r\n"
        ));
        let line = head
            .lines()
            .find(|line| line.to_lowercase().starts_with("etag:"));
        line.unwrap_or_else(|| panic!("no tag: {head}"))[5..]
            .trim()
            .to_owned()
    }
}

/// The response to a conditional request with the entity tag of the caller's copy.
pub fn revalidated(public: SocketAddr, key: &str, tag: &str) -> String {
    let request = format!(
        "GET {TARGET} HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {key}\r\nIf-None-Match: {tag}\r\nConnection: close\r\n\r\n"
    );
    raw(public, &request)
}

fn raw(public: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(public).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

pub fn digest(key: &str) -> String {
    Digest::of(key).to_string()
}

#[test]
fn a_stop_signal_ends_a_start_that_waits_for_the_database() {
    needs!("postgresql");
    let (mut server, site) = restartable_site();
    server.stop();
    for signal in ["TERM", "INT"] {
        let data_dir = TempDir::new().unwrap();
        let patient = [
            &site.environment()[..],
            &[("SCOREGATE_STORE_START_TIMEOUT", "1h")],
        ]
        .concat();
        let program = Program::serve(data_dir.path(), &patient);
        program.logs("cannot use the database; retrying for 3599 s");
        program.signal(signal);
        let ended = program.end().0.with(0);
        assert!(
            ended.err.contains("stopped before it served"),
            "{}",
            ended.err
        );
    }
}

#[test]
fn a_gateway_that_starts_without_its_database_knows_the_keys_and_delivers_nothing() {
    needs!("postgresql");
    let (mut server, site) = restartable_site();
    let (_, key) = site.create("100000");
    let (id, revoked) = site.create("100000");
    let (later_id, later) = site.create("100000");
    let first = ObservedGateway::start(&site, TempDir::new().unwrap());
    assert!(first.side("/readyz").ends_with("\r\n\r\nready\n"));
    first.gateway.reaches(&key, 200);
    let tag = first.tag(&key);
    first.gateway.keys().run(&["revoke", &id]).with(0);
    first.copies(&format!("\"{}\",0", digest(&revoked)));
    server.stop();

    let gateway = first.restarted_without_a_share(&site);
    let head = gateway.side("/readyz");
    assert!(
        head.starts_with("HTTP/1.1 503") && head.contains("not ready: serving from the local copy"),
        "{head}"
    );
    assert!(
        gateway
            .side("/healthz")
            .contains("alive\ndegraded: serving from the local copy")
    );
    assert_eq!(gateway.metric("scoregate_store_local_copy"), "1");
    assert_eq!(gateway.metric("scoregate_ledger_unreachable"), "1");
    gateway.gateway.reaches(&key, 503);
    gateway.gateway.answers_for_long(&key, 503);
    assert_eq!(
        (
            gateway.gateway.status(&revoked),
            gateway.gateway.status("sg_live_unknown")
        ),
        (401, 401)
    );
    let revalidated = gateway.revalidated(&key, &tag);
    assert!(revalidated.starts_with("HTTP/1.1 304"), "{revalidated}");
    let other = gateway.revalidated(&key, "\"another\"");
    assert!(other.starts_with("HTTP/1.1 503"), "{other}");
    let me = Wire::open(gateway.gateway.public)
        .unwrap()
        .get("/api/v1/me", &key);
    assert_eq!(me.status_and_code().0, 200);
    gateway.gateway.keys().run(&["revoke", &later_id]).with(2);

    // A command revokes a key before the gateway reads the database again.
    gateway.gateway.program.signal("STOP");
    server.restart(&SETTINGS);
    run_with(&["keys", "revoke", &later_id], &site.environment()).with(0);
    gateway.gateway.program.signal("CONT");
    until(|| match gateway.gateway.status(&later) {
        // Without the database the bucket of the minute starts empty.
        429 | 503 => false,
        401 => true,
        other => panic!("{other} for a revoked key"),
    });
    gateway.gateway.reaches_within(&key, 200, 2 * PROPAGATION);
    assert!(gateway.side("/readyz").ends_with("\r\n\r\nready\n"));
    assert_eq!(gateway.metric("scoregate_store_local_copy"), "0");
    assert_eq!(gateway.metric("scoregate_ledger_unreachable"), "0");
    let log = gateway.gateway.program.stop().with(0).err;
    assert!(
        log.contains("serving from the local copy") && log.contains("shared store reachable"),
        "{log}"
    );
}

#[test]
fn a_gateway_with_a_new_data_directory_has_its_copy_of_the_keys_once_it_is_ready() {
    needs!("postgresql");
    let (mut server, site) = restartable_site();
    let (_, key) = site.create("100000");
    let first = ObservedGateway::start(&site, TempDir::new().unwrap());
    assert!(first.side("/readyz").ends_with("\r\n\r\nready\n"));
    server.stop();
    let gateway = first.restarted(&site, "KILL");
    let me = |key| {
        let mut connection = Wire::open(gateway.gateway.public).unwrap();
        connection.get("/api/v1/me", key).status_and_code().0
    };
    assert_eq!([me(&key), me("sg_live_unknown")], [200, 401]);
}

#[test]
fn grace_is_charged_after_a_crash_and_never_more_than_a_share_is_owed() {
    needs!("postgresql");
    within_one_day(|| {
        let (mut server, site) = restartable_site();
        let (_, key) = site.create(&QUOTA.to_string());
        let first = ObservedGateway::start(&site, TempDir::new().unwrap());
        let mut connection = Wire::open(first.gateway.public).unwrap();
        let mut delivered = 0;
        while delivered < 100 {
            assert_eq!(connection.get(TARGET, &key).status_and_code().0, 200);
            delivered += 1;
        }
        first.copies(&digest(&key));
        server.stop();
        delivered += first.served_until(&key, "overloaded");
        let grace = "scoregate_ledger_unreachable_decisions_total{decision=\"grace\"}";
        assert_eq!(first.metric(grace), GRACE.to_string());

        let second = first.restarted(&site, "KILL");
        second.gateway.reaches(&key, 503);
        second.gateway.answers_for_long(&key, 503);
        assert_eq!(second.metric(grace), "0");
        server.restart(&SETTINGS);
        second.gateway.reaches(&key, 200);
        delivered += 1;
        let mut connection = Wire::open(second.gateway.public).unwrap();
        for _ in 0..50 {
            assert_eq!(connection.get(TARGET, &key).status_and_code().0, 200);
            delivered += 1;
        }
        // The owed units are charged, so the same number may be owed again.
        server.stop();
        delivered += second.served_until(&key, "overloaded");
        assert_eq!(second.metric(grace), GRACE.to_string());
        server.restart(&SETTINGS);
        delivered += second.served_until(&key, "quota_exceeded");
        assert_eq!(delivered, QUOTA, "units delivered on grace were charged");
    });
}

#[test]
fn a_copy_of_another_data_set_is_not_mixed_with_the_database() {
    needs!("postgresql");
    let (mut server, site) = restartable_site();
    let other = Site {
        url: server.url(),
        schema: new_schema(),
    };
    run_with(&["store", "init"], &other.environment()).with(0);
    let (_, key) = site.create("100000");
    let first = ObservedGateway::start(&site, TempDir::new().unwrap());
    first.gateway.reaches(&key, 200);
    first.copies(&digest(&key));
    server.stop();

    // The settings name a schema other than the schema of the copy.
    let gateway = first.restarted_without_a_share(&other);
    gateway.gateway.reaches(&key, 503);
    server.restart(&SETTINGS);
    gateway.gateway.program.logs("holds the data set");
    gateway.gateway.answers_for_long(&key, 503);
    assert_eq!(gateway.metric("scoregate_store_local_copy"), "1");
}
