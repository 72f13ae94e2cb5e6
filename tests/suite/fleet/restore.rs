//! A restore of the database with its own tools and the statements of docs/fleet.md.

use std::io::{Seek as _, Write as _};
use std::path::Path;

use super::*;
use crate::postgres::unprivileged;

/// Runs a program of PostgreSQL on the site's database with this standard input, and returns its output.
fn tool(site: &Site, program: &str, arguments: &[&str], input: &str) -> String {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(input.as_bytes()).unwrap();
    file.rewind().unwrap();
    let mut command = unprivileged(program);
    let done = command
        .args(arguments)
        .args(["--dbname", &site.url])
        .stdin(file)
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8(done.stdout).unwrap()
}

/// The documented statements that close the current day.
fn closing_statements(schema: &str) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/fleet.md");
    let page = std::fs::read_to_string(page).unwrap();
    let block = page
        .split("```sql")
        .find(|block| block.contains("INSERT INTO scoregate.ledger_days"))
        .unwrap();
    block
        .split("```")
        .next()
        .unwrap()
        .replace("scoregate.", &format!("{schema}."))
}

#[test]
fn a_dump_is_restored_with_its_keys_and_the_day_is_closed_by_the_documented_statements() {
    needs!("postgresql");
    within_one_day(|| {
        let site = Site::new();
        let [(_, kept), (id, revoked)] = [site.create("100"), site.create("100")];
        let gateway = site.gateway();
        gateway.reaches(&kept, 200);
        let dump = tool(&site, "pg_dump", &["--schema", &site.schema], "");
        run_with(&["keys", "revoke", &id], &site.environment()).with(0);
        gateway.reaches(&revoked, 401);
        gateway.program.signal("KILL");

        let psql = ["--quiet", "--set", "ON_ERROR_STOP=1"];
        tool(
            &site,
            "psql",
            &psql,
            &format!("DROP SCHEMA {} CASCADE", site.schema),
        );
        tool(&site, "psql", &psql, &dump);
        let checked = run_with(&["store", "check", "--json"], &site.environment())
            .with(0)
            .json();
        assert_eq!(
            (checked["applications"].as_u64(), checked["sound"].as_bool()),
            (Some(2), Some(true))
        );
        let open = site.gateway();
        assert_eq!(
            (open.status(&kept), open.status(&revoked)),
            (200, 200),
            "the revocation is lost"
        );
        open.program.signal("KILL");

        tool(&site, "psql", &psql, &closing_statements(&site.schema));
        let closed = site.gateway();
        assert_eq!((closed.status(&kept), closed.status(&revoked)), (429, 429));
        closed.program.stop().with(0);
    });
}
