//! A restore of the database with its own tools and the statements of docs/fleet.md.

use std::path::Path;

use super::*;

/// Runs a program of PostgreSQL on the site's database, and returns its output.
fn tool(site: &Site, program: &str, arguments: &[&str]) -> String {
    let done = std::process::Command::new(program).args(arguments).args(["--dbname", &site.url]).output();
    let done = done.unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

/// The documented statements that close the current day.
fn closing_statements(schema: &str) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/fleet.md");
    let page = std::fs::read_to_string(page).unwrap();
    let block =
        page.split("```sql").find(|block| block.contains("INSERT INTO scoregate.ledger_days")).unwrap();
    block.split("```").next().unwrap().replace("scoregate.", &format!("{schema}."))
}

#[test]
fn a_dump_is_restored_with_its_keys_and_the_day_is_closed_by_the_documented_statements() {
    needs!("postgresql");
    within_one_day(|| {
        let site = Site::new();
        let [(_, kept), (id, revoked)] = [site.create("100"), site.create("100")];
        let gateway = site.gateway();
        gateway.reaches(&kept, 200);
        let dump = gateway.data_dir.path().join("site.sql");
        let dump = dump.to_str().unwrap();
        tool(&site, "pg_dump", &["--schema", &site.schema, "--file", dump]);
        run_with(&["keys", "revoke", &id], &site.environment()).with(0);
        gateway.reaches(&revoked, 401);
        gateway.program.signal("KILL");

        let psql = ["--quiet", "--set", "ON_ERROR_STOP=1"];
        let drop_schema = format!("DROP SCHEMA {} CASCADE", site.schema);
        tool(&site, "psql", &[&psql[..], &["--command", &drop_schema]].concat());
        tool(&site, "psql", &[&psql[..], &["--file", dump]].concat());
        let checked = run_with(&["store", "check", "--json"], &site.environment()).with(0).json();
        assert_eq!((checked["applications"].as_u64(), checked["sound"].as_bool()), (Some(2), Some(true)));
        let open = site.gateway();
        assert_eq!((open.status(&kept), open.status(&revoked)), (200, 200), "the revocation is lost");
        open.program.signal("KILL");

        tool(&site, "psql", &[&psql[..], &["--command", &closing_statements(&site.schema)]].concat());
        let closed = site.gateway();
        assert_eq!((closed.status(&kept), closed.status(&revoked)), (429, 429));
        closed.program.stop().with(0);
    });
}
