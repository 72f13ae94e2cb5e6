//! Programs that tests need in addition to the toolchain. If one is missing, the test is skipped: its name is written
//! to standard error, and to the list that `untested.rs` prints at the end of `cargo test`. With `NO_SKIPPED_TESTS=1`
//! the test fails instead.

use std::{
    fs::{self, OpenOptions},
    io::Write as _,
    os::unix::process::parent_id,
    path::Path,
};

/// Ends the test unless these Debian packages, or the SMTP server of `.ci/smtp.sh`, are installed.
macro_rules! needs {
    ($($package:literal),*) => {
        fn here() {}
        if $crate::requirements::is_skipped(std::any::type_name_of_val(&here), &[$($package),*]) {
            return;
        }
    };
}

/// Whether the test of this function lacks one of these packages, and is therefore skipped.
pub fn is_skipped(function: &str, packages: &[&str]) -> bool {
    let Some(missing) = packages.iter().find(|package| !is_installed(package)) else {
        return false;
    };
    let path = function.replace("::{{closure}}", "");
    let test = path
        .split_once("::")
        .map_or(&*path, |(_, test)| test)
        .trim_end_matches("::here");
    let line = format!("SKIPPED {test}: {missing} is not installed\n");
    assert!(std::env::var_os("NO_SKIPPED_TESTS").is_none(), "{line}");
    // Unlike the output of the macros, these writes are shown even if the test succeeds.
    std::io::stderr()
        .write_all(line.as_bytes())
        .expect("standard error is writable");
    let program = std::env::current_exe().expect("a path");
    // All test programs of one run have the same parent.
    let list = program
        .ancestors()
        .nth(2)
        .expect("a directory")
        .join(format!("skipped-{}", parent_id()));
    let list = OpenOptions::new().create(true).append(true).open(list);
    list.and_then(|mut list| list.write_all(line.as_bytes()))
        .expect("the list is writable");
    true
}

fn is_installed(package: &str) -> bool {
    match package {
        "postgresql" => contains("/usr/lib/postgresql", "bin/postgres"),
        "libfaketime" => contains("/usr/lib", "faketime/libfaketime.so.1"),
        "pgbouncer" | "haproxy" => Path::new("/usr/sbin").join(package).exists(),
        "smtp" => Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("target/smtp/bin/python")
            .exists(),
        "python3" | "sqlite3" | "git" | "prometheus" | "prometheus-alertmanager" => {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).any(|directory| directory.join(package).is_file())
        }
        other => panic!("no test can need {other}"),
    }
}

/// Whether a subdirectory of this directory has this file.
fn contains(directory: &str, file: &str) -> bool {
    let mut entries = fs::read_dir(directory)
        .into_iter()
        .flatten()
        .filter_map(Result::ok);
    entries.any(|entry| entry.path().join(file).exists())
}
