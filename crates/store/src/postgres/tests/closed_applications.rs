//! Closed applications in tables of the format before, and for a runtime role.

use super::*;

#[tokio::test]
async fn tables_without_closed_applications_are_upgraded_for_a_runtime_role() {
    needs!("postgresql");
    let config = config();
    let role = format!("runtime_of_{}", config.schema.statement("{schema}"));
    create_older_tables(&config, 7, &format!("CREATE ROLE {role} LOGIN")).await;
    let refused = PostgresStore::open(config.clone(), Clock::system())
        .await
        .err()
        .unwrap();
    assert!(refused.to_string().contains("format 7"), "{refused}");

    let granted = RoleName::parse(&role).unwrap();
    let work = TablesWork::Upgrade;
    let upgrade =
        PostgresStore::change_tables(config.clone(), Clock::system(), work, Some(granted));
    assert_eq!(
        upgrade.await.unwrap(),
        TablesChange::Upgraded {
            from: 7,
            to: i32::try_from(STEPS.len()).unwrap()
        }
    );
    let mut runtime = config;
    runtime.server.user(&role);
    let store = PostgresStore::open_with(runtime, Clock::system(), true)
        .await
        .unwrap();
    conformance::closed_applications_are_deleted_on_the_next_day(&store).await;
}
