//! Gateways on a database without what managed services and other engines with PostgreSQL's protocol may lack.

use super::mail::sql;
use super::*;
use crate::postgres::REMOVE_FEATURES;

const SETTINGS: [&str; 1] = ["fsync=off"];
const HIDDEN: &str = "does not disclose its timeline";

#[test]
fn gateways_share_a_database_without_the_features_that_other_engines_may_lack() {
    needs!("postgresql");
    let mut server = PostgresServer::start(&SETTINGS);
    let url = server.url();
    let schema = new_schema();
    let owner = Site {
        url: url.clone(),
        schema: schema.clone(),
    };
    sql(&owner, REMOVE_FEATURES);
    sql(
        &owner,
        "CREATE ROLE tenant LOGIN; GRANT CREATE ON DATABASE postgres TO tenant",
    );
    let site = Site {
        url: url.replace("owner@", "tenant@"),
        schema,
    };
    run_with(&["store", "init"], &site.environment()).with(0);
    let check = run_with(&["store", "check"], &site.environment()).with(0);
    assert!(
        check.out.contains("timeline           cannot be checked"),
        "{}",
        check.out
    );
    for effect in [
        HIDDEN,
        "has no notifications, or this role may not use them: changes and documents of other gateways arrive within",
        "has no statistics of tables, or this role may not use them: scoregate_store_live_rows and",
        "has no unlogged tables, or this role may not use them: contents of documents are in the write-ahead log",
    ] {
        assert!(check.err.contains(effect), "{effect}: {}", check.err);
    }

    let gateways = [site.gateway(), site.gateway()];
    within_one_day(|| {
        let (_, key) = site.create("5000");
        for gateway in &gateways {
            gateway.reaches(&key, 200);
        }
        let total: u32 = gateways
            .iter()
            .map(|gateway| use_up(gateway.public, &key))
            .sum();
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
    for SiteGateway { program, side, .. } in gateways {
        until(|| {
            probe(side, "/metrics")
                .1
                .contains("\nscoregate_store_standby_missing 1\n")
        });
        let metrics = probe(side, "/metrics").1;
        assert!(
            !metrics.contains("\nscoregate_store_dead_rows{"),
            "{metrics}"
        );
        let output = program.stop().with(0);
        assert_eq!(output.err.matches(HIDDEN).count(), 1, "{}", output.err);
    }
}
