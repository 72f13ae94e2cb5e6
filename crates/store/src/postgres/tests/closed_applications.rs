//! Closed applications in tables of the format before, and for a runtime role.

use super::*;

#[tokio::test]
async fn tables_without_closed_applications_are_upgraded_for_a_runtime_role() {
    needs!("postgresql");
    let config = config();
    create_tables(config.clone()).await;
    let role = format!("runtime_of_{}", config.schema.statement("{schema}"));
    let older = config.schema.statement(&format!(
        "CREATE ROLE {role} LOGIN;
         DROP TABLE {{schema}}.closed_applications, {{schema}}.grace_shares;
         ALTER TABLE {{schema}}.keys DROP COLUMN name;
         UPDATE {{schema}}.site SET format = 7"
    ));
    let link = DatabaseLink::new(Arc::new(config.clone()), Clock::system());
    link.run("prepare a test", async |client| client.batch_execute(&older).await).await.unwrap();
    let refused = PostgresStore::open(config.clone(), Clock::system()).await.err().unwrap();
    assert!(refused.to_string().contains("format 7"), "{refused}");

    let granted = RoleName::parse(&role).unwrap();
    let work = TablesWork::Upgrade;
    let upgrade = PostgresStore::change_tables(config.clone(), Clock::system(), work, Some(granted));
    assert_eq!(upgrade.await.unwrap(), TablesChange::Upgraded { from: 7, to: 9 });
    let mut runtime = config;
    runtime.server.user(&role);
    let store = PostgresStore::open_with(runtime, Clock::system(), true).await.unwrap();
    conformance::closed_applications_are_deleted_on_the_next_day(&store).await;
}
