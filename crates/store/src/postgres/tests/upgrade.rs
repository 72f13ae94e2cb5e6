//! Tables of an older release are refused, then upgraded once, for a runtime role.

use super::*;

const NEXT: &str =
    "CREATE TABLE {schema}.colours ( -- of applications\n    name text -- in English\n);";

#[tokio::test]
async fn older_tables_are_refused_and_upgraded_with_their_rows_by_one_of_several_commands() {
    needs!("postgresql");
    let config = config();
    let runtime = runtime_role(&config).await;
    prepare(&config, "UPDATE {schema}.site SET format = 0").await;
    let refused = refusal(&config).await;
    for part in ["format 0", "format 1", "scoregate store upgrade"] {
        assert!(refused.contains(part), "{refused}");
    }
    prepare(&config, "UPDATE {schema}.site SET format = 1").await;
    let id = created(&open(&config).await).await;

    let role = runtime.servers[0].get_user().unwrap();
    let role = RoleName::parse(role).unwrap();
    let next = [STEPS, &[NEXT]].concat();
    let upgrade = async || {
        let link = DatabaseLink::new(Arc::new(config.clone()), Clock::system());
        let work = async |client: SchemaClient<'_>| {
            tables::change(client, &next, TablesWork::Upgrade, Some(&role)).await
        };
        link.change("upgrade", work).await.unwrap()
    };
    let (one, other) = tokio::join!(upgrade(), upgrade());
    let mut changes = [one, other];
    changes.sort_by_key(|change| *change == TablesChange::Unchanged(2));
    assert_eq!(
        changes,
        [
            TablesChange::Upgraded { from: 1, to: 2 },
            TablesChange::Unchanged(2)
        ]
    );
    // This release works with the tables of a later one.
    let store = open(&runtime).await;
    assert_eq!(conformance::found(&store, id).await.id, id);
    conformance::closed_applications_are_deleted_on_the_next_day(&store).await;
}
