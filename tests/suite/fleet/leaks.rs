//! Reports of leaked keys at several gateways.

use super::mail::sql;
use super::*;
use crate::site::leaked_keys::{Scanner, token};

#[tokio::test(flavor = "multi_thread")]
async fn a_report_that_two_gateways_receive_at_once_is_acted_on_once() {
    needs!("postgresql");
    let (site, scanner, directory) = (Site::new(), Scanner::new("one"), TempDir::new().unwrap());
    let file = directory.path().join("keys.json");
    std::fs::write(&file, scanner.published()).unwrap();
    let settings = [("SCOREGATE_LEAKS_PUBLIC_KEYS", file.to_str().unwrap())];
    let gateways = [site.gateway_with(&settings), site.gateway_with(&settings)];
    let keys: Vec<String> = (0..5).map(|_| site.create("100").1).collect();
    for (number, key) in keys.iter().enumerate() {
        let tokens = [token(key, "https://github.com/octocat/Hello-World/blob/1234/bar.txt")];
        let [one, other] = gateways.each_ref().map(|gateway| scanner.report(gateway.public, &tokens));
        let (one, other) = tokio::join!(one, other);
        for response in [one, other] {
            assert_eq!((response.status, response.json()[0]["label"].as_str()), (200, Some("true_positive")));
        }
        let query = format!("SELECT count(*) FROM {}.audit WHERE what = 'revoke_leaked_key'", site.schema);
        assert_eq!(sql(&site, &query), (number + 1).to_string());
    }
    tokio::task::block_in_place(|| {
        for (key, gateway) in keys.iter().flat_map(|key| gateways.iter().map(move |gateway| (key, gateway))) {
            gateway.reaches(key, 401);
        }
    });
}
