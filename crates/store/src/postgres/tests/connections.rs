//! The connections of a gateway, and the connection limit of its database role.

use futures_util::StreamExt as _;

use super::*;
use crate::statements::SqlField;

const COUNT: &str = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1";

#[tokio::test]
async fn a_gateway_that_does_everything_has_the_documented_number_of_connections() {
    needs!("postgresql");
    let mut config = prepared().await;
    let name = format!("counted_{}", config.schema.statement("{schema}"));
    let observer = DatabaseLink::new(Arc::new(config.clone()), Clock::system());
    config.servers[0].application_name(&name);
    config.listen_servers.clone_from(&config.servers);
    let store = open(&config).await;
    open_day(&store).await;
    store.engine().accounts.connect("test").await.unwrap();
    let documents = store.shared_documents("scope".into(), 1).unwrap();
    documents.state("a").await.unwrap();
    documents.content("a", 1).await.unwrap();
    let mut all = store.all(NOON.day());
    all.next().await.unwrap().unwrap();
    let mut changed = Box::pin(store.changed());
    loop {
        // Starts the listener, which opens its connection in the background.
        _ = futures_util::poll!(&mut changed);
        let name = [SqlField::Text(&name)];
        let count = async |client: SchemaClient<'_>| client.query_one(COUNT, &name).await;
        let found: i64 = observer
            .run("count connections", count)
            .await
            .unwrap()
            .get(0);
        assert!(found <= i64::from(CONNECTIONS_PER_GATEWAY), "{found}");
        if found == i64::from(CONNECTIONS_PER_GATEWAY) {
            break;
        }
    }
}
