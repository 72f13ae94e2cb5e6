//! Requests by endpoint and outcome, added up over gateways.

use super::mail::sql;
use super::nodes::side;
use super::without_database::ObservedGateway;
use super::*;
use crate::backend::Backend;
use crate::world::good;

const MODELS: &str = "/api/v1/models?period=24h";

#[test]
fn requests_of_two_gateways_add_up_by_endpoint_and_outcome() {
    needs!("postgresql");
    within_one_day(|| {
        let site = Site::new();
        let (id, key) = site.create("5000");
        let (other_id, other) = site.create("2");
        let gateways = [site.gateway(), site.gateway()];
        let served = |gateway: &SiteGateway, target: &str, key: &str, count: u32, status: u16| {
            let mut connection = Wire::open(gateway.public).unwrap();
            for _ in 0..count {
                assert_eq!(
                    connection.get(target, key).status_and_code().0,
                    status,
                    "{target}"
                );
            }
        };
        let [one, two] = &gateways;
        served(one, MODELS, &key, 30, 200);
        served(two, MODELS, &key, 12, 200);
        served(two, "/api/v1/nothing", &key, 2, 404);
        served(one, TARGET, &key, 1, 200);
        // A quota of two for both.
        served(one, TARGET, &other, 1, 200);
        two.reaches(&other, 200);
        served(two, TARGET, &other, 1, 429);
        for gateway in gateways {
            gateway.program.stop().with(0);
        }
        let reader = site.gateway();
        let read = |id: &str| {
            side(
                reader.data_dir.path(),
                &format!("/v1/keys/requests?id={id}"),
            )
        };
        let found = read(&id);
        let outcome = |name: &str| found["outcomes"][name].as_u64().unwrap();
        assert_eq!(
            (outcome("ok"), outcome("client_error"), &found["requests"]),
            (43, 2, &45.into()),
            "{found:#}"
        );
        let endpoints: Vec<(&str, u64)> = found["endpoints"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| {
                (
                    one["endpoint"].as_str().unwrap(),
                    one["requests"].as_u64().unwrap(),
                )
            })
            .collect();
        assert_eq!(endpoints, [("models", 42), ("none", 2), ("index", 1)]);
        let limited = read(&other_id);
        assert_eq!(
            (
                &limited["outcomes"]["ok"],
                &limited["outcomes"]["quota_exceeded"]
            ),
            (&2.into(), &1.into())
        );
        // A command on the database reads the same.
        reader.program.stop().with(0);
        let read = run_with(&["keys", "requests", &id, "--json"], &site.environment())
            .with(0)
            .json();
        assert_eq!(
            (&read["outcomes"], &read["recorded_at"]),
            (&found["outcomes"], &serde_json::Value::Null)
        );
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn evidence_of_two_gateways_is_one_set_of_models_networks_and_products() {
    needs!("postgresql");
    let backend = Backend::start(good).await;
    let url = backend.url();
    let settings = [("SCOREGATE_UPSTREAM_URL", url.as_str())];
    tokio::task::block_in_place(|| {
        within_one_day(|| {
            let site = Site::new();
            let (id, key) = site.create("5000");
            let (_, other) = site.create("5000");
            let [_built_in, shared @ ..] = site.environment();
            let environment = [&shared[..], &settings].concat();
            for (agent, models) in [("one/1", ["m1", "m2"]), ("two/1", ["m2", "m3"])] {
                let observed = ObservedGateway::start_with(&environment, TempDir::new().unwrap());
                // Networks and products are counted once the first report has read the key of the day.
                until(|| observed.metric("scoregate_fleet_gateways") != "0");
                let gateway = observed.gateway;
                let mut connection = Wire::open(gateway.public).unwrap();
                assert_eq!(connection.get(MODELS, &other).status_and_code().0, 200);
                for model in models {
                    let lines = format!("X-API-Key: {key}\r\nUser-Agent: {agent}\r\n");
                    let reply =
                        connection.send(&format!("/api/v1/models/{model}?period=24h"), &lines);
                    assert_eq!(reply.status_and_code().0, 200, "{model}");
                }
                // The hour is recorded.
                gateway.program.stop().with(0);
            }
            // Two hours later it is merged within a minute and a half.
            sql(
                &site,
                &format!("UPDATE {}.evidence_hours SET hour = hour - 2", site.schema),
            );
            let reader = site.gateway_before(&settings);
            let Reply::Response { body, .. } =
                Wire::open(reader.public).unwrap().get(MODELS, &other)
            else {
                panic!("no models")
            };
            let listed = body.matches("\"id\"").count();
            let clock = Clock::system();
            let path = format!("/v1/suspects/show?id={id}");
            let start = clock.mono();
            let day = loop {
                let evidence = side(reader.data_dir.path(), &path);
                if let Some(day) = evidence["days"].get(0) {
                    break day.clone();
                }
                assert!(clock.mono().since(start).as_secs() < 90, "{evidence}");
                std::thread::sleep(std::time::Duration::from_millis(200));
            };
            let counts = ["delivered", "networks", "products"].map(|field| day[field].as_u64());
            assert_eq!(counts, [Some(4), Some(1), Some(2)], "{day}");
            #[expect(clippy::cast_precision_loss, reason = "a small number")]
            let models = day["models"].as_f64().unwrap() * listed as f64;
            assert!((models - 3.0).abs() < 0.1, "{models} of {listed}: {day}");
        });
    });
}
