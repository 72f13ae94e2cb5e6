//! A database without what managed services and other engines with PostgreSQL's protocol may lack.

use super::mail::sql;
use super::*;
use crate::postgres::REMOVE_FEATURES;

#[test]
fn a_database_without_notifications_is_refused_by_each_command_and_at_the_start_with_the_reason() {
    needs!("postgresql");
    let server = PostgresServer::start(&["fsync=off"]);
    let site = Site {
        url: server.url(),
        schema: new_schema(),
    };
    run_with(&["store", "init"], &site.environment()).with(0);
    sql(&site, REMOVE_FEATURES);
    let data_dir = TempDir::new().unwrap();
    let serve = ["serve", "--data-dir", data_dir.path().to_str().unwrap()];
    for command in [&["store", "check"][..], &["store", "init"], &serve] {
        let refused = run_with(command, &site.environment()).with(2).err;
        assert!(
            refused.contains("the server has no notifications (pg_notify)"),
            "{command:?}: {refused}"
        );
    }
}
