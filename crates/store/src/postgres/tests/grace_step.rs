//! The step that introduces shares of grace, on tables that releases before it have used.

use super::*;
use scoregate_base::limits::{GraceClaim, GraceShare};

/// Number of steps that these releases know.
const BEFORE: usize = 8;

#[tokio::test]
async fn releases_before_the_shares_of_grace_are_promised_no_more_and_the_shares_begin_after_their_days()
 {
    needs!("postgresql");
    let config = config();
    let connection = DatabaseLink::new(Arc::new(config.clone()), Clock::system());
    let mut statements = "CREATE SCHEMA IF NOT EXISTS {schema};".to_owned();
    statements.extend(STEPS.iter().take(BEFORE).copied());
    // Units of tomorrow are leased before midnight.
    let application = ApplicationId::mint().unwrap();
    let rows = format!(
        "INSERT INTO {{schema}}.applications VALUES ('{application}', 'Station', 'pro', NULL, NULL, NULL, NULL, 1);
         UPDATE {{schema}}.calendar SET day = '2025-11-21';
         INSERT INTO {{schema}}.ledger_days VALUES
             ('2025-11-20', '{application}', 1, 5), ('2025-11-21', '{application}', 1, 5), ('2025-11-22', '{application}', 0, 0);"
    );
    let statements = config.schema.statement(&(statements + &rows));
    let work = async |client: SchemaClient<'_>| client.batch_execute(&statements).await;
    connection.run("test", work).await.unwrap();
    let upgraded =
        PostgresStore::change_tables(config.clone(), Clock::system(), TablesWork::Upgrade, None)
            .await;
    assert!(
        matches!(upgraded, Ok(TablesChange::Upgraded { from: 8, .. })),
        "{upgraded:?}"
    );

    let store = PostgresStore::open_with(config, Clock::system(), true)
        .await
        .unwrap();
    let claimed = async |days: u32| {
        let day = Day::from_number(NOON.day().number() + days);
        let claim = GraceClaim {
            day,
            gateways: 3,
            held: None,
            token: 1,
            life: 0,
            node: 1,
        };
        store.claim_grace(claim).await.unwrap()
    };
    assert_eq!(
        (claimed(0).await, claimed(1).await),
        (None, None),
        "grace may be promised for these days"
    );
    assert_eq!(
        claimed(2).await,
        Some(GraceShare {
            number: 0,
            shares: 3
        })
    );

    // What such a release would promise in a row from after the step: the rest of one hundredth.
    let later = LedgerExchange {
        today: NOON.day().next(),
        ..report(application, 1, NodeTotals::default(), 5)
    };
    let mut reports = later.reports.clone();
    reports[0].day = Day::from_number(NOON.day().number() + 2);
    assert_eq!(
        granted(&store, LedgerExchange { reports, ..later }).await,
        (5, 5)
    );
    let rest = "SELECT greatest(500 / 100 - promised, 0) FROM {schema}.ledger_days WHERE day = '2025-11-23'";
    let rest = store.config.schema.statement(rest);
    let work = async |client: SchemaClient<'_>| client.query(&rest, &[]).await;
    let rows = store.connection.run("test", work).await.unwrap();
    assert_eq!(rows.iter().map(|row| row.get(0)).collect::<Vec<i64>>(), [0]);
}
