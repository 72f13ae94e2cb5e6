//! Tests with databases that lack some features, such as managed services and other engines that use PostgreSQL's protocol.

use super::*;

/// Removes features that other engines with PostgreSQL's protocol may lack. Even the superuser cannot use them in later sessions.
const REMOVE_FEATURES: &str = "
SET allow_system_table_mods = on;
DELETE FROM pg_proc WHERE proname = 'pg_notify';
DROP VIEW IF EXISTS pg_stat_user_tables";

const REFUSE_UNLOGGED_TABLES: &str = "
CREATE OR REPLACE FUNCTION refuse_unlogged_tables() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM pg_event_trigger_ddl_commands() d JOIN pg_class c ON c.oid = d.objid
               WHERE c.relpersistence = 'u') THEN
        RAISE feature_not_supported USING MESSAGE = 'no unlogged tables';
    END IF;
END $$;
CREATE EVENT TRIGGER refuse_unlogged_tables ON ddl_command_end EXECUTE FUNCTION refuse_unlogged_tables();";

/// Creates a database on the shared server, runs `remove` to take features away, and returns its configuration.
async fn without(name: &str, remove: &str) -> DatabaseConfig {
    let mut config = config();
    prepare(&config, &format!("CREATE DATABASE {name}")).await;
    config.servers[0].dbname(name);
    prepare(&config, remove).await;
    config
}

async fn refused_tables(config: &DatabaseConfig) -> String {
    command(config)
        .change_tables(TablesWork::Create, None)
        .await
        .unwrap_err()
        .to_string()
}

#[tokio::test]
async fn a_server_without_notifications_or_statistics_is_refused_with_each_of_them() {
    needs!("postgresql");
    let config = without("without_features", REMOVE_FEATURES).await;
    let opened = Store::in_database(config.clone(), Clock::system(), SeenTimelines::default())
        .check()
        .await;
    let Err(OpenFailure {
        kind: ConnectionFault::Unusable,
        error,
    }) = opened
    else {
        panic!("{opened:?}")
    };
    let inspected = command(&config).inspect().await;
    for reason in [
        error.to_string(),
        inspected.unwrap_err().to_string(),
        refused_tables(&config).await,
    ] {
        let named = "no notifications (pg_notify) and table statistics (pg_stat_user_tables)";
        assert!(reason.contains(named), "{reason}");
    }
}

#[tokio::test]
async fn a_server_without_unlogged_tables_gets_no_tables() {
    needs!("postgresql");
    let config = without("without_unlogged", REFUSE_UNLOGGED_TABLES).await;
    let reason = refused_tables(&config).await;
    assert!(reason.contains("no unlogged tables"), "{reason}");
}
