//! Gateways on a database that refuses the control functions, as some managed services do.

use super::mail::sql;
use super::*;

const SETTINGS: [&str; 1] = ["fsync=off"];
const HIDDEN: &str = "does not disclose its timeline";

#[test]
fn gateways_share_a_database_that_does_not_disclose_its_timeline() {
    needs!("postgresql");
    let mut server = PostgresServer::start(&SETTINGS);
    let (url, schema) = (server.url(), new_schema());
    let owner = Site { url: url.clone(), schema: schema.clone() };
    sql(
        &owner,
        "REVOKE EXECUTE ON FUNCTION pg_control_system(), pg_control_checkpoint(), pg_current_wal_lsn(), \
         pg_walfile_name(pg_lsn) FROM PUBLIC; CREATE ROLE managed LOGIN; GRANT CREATE ON DATABASE postgres TO managed",
    );
    let site = Site { url: url.replace("owner@", "managed@"), schema };
    run_with(&["store", "init"], &site.environment()).with(0);
    let check = run_with(&["store", "check"], &site.environment()).with(0);
    assert!(check.out.contains("timeline           cannot be checked"), "{}", check.out);
    assert!(check.err.contains(HIDDEN), "{}", check.err);

    let gateways = [site.gateway(), site.gateway()];
    within_one_day(|| {
        let (_, key) = site.create("5000");
        for gateway in &gateways {
            gateway.reaches(&key, 200);
        }
        let total: u32 = gateways.iter().map(|gateway| use_up(gateway.public, &key)).sum();
        // Each may hold a lease that the other does not get. `reaches` can have needed several requests.
        assert!((4_900..5_000).contains(&total), "{total}");
    });
    let (id, key) = site.create("1000");
    for gateway in &gateways {
        gateway.reaches(&key, 200);
    }
    gateways[0].keys().run(&["revoke", &id]).with(0);
    for gateway in &gateways {
        gateway.reaches(&key, 401);
    }
    server.stop();
    server.restart(&SETTINGS);
    let (_, key) = site.create("1000");
    for gateway in &gateways {
        gateway.reaches_within(&key, 200, 60);
    }
    for SiteGateway { program, .. } in gateways {
        let output = program.stop().with(0);
        assert_eq!(output.err.matches(HIDDEN).count(), 1, "{}", output.err);
    }
}
