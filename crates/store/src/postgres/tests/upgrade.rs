//! Tables of an older release: refused, then upgraded once, for a runtime role.

use super::*;

#[tokio::test]
async fn older_tables_are_refused_and_upgraded_with_their_rows_by_one_of_several_commands() {
    needs!("postgresql");
    let (id, config) = (ApplicationId::mint().unwrap(), config());
    let role = format!("runtime_of_{}", config.schema.statement("{schema}"));
    let rows = format!(
        "CREATE ROLE {role} LOGIN;
         INSERT INTO {{schema}}.applications (id, name, tier, created_at) VALUES ('{id}', 'old', 'pro', 0)"
    );
    create_older_tables(&config, 1, &rows).await;
    let refused = PostgresStore::open(config.clone(), Clock::system())
        .await
        .err()
        .unwrap()
        .to_string();
    for part in ["format 1", "format 2", "scoregate store upgrade"] {
        assert!(refused.contains(part), "{refused}");
    }

    let granted = RoleName::parse(&role).unwrap();
    let upgrade = || {
        let (config, granted) = (config.clone(), granted.clone());
        PostgresStore::change_tables(config, Clock::system(), TablesWork::Upgrade, Some(granted))
    };
    let (one, other) = tokio::join!(upgrade(), upgrade());
    let newest = i32::try_from(STEPS.len()).unwrap();
    let mut changes = [one.unwrap(), other.unwrap()];
    changes.sort_by_key(|change| *change == TablesChange::Unchanged(newest));
    assert_eq!(
        changes,
        [
            TablesChange::Upgraded {
                from: 1,
                to: newest
            },
            TablesChange::Unchanged(newest)
        ]
    );
    let mut runtime = config;
    runtime.servers[0].user(&role);
    let store = PostgresStore::open_with(runtime, Clock::system(), true)
        .await
        .unwrap();
    assert_eq!(
        store.application(id, NOON.day()).await.unwrap().unwrap().id,
        id
    );
    conformance::closed_applications_are_deleted_on_the_next_day(&store).await;
}
