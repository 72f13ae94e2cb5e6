//! Connections of gateways to the database: their number, and a gateway that gets none because the limit is reached.

use scoregate_store::{CONNECTIONS_PER_GATEWAY, connection_limit};
use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls};

use super::*;
use crate::postgres::{OWNER, unprivileged};

/// Connections of a gateway that disappeared. They remain open until this value is dropped.
struct LingeringConnections {
    _clients: Vec<Client>,
    _runtime: Runtime,
}

impl LingeringConnections {
    fn open(site: &Site, count: u32) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let clients = (0..count).map(|_| {
            let (client, connection) = runtime
                .block_on(tokio_postgres::connect(&site.url, NoTls))
                .unwrap();
            runtime.spawn(connection);
            client
        });
        Self {
            _clients: clients.collect(),
            _runtime: runtime,
        }
    }
}

/// A site whose gateways have a role with this connection limit.
fn limited_site(limit: u32) -> (PostgresServer, Site) {
    let server = PostgresServer::start(&["fsync=off"]);
    let mut psql = unprivileged("psql");
    let role = format!("CREATE ROLE gateway LOGIN CONNECTION LIMIT {limit}");
    psql.args(["-U", OWNER, "-d", "postgres", "-qtA", "-c", &role, "-h"])
        .arg(server.directory.path());
    assert!(psql.status().unwrap().success());
    let owner = Site {
        url: server.url(),
        schema: new_schema(),
    };
    run_with(
        &["store", "init", "--runtime-role", "gateway"],
        &owner.environment(),
    )
    .with(0);
    let url = server.url().replace(&format!("{OWNER}@"), "gateway@");
    (
        server,
        Site {
            url,
            schema: owner.schema,
        },
    )
}

#[test]
fn the_replacement_of_a_gateway_whose_connections_linger_serves_within_the_documented_limit() {
    needs!("postgresql");
    let (_server, site) = limited_site(connection_limit(1));
    let (_, key) = site.create("100000");
    let _lingering = LingeringConnections::open(&site, CONNECTIONS_PER_GATEWAY);
    let gateway = site.gateway();
    assert_eq!(gateway.status(&key), 200);
    assert_eq!(probe(gateway.side, "/readyz"), (200, "ready\n".into()));
}

#[test]
fn a_gateway_without_connections_for_leases_or_keys_is_not_ready_until_it_has_them() {
    const LIMIT: u32 = 10;
    needs!("postgresql");
    for (left, reason) in [
        (1, "too many connections for role"),
        (2, "local copy of the keys"),
    ] {
        let (_server, site) = limited_site(LIMIT);
        let (_, key) = site.create("100000");
        let gateway = site.gateway();
        assert_eq!(gateway.status(&key), 200);
        let SiteGateway {
            data_dir, program, ..
        } = gateway;
        until_copied(&data_dir, &key);
        program.stop().with(0);

        let lingering = LingeringConnections::open(&site, LIMIT - left);
        let program = Program::serve(data_dir.path(), &site.environment());
        let (public, probes) = program.ports();
        let gateway = SiteGateway {
            data_dir,
            program,
            public,
            side: probes,
        };
        until(|| probe(probes, "/readyz").1.contains(reason));
        assert_eq!(
            (probe(probes, "/readyz").0, probe(probes, "/healthz").0),
            (503, 200)
        );
        gateway.reaches(&key, 503);
        drop(lingering);
        until(|| probe(probes, "/readyz") == (200, "ready\n".into()));
        gateway.reaches(&key, 200);
    }
}

#[test]
fn the_documented_connection_limits_are_those_of_the_program() {
    const COMPOSE: &str = include_str!("../../../deploy/compose/fleet.toml");
    const ROLES: &str = include_str!("../../../deploy/compose/roles.sql");
    const CHART: &str = include_str!("../../../deploy/helm/values.yaml");
    const DEPLOYMENT: &str = include_str!("../../../deploy/README.md");
    const FLEET: &str = include_str!("../../../docs/fleet.md");
    let number = |text: &str, name: &str| {
        let value = text
            .lines()
            .find_map(|line| line.trim_start().strip_prefix(name));
        value.unwrap().parse::<u32>().unwrap()
    };
    let gateways = |settings: &str| number(settings, "gateways = ");
    // A rollout adds one pod.
    let pods = number(CHART, "replicas: ") + 1;
    let role = |gateways| format!("CONNECTION LIMIT {};", connection_limit(gateways));
    let per_gateway = format!("at most {CONNECTIONS_PER_GATEWAY} connections");
    for (name, text, expected) in [
        ("roles.sql", ROLES, role(gateways(COMPOSE))),
        ("fleet.md", FLEET, role(gateways(FLEET))),
        ("fleet.md", FLEET, per_gateway),
        (
            "README.md",
            DEPLOYMENT,
            format!("`CONNECTION LIMIT {}`", connection_limit(pods)),
        ),
    ] {
        assert!(
            text.contains(&expected),
            "{name} does not state: {expected}"
        );
    }
}
