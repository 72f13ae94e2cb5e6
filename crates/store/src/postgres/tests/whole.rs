//! Reading all applications with one statement.

use futures_util::TryStreamExt as _;

use super::*;
use crate::ApplicationPage;

/// More than one page of applications. The application at the end of the first page has three keys, and one record is
/// unreadable.
const FILL: &str = "
INSERT INTO {schema}.applications (id, name, tier, created_at)
SELECT 'app_' || lpad(n::text, 11, '0'), 'n' || n, 'pro', 1 FROM generate_series(1, 2500) n;
INSERT INTO {schema}.keys (digest, application, shown, created_at)
SELECT sha256(id::bytea), id, 'key', 1 FROM {schema}.applications;
INSERT INTO {schema}.keys (digest, application, shown, created_at)
SELECT sha256((id || k)::bytea), id, 'key', 2 FROM {schema}.applications, generate_series(1, 2) k WHERE name = 'n1999';
UPDATE {schema}.applications SET created_at = -1 WHERE name = 'n2100'";

#[tokio::test]
async fn pages_contain_whole_applications_and_an_unreadable_record_is_skipped() {
    needs!("postgresql");
    let store = fresh().await;
    execute(&store, FILL).await;
    let pages: Vec<ApplicationPage> = store.all(NOON.day()).try_collect().await.unwrap();
    let counts: Vec<_> = pages
        .iter()
        .map(|page| (page.applications.len(), page.skipped.len()))
        .collect();
    assert_eq!(counts, [(1_999, 0), (500, 1)]);
    let keys: Vec<_> = pages[0]
        .applications
        .iter()
        .map(|application| application.keys.len())
        .collect();
    assert_eq!((keys.last(), keys.iter().sum()), (Some(&3), 2_001));
}
