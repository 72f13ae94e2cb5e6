//! Allowed references: modules use only lower layers, engines are named only where the program is assembled, and each
//! major foreign crate is used only in its own module.

use crate::{
    File, found, none,
    source::{code, is_product, module_of, paths_from, root_module},
    tree,
};

/// The layers, lowest first. Modules of one layer do not name each other.
const LAYERS: [&[&str]; 19] = [
    &["watched_file"],
    &["clock", "json", "secret", "words"],
    &["accept", "address", "keys", "limits"],
    &["routes"],
    &["evidence", "plans"],
    &["interim", "telemetry"],
    &["traces"],
    &["store", "bodies", "cache", "scoring"],
    &["upstream", "pages"],
    &["instruments"],
    &["accounts", "documents", "mail", "status"],
    &["quota"],
    &["statistics"],
    &["gateway", "registry"],
    &["leaks", "mcp", "site"],
    &["server", "admin", "backend"],
    &["config"],
    &["app"],
    &["cli"],
];

/// The libraries, and the module that each of them is if it is only one.
const LIBRARIES: [(&str, Option<&str>); 4] = [
    ("scoregate_base", None),
    ("scoregate_observe", None),
    ("scoregate_scoring", Some("scoring")),
    ("scoregate_store", Some("store")),
];

/// Concrete engines, and the modules that may name them besides their own and `app`.
const ENGINES: [(&str, &str, &[&str]); 3] = [
    ("upstream", "BuiltInUpstream", &[]),
    ("upstream", "HttpUpstream", &[]),
    // The two interfaces of the built-in backend, and the command that starts one of them.
    (
        "scoring",
        "Scoring",
        &[
            "src/upstream/built_in.rs",
            "src/backend/answer.rs",
            "src/cli/scoring/serve.rs",
        ],
    ),
];

/// Foreign crates, and the only places that may name them.
const ROOMS: [(&str, &[&str]); 9] = [
    ("moka", &["src/cache/"]),
    (
        "rusqlite",
        &[
            "crates/store/src/embedded/",
            "crates/store/src/maintenance/",
            "crates/store/src/statements/",
            "crates/store/src/local/",
            "crates/scoring/src/archive/",
        ],
    ),
    (
        "tokio_postgres",
        &[
            "crates/store/src/postgres/",
            "crates/store/src/statements/",
            "crates/store/src/sql/all_applications.rs",
        ],
    ),
    (
        "hyper",
        &[
            "src/server/",
            "src/admin/",
            "src/backend/",
            "src/upstream/http.rs",
            "src/upstream/connections.rs",
            "src/cli/control.rs",
            "src/mail/webhooks/request.rs",
            "crates/observe/src/interim.rs",
            "crates/observe/src/traces/collector.rs",
        ],
    ),
    (
        "hyper_util",
        &[
            "src/server/",
            "src/admin/",
            "src/backend/",
            "src/upstream/http.rs",
            "src/upstream/connections.rs",
            "src/cli/control.rs",
            "src/mail/webhooks/request.rs",
            "crates/observe/src/traces/collector.rs",
        ],
    ),
    (
        "hyper_rustls",
        &["src/upstream/http.rs", "src/upstream/connections.rs"],
    ),
    ("lettre", &["src/mail/"]),
    ("regex_lite", &["src/upstream/mapping/model_id.rs"]),
    (
        "metrics_exporter_prometheus",
        &["crates/observe/src/telemetry/"],
    ),
];

/// Macros that register a metric. Only the table of metrics may use them.
const REGISTERING: [&str; 6] = [
    "counter!",
    "gauge!",
    "histogram!",
    "describe_counter!",
    "describe_gauge!",
    "describe_histogram!",
];

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

/// The paths of this crate that a file uses, from the crate's root.
pub fn named(file: &File) -> Vec<Vec<String>> {
    let code = code(&file.text);
    let home = module_of(&file.path);
    let rooted = |root: Option<&str>, path: Vec<String>| {
        root.map(str::to_owned).into_iter().chain(path).collect()
    };
    let own = root_module(&file.path);
    let mut named: Vec<Vec<String>> = paths_from(&code, "crate")
        .into_iter()
        .map(|path| rooted(own, path))
        .collect();
    for (library, root) in LIBRARIES {
        named.extend(
            paths_from(&code, library)
                .into_iter()
                .map(|path| rooted(root, path)),
        );
    }
    for mut path in paths_from(&code, "super") {
        let ups = 1 + path.iter().take_while(|part| *part == "super").count();
        path.drain(..ups - 1);
        let stays = home.len().saturating_sub(ups);
        named.push(home.iter().take(stays).cloned().chain(path).collect());
    }
    named
}

fn is_for_tests(file: &File, all: &[File]) -> bool {
    let module = module_of(&file.path);
    // `mod tests;` and its like are declared under `#[cfg(test)]`, so their parent's code does not show them.
    let Some((name, parents)) = module.split_last() else {
        return false;
    };
    if name.starts_with("tests_of_") {
        return true;
    }
    if parents.is_empty() {
        return false;
    }
    let parent = all
        .iter()
        .find(|other| other.is_rust() && module_of(&other.path) == parents);
    parent.is_some_and(|parent| {
        let declares = |text: &str| {
            text.lines()
                .any(|line| line.trim().ends_with(&format!("mod {name};")))
        };
        declares(&parent.text) && !declares(&code(&parent.text)) || is_for_tests(parent, all)
    })
}

/// The code of the crate without its roots and its tests.
pub fn sources(all: &[File]) -> impl Iterator<Item = &File> {
    let ours = all.iter().filter(|file| is_product(file));
    ours.filter(|file| !module_of(&file.path).is_empty() && !is_for_tests(file, all))
}

fn wrong_layers(all: &[File]) -> Vec<String> {
    let mut findings = Vec::new();
    for file in sources(all) {
        let home = module_of(&file.path).swap_remove(0);
        let Some(own) = layer(&home) else {
            findings.push(format!("{}: `{home}` is in no layer", file.path));
            continue;
        };
        for path in named(file) {
            let Some(other) = path.first().filter(|other| **other != home) else {
                continue;
            };
            if layer(other).is_none_or(|layer| layer >= own) {
                findings.push(format!(
                    "{}: uses `{}`, which is not in a lower layer",
                    file.path,
                    path.join("::")
                ));
            }
        }
    }
    findings
}

fn named_engines(all: &[File]) -> Vec<String> {
    let mut findings = Vec::new();
    for file in sources(all).filter(|file| !file.path.starts_with("src/app/")) {
        for (module, engine, others) in ENGINES {
            let is_home = module_of(&file.path)
                .first()
                .is_some_and(|home| home == module);
            let names = |path: &Vec<String>| path.iter().take(2).eq([module, engine]);
            if !is_home && !others.contains(&file.path.as_str()) && named(file).iter().any(names) {
                findings.push(format!(
                    "{}: names the engine `{module}::{engine}`",
                    file.path
                ));
            }
        }
    }
    findings
}

/// What `optional_sql` looks for.
const OPTIONAL_SQL: [&str; 4] = [
    "pg_control_",
    "pg_walfile_name",
    "pg_current_wal",
    "advisory",
];

/// Names in [`ENGINES`] that no file of their module defines, and files that may name an engine but do not exist.
fn unknown_engines(all: &[File]) -> Vec<String> {
    let mut findings = Vec::new();
    for (module, engine, others) in ENGINES {
        let defines = |file: &File| {
            let declared =
                |end: char| code(&file.text).contains(&format!("pub struct {engine}{end}"));
            module_of(&file.path)
                .first()
                .is_some_and(|home| home == module)
                && [' ', ';', '(', '<'].map(declared).contains(&true)
        };
        if !sources(all).any(defines) {
            findings.push(format!("`{module}::{engine}`: no such type"));
        }
        let is_missing = |path: &&&str| !all.iter().any(|file| file.path == ***path);
        findings.extend(
            others
                .iter()
                .filter(is_missing)
                .map(|path| format!("{path}: no such file")),
        );
    }
    findings
}

/// Parts of statements that a server may refuse, outside the one file for them.
fn optional_sql(all: &[File]) -> Vec<String> {
    let is_engine = |file: &&File| {
        file.path.starts_with("crates/store/src/") && !file.path.ends_with("/engine_features.rs")
    };
    let mut findings = Vec::new();
    for file in sources(all).filter(is_engine) {
        let code = code(&file.text);
        findings.extend(
            OPTIONAL_SQL
                .iter()
                .filter(|part| code.contains(**part))
                .map(|part| format!("{}: `{part}` belongs to engine_features.rs", file.path)),
        );
    }
    findings
}

fn crates_out_of_room(all: &[File]) -> Vec<String> {
    let mut findings = Vec::new();
    for file in sources(all) {
        let code = code(&file.text);
        for (foreign, paths) in ROOMS {
            let is_allowed_path = paths.iter().any(|path| file.path.starts_with(path));
            if !is_allowed_path && !paths_from(&code, foreign).is_empty() {
                findings.push(format!(
                    "{}: uses `{foreign}`, which belongs to {paths:?}",
                    file.path
                ));
            }
        }
        for macro_name in REGISTERING.iter().filter(|name| code.contains(**name)) {
            if !file.path.starts_with("crates/observe/src/telemetry/") {
                findings.push(format!(
                    "{}: `{macro_name}` belongs to telemetry's table",
                    file.path
                ));
            }
        }
    }
    findings
}

#[test]
fn modules_name_only_modules_of_lower_layers() {
    none(&wrong_layers(&tree()));
}

#[test]
fn lib_rs_declares_the_modules_in_layer_order() {
    let files = tree();
    let root = files
        .iter()
        .find(|file| file.path == "src/lib.rs")
        .expect("there is a lib.rs");
    let declared = root
        .text
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    let layers: Vec<_> = declared.map(layer).collect();
    assert!(
        layers.iter().all(Option::is_some) && layers.is_sorted(),
        "{layers:?}"
    );
}

#[test]
fn only_the_app_names_concrete_engines() {
    none(&named_engines(&tree()));
}

#[test]
fn every_engine_that_may_not_be_named_exists() {
    none(&unknown_engines(&tree()));
}

#[test]
fn each_foreign_crate_stays_in_its_room() {
    none(&crates_out_of_room(&tree()));
}

#[test]
fn statements_that_other_engines_may_lack_are_in_one_file() {
    none(&optional_sql(&tree()));
    let planted = |path| {
        File::planted(
            path,
            "const LOCK: &str = \"SELECT pg_advisory_xact_lock(1)\";",
        )
    };
    found(
        &optional_sql(&[planted("crates/store/src/postgres/keys/audit.rs")]),
        1,
        "advisory",
    );
    none(&optional_sql(&[planted(
        "crates/store/src/statements/engine_features.rs",
    )]));
}

#[test]
fn the_layer_test_fails_when_a_forbidden_import_is_planted() {
    for (path, import) in [
        ("src/keys/form.rs", "use crate::gateway::Gateway;"),
        (
            "src/cache/mod.rs",
            "use crate::{clock::Now, upstream::Upstream};",
        ),
        ("src/cache/mod.rs", "use scoregate_store::Store;"),
        ("crates/base/src/clock/mod.rs", "use crate::routes::Route;"),
        ("src/limits/rule.rs", "use super::super::routes::find;"),
        ("src/limits/mod.rs", "use super::server;"),
        ("src/gateway/mod.rs", "fn f() { crate::cli::main(); }"),
        ("src/secret.rs", "use super::keys::Digest;"),
        ("src/routes/mod.rs", "use crate::*;"),
        ("src/oddments.rs", ""),
    ] {
        found(&wrong_layers(&[File::planted(path, import)]), 1, path);
    }
    for (path, import) in [
        (
            "src/gateway/admit.rs",
            "use super::refusal::Refusal;\nuse crate::limits::Rule;",
        ),
        (
            "crates/store/src/embedded/worker.rs",
            "use crate::StoreError;\nuse super::file::File;",
        ),
        (
            "src/keys/form.rs",
            "// crate::gateway asks this\n#[cfg(test)]\nuse crate::gateway::Gateway;",
        ),
    ] {
        none(&wrong_layers(&[File::planted(path, import)]));
    }
}

#[test]
fn a_file_that_only_tests_see_may_name_what_it_likes() {
    none(&wrong_layers(&[File::planted(
        "src/keys/tests_of_form.rs",
        "use crate::gateway::Gateway;",
    )]));
    let child = || File::planted("src/keys/tests.rs", "use crate::gateway::Gateway;");
    none(&wrong_layers(&[
        File::planted("src/keys/mod.rs", "#[cfg(test)]\nmod tests;"),
        child(),
    ]));
    found(
        &wrong_layers(&[File::planted("src/keys/mod.rs", "mod tests;"), child()]),
        1,
        "keys/tests.rs",
    );
}

#[test]
fn the_engine_test_fails_when_an_engine_is_named_elsewhere() {
    let import = "use crate::upstream::HttpUpstream as Backend;";
    found(
        &named_engines(&[File::planted("src/config/mod.rs", import)]),
        1,
        "upstream::HttpUpstream",
    );
    none(&named_engines(&[File::planted(
        "src/config/mod.rs",
        "use crate::upstream::HttpConfig;",
    )]));
    none(&named_engines(&[File::planted(
        "src/app/mod.rs",
        "use crate::upstream::HttpUpstream;",
    )]));
}

#[test]
fn the_engine_test_fails_when_an_engine_has_another_name() {
    let planted = ENGINES.map(|(module, engine, _)| {
        let text = if engine == "Scoring" {
            "pub struct Scores;".into()
        } else {
            format!("pub struct {engine};")
        };
        File::planted(&format!("src/{module}/{engine}.rs"), &text)
    });
    let others: Vec<File> = ENGINES
        .iter()
        .flat_map(|(_, _, others)| *others)
        .map(|path| File::planted(path, ""))
        .collect();
    let all: Vec<File> = planted.into_iter().chain(others).collect();
    found(
        &unknown_engines(&all),
        1,
        "`scoring::Scoring`: no such type",
    );
}

#[test]
fn the_room_test_fails_when_a_foreign_crate_strays() {
    for (path, line, words) in [
        ("src/gateway/fetch.rs", "use moka::sync::Cache;", "moka"),
        (
            "crates/store/src/lib.rs",
            "use rusqlite::Connection;",
            "rusqlite",
        ),
        (
            "src/gateway/mod.rs",
            "fn f(b: hyper::body::Incoming) {}",
            "hyper",
        ),
        (
            "src/cache/mod.rs",
            "metrics::counter!(\"x\").increment(1);",
            "counter!",
        ),
    ] {
        found(&crates_out_of_room(&[File::planted(path, line)]), 1, words);
    }
    none(&crates_out_of_room(&[File::planted(
        "src/cache/mod.rs",
        "use moka::sync::Cache;",
    )]));
}
