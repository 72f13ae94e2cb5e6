//! Evidence of use that two gateways merge concurrently.

use super::*;

#[tokio::test]
async fn merges_of_two_gateways_count_each_hour_once() {
    needs!("postgresql");
    let store = fresh().await;
    let other = another(&store).await;
    conformance::concurrent_merges_count_each_hour_once([&store, &other]).await;
}
