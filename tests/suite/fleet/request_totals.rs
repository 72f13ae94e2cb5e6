//! Requests by endpoint and outcome, added up over gateways.

use super::nodes::side;
use super::*;

const MODELS: &str = "/api/v1/models?period=24h";

#[test]
fn requests_of_two_gateways_add_up_by_endpoint_and_outcome() {
    needs!("postgresql");
    within_one_day(|| {
        let site = Site::new();
        let ((id, key), (other_id, other)) = (site.create("5000"), site.create("2"));
        let gateways = [site.gateway(), site.gateway()];
        let served = |gateway: &SiteGateway, target: &str, key: &str, count: u32, status: u16| {
            let mut connection = Wire::open(gateway.public).unwrap();
            for _ in 0..count {
                assert_eq!(connection.get(target, key).status_and_code().0, status, "{target}");
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
        let read = |id: &str| side(reader.data_dir.path(), &format!("/v1/applications/{id}/requests"));
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
            .map(|one| (one["endpoint"].as_str().unwrap(), one["requests"].as_u64().unwrap()))
            .collect();
        assert_eq!(endpoints, [("models", 42), ("none", 2), ("index", 1)]);
        let limited = read(&other_id);
        assert_eq!(
            (&limited["outcomes"]["ok"], &limited["outcomes"]["quota_exceeded"]),
            (&2.into(), &1.into())
        );
        // A command on the database reads the same.
        reader.program.stop().with(0);
        let read = run_with(&["keys", "requests", &id, "--json"], &site.environment()).with(0).json();
        assert_eq!((&read["outcomes"], &read["recorded_at"]), (&found["outcomes"], &serde_json::Value::Null));
    });
}
