//! The actor in the audit trail for changes on this machine: the user that the kernel reports.

use tempfile::TempDir;

use crate::program::{BUILT_IN, Program, run, run_with};

#[tokio::test]
async fn audit_names_the_user_that_the_kernel_reports_and_not_the_environment() {
    let directory = TempDir::new().unwrap();
    let data_dir = ["--data-dir", directory.path().to_str().unwrap()];
    let create = || {
        let arguments = [
            &["keys", "create", "--name", "One", "--tier", "pro"][..],
            &data_dir,
        ]
        .concat();
        run_with(&arguments, &[("USER", "mallory"), ("LOGNAME", "mallory")]).with(0);
    };
    create();
    let running = Program::serve(directory.path(), &BUILT_IN);
    running.public();
    create();
    let output = run(&[&["keys", "audit", "--json"][..], &data_dir].concat())
        .with(0)
        .json();
    let id = std::process::Command::new("id")
        .arg("-un")
        .output()
        .unwrap();
    let user = format!("cli:{}", String::from_utf8(id.stdout).unwrap().trim());
    let who: Vec<&str> = output["records"]
        .as_array()
        .unwrap()
        .iter()
        .map(|record| record["actor"].as_str().unwrap())
        .collect();
    assert_eq!(who, [user.as_str(), user.as_str()]);
    running.stop().with(0);
}
