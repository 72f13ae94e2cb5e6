//! The exported usage of a month equals the responses that callers got.

use std::collections::BTreeMap;

use scoregate::{
    app::open_store,
    config::{read_text, resolve},
};
use scoregate_store::Ledger as _;
use serde_json::Value;

use super::{mail::sql, nodes::side, *};

/// Sends this many requests, and returns the number of 200s.
fn delivered(gateway: &SiteGateway, key: &str, requests: u32) -> u64 {
    let mut connection = Wire::open(gateway.public).unwrap();
    let statuses = (0..requests).map(|_| connection.get(TARGET, key).status_and_code().0);
    statuses.map(|status| u64::from(status == 200)).sum()
}

/// Closes the days of all reports, which are moved to one day two months ago. Returns the month of that day.
async fn close_days(site: &Site) -> String {
    let day = "(date_trunc('month', current_date) - interval '40 days')::date";
    let nodes = format!("{}.request_nodes", site.schema);
    sql(site, &format!("UPDATE {nodes} SET day = {day}"));
    let settings = format!(
        "upstream = \"built-in\"\nstore.url = \"{}\"\nstore.schema = \"{}\"",
        site.url, site.schema
    );
    let config = resolve(&read_text(&settings).unwrap()).unwrap();
    let data_dir = TempDir::new().unwrap();
    let store = open_store(&config, data_dir.path(), &Clock::system())
        .await
        .unwrap();
    while store.delete_outdated().await.unwrap() > 0 {}
    assert_eq!(sql(site, &format!("SELECT count(*) FROM {nodes}")), "0");
    sql(site, &format!("SELECT to_char({day}, 'YYYY-MM')"))
}

fn units(lines: &str) -> BTreeMap<String, u64> {
    let read = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        let id = line["application"].as_str().unwrap().to_owned();
        assert_eq!(
            (&line["tier"], &line["account"]),
            (&"pro".into(), &Value::Null)
        );
        (id, line["units"].as_u64().unwrap())
    };
    lines.lines().map(read).collect()
}

#[tokio::test]
async fn the_export_of_a_month_is_the_number_of_200_over_two_gateways_and_a_restart() {
    needs!("postgresql");
    let site = Site::new();
    let applications = [("300", 400), ("5000", 150), ("5000", 1)].map(|(quota, requests)| {
        let (id, key) = site.create(quota);
        (id, key, requests)
    });
    let mut expected = BTreeMap::new();
    let [first, other] = [site.gateway(), site.gateway()];
    let mut load = |gateway: &SiteGateway| {
        for (id, key, requests) in &applications {
            *expected.entry(id.clone()).or_insert(0) += delivered(gateway, key, *requests);
        }
    };
    load(&first);
    load(&other);
    first.program.stop().with(0);
    let restarted = site.gateway();
    load(&restarted);
    for gateway in [other, restarted] {
        gateway.program.stop().with(0);
    }
    assert_eq!(expected.values().sum::<u64>(), 300 + 450 + 3);

    let month = close_days(&site).await;
    let export = |form: &[&str]| {
        let command = [&["usage", "export", "--month", &month], form].concat();
        run_with(&command, &site.environment()).with(0)
    };
    let exported = export(&["--json"]);
    assert_eq!(units(&exported.out), expected);
    let digest = Digest::of(&exported.out);
    let state = format!("month closed: true; SHA-256 of its lines as JSON: {digest}\n");
    assert_eq!(exported.err, state);

    // Later changes do not affect the usage of earlier days.
    for (command, value) in [("set-tier", Some("teams")), ("revoke", None)] {
        let command = [&["keys", command, &applications[0].0][..], value.as_slice()].concat();
        run_with(&command, &site.environment()).with(0);
    }
    let later = export(&["--json"]);
    assert_eq!((&later.out, &later.err), (&exported.out, &exported.err));
    let csv = export(&[]);
    assert_eq!(csv.out.lines().count(), 1 + applications.len());
    assert!(
        csv.out
            .starts_with("account,application,day,id,tier,units\n,app_"),
        "{}",
        csv.out
    );

    let gateway = site.gateway();
    let page = side(
        gateway.data_dir.path(),
        &format!("/v1/usage/export?month={month}"),
    );
    assert_eq!(
        (&page["is_closed"], &page["sha256"]),
        (&true.into(), &digest.to_string().into())
    );
}
