//! File permissions, and endless inputs.

use std::{
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::{Command, Stdio},
};

use tempfile::TempDir;

use crate::program::{BUILT_IN, Keys, Program, run};

/// The program, started by a shell with the umask 0.
fn with_open_mask(arguments: &[&str]) -> Command {
    let mut command = Command::new("/bin/sh");
    command
        .args([
            "-c",
            "umask 000; exec \"$0\" \"$@\"",
            env!("CARGO_BIN_EXE_scoregate"),
        ])
        .args(arguments);
    command.env_clear().envs(BUILT_IN).stdin(Stdio::null());
    command
}

/// The entries of a directory tree that others can access.
fn accessible(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let metadata = std::fs::symlink_metadata(&path).unwrap();
        if metadata.is_dir() {
            found.extend(accessible(&path));
        }
        let mode = metadata.permissions().mode() & 0o777;
        found.extend((mode & 0o077 != 0).then(|| format!("{} {mode:o}", path.display())));
    }
    found
}

#[test]
fn every_file_of_the_data_directory_is_private_and_an_open_directory_is_reported() {
    let parent = TempDir::new().unwrap();
    let data_dir = parent.path().join("data");
    std::fs::create_dir(&data_dir).unwrap();
    std::fs::set_permissions(&data_dir, std::fs::Permissions::from_mode(0o755)).unwrap();
    let directory = data_dir.to_str().unwrap();
    let serve = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--admin-listen",
        "127.0.0.1:0",
        "--data-dir",
        directory,
    ];
    let program = Program::spawn(with_open_mask(&serve));
    let warning = program.logs("other users can enter the data directory or write to it");
    assert!(
        warning.contains("0755") && warning.contains("chmod 700"),
        "{warning}"
    );
    program.public();
    Keys(&data_dir).create("free");
    let backup = data_dir.join("backup.db");
    let made = with_open_mask(&[
        "store",
        "backup",
        backup.to_str().unwrap(),
        "--data-dir",
        directory,
    ])
    .status();
    assert!(made.unwrap().success());
    let runs = parent.path().join("runs.jsonl");
    std::fs::write(&runs, "").unwrap();
    let import = with_open_mask(&[
        "scoring",
        "import",
        runs.to_str().unwrap(),
        "--data-dir",
        directory,
    ])
    .output();
    assert!(import.unwrap().status.success());
    assert_eq!(accessible(&data_dir), Vec::<String>::new());
    Keys(&data_dir.join("new")).create("free");
    program.stop().with(0);
    assert_eq!(accessible(&data_dir), Vec::<String>::new());

    std::fs::set_permissions(&data_dir, std::fs::Permissions::from_mode(0o700)).unwrap();
    let program = Program::spawn(with_open_mask(&serve));
    program.public();
    let output = program.stop().with(0);
    assert!(!output.err.contains("other users"), "{}", output.err);
}

#[test]
fn a_pipe_or_a_device_is_no_input_of_a_command() {
    let directory = TempDir::new().unwrap();
    let pipe = directory.path().join("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let data_dir = directory.path().join("data");
    let data_dir = ["--data-dir", data_dir.to_str().unwrap()];
    for input in [pipe.to_str().unwrap(), "/dev/zero", "/"] {
        for command in [
            &["keys", "import", input, "--format", "jsonl"][..],
            &["scoring", "import", input],
            &["scoring", "suites", "set", input],
            &[
                "accounts",
                "contact",
                "--all",
                "--subject",
                "Terms",
                "--message",
                input,
            ],
        ] {
            let refused = run(&[command, &data_dir].concat()).with(1).err;
            assert!(
                refused.contains("it is not a regular file"),
                "{command:?}: {refused}"
            );
        }
    }
}
