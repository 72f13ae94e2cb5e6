//! Programs that the checks may run: those of a minimal Debian, those of the toolchain, and those that `.ci/check` installs
//! for the step. Any other program makes the check fail on a machine without it.
//!
//! `.ci/bare_debian.sh` runs the whole command on such a machine. Programs named by a variable are not detected.

use std::ops::Range;

use crate::{File, found, none, tree};

/// Programs of a minbase root with gcc, each with its package.
const MINIMAL_DEBIAN: [(&str, &str); 13] = [
    ("sh", "dash"),
    ("/bin/sh", "dash"),
    ("bash", "bash"),
    ("cc", "gcc"),
    ("id", "coreutils"),
    ("mkfifo", "coreutils"),
    ("mount", "mount"),
    ("umount", "mount"),
    ("script", "bsdutils"),
    ("taskset", "util-linux"),
    ("setpriv", "util-linux"),
    ("ipcrm", "util-linux"),
    ("chown", "coreutils"),
];

/// Programs that a step of `.ci/check` installs: the step, the program, and the word of `.ci/check` that shows it.
const INSTALLED: [(&str, &str, &str); 10] = [
    ("test", "git", "need git "),
    ("test", "sqlite3", "need sqlite3 "),
    ("test", "python3", "need python3 "),
    ("test", "promtool", "install_idle prometheus"),
    ("test", "prometheus", "install_idle prometheus"),
    (
        "test",
        "prometheus-alertmanager",
        "install_idle prometheus-alertmanager",
    ),
    ("test", "amtool", "install_idle prometheus-alertmanager"),
    ("bench", "valgrind", "need valgrind "),
    // A part of valgrind.
    ("bench", "callgrind_control", "need valgrind "),
    ("deploy", "openssl", "need openssl "),
];

/// Common programs that a minimal Debian does not have.
const OFTEN_MISSING: [&str; 24] = [
    "ps",
    "pgrep",
    "pkill",
    "ip",
    "ss",
    "netstat",
    "lsof",
    "fuser",
    "xz",
    "git",
    "wget",
    "curl",
    "jq",
    "nc",
    "sudo",
    "openssl",
    "file",
    "less",
    "unzip",
    "sqlite3",
    "strace",
    "strip",
    "python3",
    "systemd-analyze",
];

/// The programs that Rust code starts by name, with their lines.
fn started(text: &str) -> Vec<(usize, &str)> {
    let lines = text.lines().enumerate();
    let named = lines.flat_map(|(number, line)| {
        line.split("Command::new(\"")
            .skip(1)
            .map(move |rest| (number + 1, rest.split('"').next().unwrap_or("")))
    });
    named.collect()
}

fn step_of(path: &str) -> &'static str {
    match path.split('/').next() {
        Some("benches") => "bench",
        Some("deploy") => "deploy",
        _ => "test",
    }
}

/// The lines of a step in `.ci/check`.
fn body<'c>(check: &'c str, step: &str) -> &'c str {
    let rest = check
        .split(&format!("step_{step}() {{\n"))
        .nth(1)
        .unwrap_or("");
    rest.split("\n}").next().unwrap_or("")
}

fn unknown_programs(all: &[File]) -> Vec<String> {
    let check = all
        .iter()
        .find(|file| file.path == ".ci/check")
        .map_or("", |file| file.text.as_str());
    let mut findings = Vec::new();
    for file in all.iter().filter(|file| file.is_rust()) {
        for (line, program) in started(&file.text) {
            let step = step_of(&file.path);
            let is_installed = INSTALLED.iter().any(|(of, name, shown)| {
                *of == step && *name == program && body(check, step).contains(shown)
            });
            if !is_installed && MINIMAL_DEBIAN.iter().all(|(name, _)| *name != program) {
                let where_it_is = format!("{}:{line}", file.path);
                findings.push(format!(
                    "{where_it_is}: a minimal Debian has no `{program}`, and step {step} does not install it"
                ));
            }
        }
    }
    findings
}

/// Whether a line of a script runs this program: at the start of a command, not as an argument or part of a word.
fn runs(line: &str, program: &str, is_python: bool) -> bool {
    let begins = |at: usize| {
        let before = line.split_at(at).0.trim_end();
        if is_python {
            return before.ends_with("[\"");
        }
        before.is_empty()
            || ["|", "&", ";", "(", "then", "do", "else", "!", "exec"]
                .iter()
                .any(|end| before.ends_with(end))
    };
    let ends = |at: usize| {
        let rest = line.split_at(at).1;
        rest.is_empty() || rest.starts_with([' ', '"', ')'])
    };
    let places = line.match_indices(program).map(|(at, _)| Range {
        start: at,
        end: at + program.len(),
    });
    places
        .into_iter()
        .any(|place| begins(place.start) && ends(place.end))
}

fn lacking_programs(all: &[File]) -> Vec<String> {
    let check = all
        .iter()
        .find(|file| file.path == ".ci/check")
        .map_or("", |file| file.text.as_str());
    let is_checked = |file: &&File| {
        file.path.starts_with(".ci/")
            && ![".ci/check", ".ci/bare_debian.sh"].contains(&file.path.as_str())
    };
    let mut findings = Vec::new();
    for file in all.iter().filter(is_checked) {
        for (number, line) in file
            .text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim_start().starts_with('#'))
        {
            for program in OFTEN_MISSING
                .iter()
                .filter(|program| runs(line, program, file.path.rsplit('.').next() == Some("py")))
            {
                if !check.contains(&format!("need {program} ")) {
                    let where_it_is = format!("{}:{}", file.path, number + 1);
                    findings.push(format!(
                        "{where_it_is}: `.ci/check` installs no `{program}`"
                    ));
                }
            }
            // By default, `unshare --mount` changes it too.
            if line.contains("unshare ")
                && line.contains("--mount")
                && !line.contains("--propagation unchanged")
            {
                let where_it_is = format!("{}:{}", file.path, number + 1);
                findings.push(format!(
                    "{where_it_is}: changes the propagation of /, which may not be a mount point"
                ));
            }
        }
    }
    findings
}

#[test]
fn the_checks_run_only_programs_that_a_bare_debian_has_or_that_they_install() {
    none(&unknown_programs(&tree()));
    none(&lacking_programs(&tree()));
}

#[test]
fn the_program_test_fails_when_a_program_that_nobody_installs_is_planted() {
    let check = File::planted(
        ".ci/check",
        "step_test() {\n    need sqlite3 sqlite3\n}\n\nstep_bench() {\n    cargo bench\n}\n",
    );
    let bench =
        |program: &str| File::planted("benches/b.rs", &format!("x\nCommand::new(\"{program}\")"));
    let alone = |file: File| vec![File::planted(".ci/check", &check.text), file];
    found(
        &unknown_programs(&alone(bench("kill"))),
        1,
        "benches/b.rs:2: a minimal Debian has no `kill`",
    );
    found(
        &unknown_programs(&alone(bench("valgrind"))),
        1,
        "step bench does not install it",
    );
    none(&unknown_programs(&alone(bench("taskset"))));
    none(&unknown_programs(&alone(File::planted(
        "tests/t.rs",
        "Command::new(\"sqlite3\")",
    ))));
    let script = |line: &str| alone(File::planted(".ci/s.sh", line));
    found(
        &lacking_programs(&script("# ps\n  x | ps -ef")),
        1,
        ".ci/s.sh:2: `.ci/check` installs no `ps`",
    );
    let python = |line: &str| alone(File::planted(".ci/s.py", line));
    found(
        &lacking_programs(&python("run([\"git\", 1])")),
        1,
        "no `git`",
    );
    none(&lacking_programs(&python("file = pathlib.Path(place)")));
    found(
        &lacking_programs(&script("unshare --mount --propagation private x")),
        1,
        "mount point",
    );
    none(&lacking_programs(&script(
        "echo ps; sqlite3 file; grep git x\nunshare --mount --propagation unchanged x",
    )));
}
