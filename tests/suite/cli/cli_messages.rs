//! Texts of the command line: help, completions, errors, and the matching exit codes.

use std::{ffi::OsStr, net::TcpListener, os::unix::ffi::OsStrExt as _, process::Command};

use tempfile::TempDir;

use crate::program::{run, run_with};

/// The commands that a help text lists.
fn listed(help: &str) -> Vec<String> {
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    commands
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

/// Every command and every command of a group.
fn commands() -> Vec<String> {
    let mut all = Vec::new();
    for name in listed(&run(&["--help"]).out) {
        let verbs = listed(&run(&[&name, "--help"]).out);
        all.extend(verbs.into_iter().map(|verb| format!("{name} {verb}")));
        all.push(name);
    }
    assert!(all.len() > 50, "{all:?}");
    all
}

#[test]
fn the_help_of_each_command_shows_an_example() {
    assert!(
        run(&["--help"])
            .with(0)
            .out
            .contains("\n  scoregate demo\n")
    );
    for command in commands() {
        let arguments: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        let help = run(&arguments).with(0);
        let example = format!("\n  scoregate {command}");
        assert!(help.out.contains(&example), "{command}: {}", help.out);
        assert_eq!(help.err, "");
    }
}

#[test]
fn completions_exist_for_each_shell_and_bash_can_read_them() {
    for shell in ["bash", "zsh", "fish"] {
        let script = run(&["completions", shell]).with(0);
        assert!(
            script.out.contains("set-tier") && script.err.is_empty(),
            "{shell}"
        );
        if shell == "bash" {
            let directory = TempDir::new().unwrap();
            let file = directory.path().join("scoregate");
            std::fs::write(&file, &script.out).unwrap();
            assert!(
                Command::new("bash")
                    .arg("-n")
                    .arg(file)
                    .status()
                    .unwrap()
                    .success()
            );
        }
    }
    let refused = run(&["completions", "tcsh"]).with(1);
    assert!(refused.err.contains("bash") && refused.out.is_empty());
}

#[test]
fn a_man_page_exists_for_each_command_and_every_user_can_read_it() {
    let directory = TempDir::new().unwrap();
    let to = directory.path().to_str().unwrap();
    let written = run(&["man", "--to", to]).with(0);
    assert_eq!(written.out + &written.err, "");
    let commands = commands();
    for command in &commands {
        let name = format!("scoregate-{}", command.replace(' ', "-"));
        let page = directory.path().join(format!("{name}.1"));
        let text = std::fs::read_to_string(&page).unwrap();
        assert!(
            text.contains(&name.replace('-', "\\-")) && text.contains("\\-\\-help"),
            "{text}"
        );
        let mode = std::os::unix::fs::PermissionsExt::mode(&page.metadata().unwrap().permissions());
        assert_eq!(mode & 0o077, 0o044, "with the usual umask");
    }
    let pages = std::fs::read_dir(directory.path()).unwrap().count();
    assert!(
        pages > commands.len(),
        "each command, those of `scoring suites` too, and the program"
    );
    let refused = run(&["man", "--to", "/nowhere"]).with(1);
    assert!(refused.err.contains("/nowhere") && refused.out.is_empty());
}

#[test]
fn the_version_names_the_build_and_every_format_if_asked() {
    let first = format!("scoregate {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(run(&["version"]).with(0).out, first);
    let text = run(&["version", "--verbose"]).with(0).out;
    let rest = text.strip_prefix(&first).unwrap();
    let names: Vec<&str> = rest
        .lines()
        .map(|line| line.split("  ").next().unwrap())
        .collect();
    let formats = ["store file", "database", "export", "archive of runs", "API"];
    assert_eq!(names[..4], ["commit", "profile", "target", "features"]);
    assert_eq!(names[4..9], formats);
    assert!(
        rest.contains(&format!("{}-linux\n", std::env::consts::ARCH)),
        "{rest}"
    );
}

#[test]
fn check_reports_every_problem_at_once_and_prints_nothing_to_standard_output() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("bad.toml");
    std::fs::write(
        &file,
        "listen = 8080\nupstrem = \"built-in\"\n[guard]\nper_minute = 0\n",
    )
    .unwrap();
    let refused = run(&["check", "--config", file.to_str().unwrap()]).with(1);
    for path in ["listen: ", "upstrem: ", "guard.per_minute: ", "upstream: "] {
        assert!(
            refused.err.lines().any(|line| line.starts_with(path)),
            "{path} in {}",
            refused.err
        );
    }
    assert_eq!((refused.err.lines().count(), refused.out.as_str()), (4, ""));
    let served = run(&["serve", "--config", file.to_str().unwrap()]).with(1);
    assert!(
        refused
            .err
            .lines()
            .all(|problem| served.err.contains(problem)),
        "serve prints the same"
    );
}

#[test]
fn a_missing_file_and_an_unknown_environment_variable_are_problems() {
    let missing = run_with(
        &["check", "--config", "nothing.toml"],
        &[("SCOREGATE_LISTN", "x")],
    )
    .with(1);
    assert!(missing.err.contains("nothing.toml: ") && missing.err.contains("SCOREGATE_LISTN: "));
    run(&["check"]).with(1);
}

#[test]
fn a_month_that_is_smaller_than_the_day_is_a_warning_of_the_check() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("settings.toml");
    let tier = "[tiers.one]\nminute = 1\nday = 9\nmonth = 8\nowner_day = 9\npaid = true\n";
    std::fs::write(&file, format!("upstream = \"built-in\"\n{tier}")).unwrap();
    let checked = run(&["check", "--config", file.to_str().unwrap()]).with(0);
    assert!(
        checked
            .err
            .starts_with("warning: tiers.one.month: the quota is smaller")
            && checked.err.lines().count() == 2,
        "{}",
        checked.err
    );
}

#[test]
fn check_uses_the_configuration_file_named_in_the_environment() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("named.toml");
    std::fs::write(&file, "upstrem = 1\n").unwrap();
    let named = [("SCOREGATE_CONFIG", file.to_str().unwrap())];
    assert!(
        run_with(&["check"], &named)
            .with(1)
            .err
            .contains("upstrem: ")
    );
    let other = directory.path().join("other.toml");
    std::fs::write(&other, "upstream = \"built-in\"\n").unwrap();
    let checked = run_with(&["check", "--config", other.to_str().unwrap()], &named).with(0);
    assert_eq!(checked.err, format!("{}: ok\n", other.display()));
    assert!(
        run_with(&["check", "--sample"], &named)
            .with(0)
            .out
            .contains("# [upstream]")
    );
}

#[test]
fn check_reports_every_missing_file_with_all_other_problems() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("files.toml");
    let tls = |name: &str| {
        format!("[tls.{name}]\ncertificate = \"/no/{name}.pem\"\nkey = \"/no/{name}.key\"\n")
    };
    let text = format!(
        "upstrem = 1\n[admin]\ntoken_file = \"/no/token\"\n[upstream]\nurl = \"http://127.0.0.1:1\"\n\
         credential_file = \"/no/credential\"\n{}{}",
        tls("a"),
        tls("b")
    );
    std::fs::write(&file, text).unwrap();
    let output = run(&["check", "--config", file.to_str().unwrap()])
        .with(1)
        .err;
    for words in [
        "/no/token",
        "/no/credential",
        "/no/a.pem",
        "/no/a.key",
        "/no/b.pem",
        "/no/b.key",
        "upstrem: ",
    ] {
        assert_eq!(output.matches(words).count(), 1, "{words} in {output}");
    }
}

#[test]
fn invalid_toml_is_reported_by_line_and_its_text_is_not_printed() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("bad.toml");
    let shown = file.to_str().unwrap();
    for (text, words) in [
        ("[admin]\ntoken = \"s3cret", "line 2, character "),
        (
            "listen = \"127.0.0.1:1\"\nlisten = \"127.0.0.1:2\"\n",
            "line 2, character 1: this setting or table is",
        ),
        (
            "[upstream]\nurl = s3cret\n",
            "write `name = value`, with strings in double quotes",
        ),
    ] {
        std::fs::write(&file, text).unwrap();
        let output = run(&["check", "--config", shown]).with(1).err;
        assert!(
            output.starts_with(&format!("{shown}: line ")) && output.contains(words),
            "{output}"
        );
        assert!(
            !output.contains("s3cret") && output.lines().count() == 1,
            "{output}"
        );
    }
}

#[test]
fn an_invalid_json_line_is_reported_in_a_sentence() {
    let directory = TempDir::new().unwrap();
    let archive = directory.path().join("runs.db");
    let import = [
        "scoring",
        "import",
        "-",
        "--archive",
        archive.to_str().unwrap(),
    ];
    for (line, sentence) in [
        (
            "not json",
            "standard input:1: line: not valid JSON at byte 2: a value must be an object, a list, a number, ",
        ),
        (
            "{\"id\":1}",
            "standard input:1: id: write a string in double quotes\n",
        ),
        (
            "{\"id\":\"a\"",
            "standard input:1: line: incomplete JSON at byte 9: ",
        ),
    ] {
        let output = crate::program::run_with_input(&import, line.as_bytes())
            .with(1)
            .err;
        assert!(output.starts_with(sentence), "{line}: {output}");
    }
    let help = run(&["scoring", "import", "--help"]).with(0).out;
    assert!(
        help.contains("`cost` (US dollars, 0 if it was free) may be omitted"),
        "{help}"
    );
}

#[test]
fn an_unknown_command_that_is_not_utf_8_is_a_usage_error() {
    let word = OsStr::from_bytes(b"\xff");
    let output = Command::new(env!("CARGO_BIN_EXE_scoregate"))
        .arg("keys")
        .arg(word)
        .output()
        .unwrap();
    assert_eq!(
        output.status.code(),
        Some(1),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn a_port_in_use_is_a_runtime_error_that_names_the_port() {
    let used = TcpListener::bind("127.0.0.1:0").unwrap();
    let used = used.local_addr().unwrap().to_string();
    let directory = TempDir::new().unwrap();
    let environment = [
        ("SCOREGATE_UPSTREAM", "built-in"),
        ("TMPDIR", directory.path().to_str().unwrap()),
    ];
    for (public, side) in [
        (used.as_str(), "127.0.0.1:0"),
        ("127.0.0.1:0", used.as_str()),
    ] {
        let ports = ["--listen", public, "--admin-listen", side];
        let state = directory.path().join("state");
        let serve = run_with(
            &[
                &["serve", "--data-dir", state.to_str().unwrap()],
                &ports[..],
            ]
            .concat(),
            &environment,
        );
        assert!(serve.with(2).err.contains(&used));
        let demo = run_with(&[&["demo"], &ports[..]].concat(), &environment[1..]).with(2);
        assert!(demo.err.contains(&used) && demo.out.is_empty());
    }
    std::fs::remove_dir_all(directory.path().join("state")).unwrap();
    assert_eq!(
        std::fs::read_dir(directory.path()).unwrap().count(),
        0,
        "the demos left nothing behind"
    );
}

#[test]
fn an_unknown_command_is_a_usage_error() {
    for arguments in [
        &["demmo"][..],
        &[],
        &["serve", "--listen", "here"],
        &["keys", "create", "--name", "n"],
    ] {
        let refused = run(arguments).with(1);
        assert!(
            refused.out.is_empty() && !refused.err.is_empty(),
            "{arguments:?}"
        );
    }
    assert_eq!(
        run(&["--version"]).with(0).out,
        format!("scoregate {}\n", env!("CARGO_PKG_VERSION"))
    );
}
