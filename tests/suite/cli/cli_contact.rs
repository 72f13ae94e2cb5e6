//! `scoregate accounts contact`: mail of an operator to the owners of applications.

use std::path::Path;

use serde_json::json;
use tempfile::TempDir;

use crate::{
    cli::cli_accounts::{ANN, Accounts, BOB, plant},
    program::{BUILT_IN, CommandOutput, Keys, Program, run_with_input, sql},
};

const TEXT: &str = "Hello,\r\nlimits <change>.\n\nBye & thanks\n";

/// Sends a text to the owners selected by these arguments.
fn contact(directory: &Path, selection: &[&str]) -> CommandOutput {
    let command = [
        "accounts",
        "contact",
        "--subject",
        "Über \"limits\"",
        "--message",
        "-",
    ];
    let data_dir = ["--data-dir", directory.to_str().unwrap()];
    run_with_input(
        &[&command[..], selection, &data_dir].concat(),
        TEXT.as_bytes(),
    )
}

/// The output of the command.
fn counted(accounts: usize, queued: usize) -> String {
    format!("accounts: {accounts}, queued emails: {queued}\n")
}

/// The recipients of queued mail in alphabetical order; the queue is empty afterwards.
fn taken(directory: &Path) -> String {
    sql(
        directory,
        "SELECT recipient FROM mail_queue ORDER BY recipient; DELETE FROM mail_queue",
    )
}

/// Two applications of Ann, one of Bob in another tier, and one without an owner.
fn planted(directory: &Path) -> [String; 4] {
    let keys = Keys(directory);
    let ids = ["free", "free", "pro", "pro"].map(|tier| keys.create(tier).0);
    plant(directory, &[&ids[0], &ids[1]]);
    sql(
        directory,
        &format!(
            "INSERT INTO owned_applications VALUES ('{}', '{BOB}')",
            ids[2]
        ),
    );
    ids
}

fn every_selection(directory: &Path, ids: &[String; 4]) {
    let [first, second, third, unowned] = ids;
    let ann = "Ann+x@example.org\n";
    let bob = "bob@example.com\n";
    let both = format!("{ann}{bob}");
    for (selection, recipients) in [
        (&["--application", first, second, third][..], both.as_str()),
        (&["--application", first, "--application", second], ann),
        (&["--account", BOB], bob),
        (&["--account", BOB, ANN, BOB], &both),
        (&["--tier", "free"], ann),
        (&["--tier", "pro"], bob),
        (&["--tier", "teams"], ""),
        (&["--all"], &both),
    ] {
        let accounts = recipients.lines().count();
        let dry = contact(directory, &[selection, &["--dry-run"]].concat()).with(0);
        assert_eq!(
            (dry.out, taken(directory)),
            (counted(accounts, 0), String::new()),
            "{selection:?}"
        );
        let output = contact(directory, selection).with(0);
        assert_eq!(output.out, counted(accounts, accounts), "{selection:?}");
        assert_eq!(taken(directory), recipients, "{selection:?}");
        assert!(
            output.err.contains("queued mail is not sent"),
            "{}",
            output.err
        );
    }
    let some = contact(directory, &["--application", unowned, third]).with(0);
    assert_eq!((some.out, taken(directory).as_str()), (counted(1, 1), bob));
    assert!(
        some.err
            .contains(&format!("{unowned} cannot be reached: no account owns it")),
        "{}",
        some.err
    );
    for (selection, words) in [
        (
            &["--application", "app_0000000000z"][..],
            "there is no application",
        ),
        (
            &["--account", ANN, "own_0000000000z"],
            "there is no account",
        ),
        (&["--tier", "gold"], "the tiers are"),
        (&["--tier", "free", "--all"], "cannot be used with"),
        (&[], "required"),
    ] {
        let refused = contact(directory, selection).with(1);
        assert!(
            refused.err.contains(words),
            "{selection:?}: {}",
            refused.err
        );
    }
    assert_eq!(taken(directory), "", "a refused command queued mail");
}

#[test]
fn each_owner_of_a_selection_gets_one_mail_on_a_stopped_server() {
    let directory = TempDir::new().unwrap();
    let ids = planted(directory.path());
    every_selection(directory.path(), &ids);
}

#[test]
fn each_owner_of_a_selection_gets_one_mail_on_a_running_server() {
    let directory = TempDir::new().unwrap();
    let ids = planted(directory.path());
    let program = Program::serve(directory.path(), &BUILT_IN);
    program.public();
    every_selection(directory.path(), &ids);
    program.stop().with(0);
}

#[test]
fn a_mail_has_text_and_escaped_html_and_its_audit_record_neither_text_nor_address() {
    let directory = TempDir::new().unwrap();
    planted(directory.path());
    let base_url = (
        "SCOREGATE_SERVICE_BASE_URL",
        "https://api.example.org:8443/api/v1",
    );
    let program = Program::serve(directory.path(), &[BUILT_IN[0], base_url]);
    program.public();
    contact(directory.path(), &["--account", ANN]).with(0);
    let columns = "'kind', kind, 'subject', subject, 'text', text, 'html', html, 'id', message_id,
                   'hours', (expires_at - created_at) / 3600000";
    let mail = sql(
        directory.path(),
        &format!("SELECT json_object({columns}) FROM mail_queue"),
    );
    let mail: serde_json::Value = serde_json::from_str(&mail).unwrap();
    assert_eq!(
        (&mail["kind"], &mail["subject"]),
        (&json!("notice"), &json!("Über \"limits\""))
    );
    assert_eq!(mail["text"], "Hello,\nlimits <change>.\n\nBye & thanks\n");
    let html = mail["html"].as_str().unwrap();
    assert!(
        html.contains("<p>Hello,<br>\nlimits &lt;change&gt;.</p>\n<p>Bye &amp; thanks</p>"),
        "{html}"
    );
    assert!(
        html.contains("<title>Über &quot;limits&quot;</title>"),
        "{html}"
    );
    assert!(
        mail["id"].as_str().unwrap().ends_with("@api.example.org"),
        "{mail}"
    );
    assert_eq!(mail["hours"], 72);

    let newest = Keys(directory.path()).json(&["audit", "--limit", "1"]);
    let record = &newest["records"][0];
    assert_eq!(
        (&record["action"], &record["detail"]),
        (&json!("contact_accounts"), &json!("recipients: 1"))
    );
    let actor = record["actor"].as_str().unwrap();
    assert!(
        actor.starts_with("cli:") && !actor.contains('@'),
        "{record}"
    );
    program.stop().with(0);
}

#[test]
fn many_accounts_get_one_mail_each_with_one_audit_record() {
    let directory = TempDir::new().unwrap();
    Keys(directory.path()).create("free");
    sql(
        directory.path(),
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1100)
         INSERT INTO owners
         SELECT printf('own_%011d', i), i || '@example.org', i || '@example.org', 0, '1', 0, NULL, NULL, NULL, NULL FROM n",
    );
    let empty = directory.path().join("empty");
    std::fs::write(&empty, "").unwrap();
    let message = empty.to_str().unwrap();
    let output = Accounts(directory.path()).run(&[
        "contact",
        "--subject",
        "s",
        "--message",
        message,
        "--all",
    ]);
    assert!(output.with(1).err.contains("the message must be 1 to 4000"));
    assert_eq!(
        contact(directory.path(), &["--all"]).with(0).out,
        counted(1_100, 1_100)
    );
    let distinct = "SELECT count(DISTINCT message_id), count(DISTINCT recipient) FROM mail_queue";
    assert_eq!(sql(directory.path(), distinct), "1100|1100\n");
    let records = "SELECT detail FROM audit WHERE what = 'contact_accounts'";
    assert_eq!(sql(directory.path(), records), "recipients: 1100\n");
}
