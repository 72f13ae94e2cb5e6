//! Gateways whose database is behind `PgBouncer` in transaction mode.

use std::process::Stdio;

use super::*;
use crate::{
    postgres::{give_away, unprivileged, url_host},
    program::ChildProcess,
};

const PGBOUNCER: &str = "/usr/sbin/pgbouncer";

struct Pooler {
    directory: TempDir,
    _process: ChildProcess,
}

impl Pooler {
    /// A pooler in front of the shared server, with fewer connections to the server than gateways use. Without
    /// transaction mode the gateways would wait forever.
    fn start() -> Self {
        let directory = TempDir::new().unwrap();
        let url = shared_server().url();
        let server = url.split(['@', '/']).nth(3).unwrap().replace("%2F", "/");
        let sockets = directory.path().display();
        let settings = format!(
            "[databases]\n* = host={server} user=owner\n[pgbouncer]\nlisten_port = 6432\nauth_type = any\n\
             pool_mode = transaction\ndefault_pool_size = 2\nunix_socket_dir = {sockets}\n"
        );
        let file = directory.path().join("pgbouncer.ini");
        std::fs::write(&file, settings).unwrap();
        give_away(directory.path());
        let mut command = unprivileged(PGBOUNCER);
        let process = command
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let clock = Clock::system();
        let start = clock.mono();
        while !directory.path().join(".s.PGSQL.6432").exists() {
            assert!(
                clock.mono().since(start).as_secs() < 30,
                "pgbouncer did not start"
            );
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        Self {
            directory,
            _process: ChildProcess(process),
        }
    }

    fn url(&self) -> String {
        format!(
            "postgresql://owner@{}:6432/postgres",
            url_host(self.directory.path())
        )
    }
}

/// Checks the shared state of several gateways on a site behind a pooler.
fn check_site(gateways: &[SiteGateway; 3], daily: &str, free: &str) {
    let [one, other, third] = gateways;
    let (id, key) = one.keys().create("pro");
    for gateway in [other, third] {
        gateway.reaches(&key, 200);
    }
    let served: u32 = std::thread::scope(|scope| {
        let ports = gateways.each_ref().map(|gateway| gateway.public);
        let clients = ports.map(|public| scope.spawn(move || use_up(public, daily)));
        clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .sum()
    });
    let remaining: u32 = gateways
        .iter()
        .map(|gateway| use_up(gateway.public, daily))
        .sum();
    assert_eq!(served + remaining, 500);
    let first = gateways.each_ref().map(|gateway| gateway.status(free));
    assert_eq!(first, [200, 429, 429]);
    other.keys().run(&["revoke", &id]).with(0);
    for gateway in [one, third] {
        gateway.reaches(&key, 401);
    }
}

#[test]
fn gateways_behind_a_pooler_share_keys_and_limits_with_and_without_notifications() {
    needs!("postgresql", "pgbouncer");
    within_one_day(|| {
        let pooler = Pooler::start();
        let direct = shared_server().url();
        for notifications in [&[("SCOREGATE_STORE_LISTEN_URL", direct.as_str())][..], &[]] {
            let site = Site {
                url: pooler.url(),
                schema: new_schema(),
            };
            run_with(&["store", "init"], &site.environment()).with(0);
            let daily = site.create("500").1;
            let free = site.create_with(&["--tier", "free"]).1;
            let gateways = [(); 3].map(|()| site.gateway_with(notifications));
            check_site(&gateways, &daily, &free);
            for gateway in gateways {
                gateway.program.stop().with(0);
            }
        }
    });
}
