//! Imports between the files of one module: none of them form a circle, and no stage of the request path calls another.
//!
//! An import of what a `mod.rs` re-exports is an import of the file that defines it. What a `mod.rs` defines itself counts
//! like the code of any other file.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    File, found,
    layers::{named, sources},
    none,
    source::{code, is_root, module_of, paths_from, root_module},
    tree,
};

type Module = Vec<String>;

/// The files of the crate by module, and the re-exports of each `mod.rs`.
struct Files<'f> {
    by_module: BTreeMap<Module, &'f File>,
    exports: BTreeMap<Module, BTreeMap<String, Module>>,
}

impl<'f> Files<'f> {
    fn of(all: &'f [File]) -> Self {
        let by_module: BTreeMap<Module, &File> = sources(all)
            .map(|file| (module_of(&file.path), file))
            .collect();
        let mut exports = BTreeMap::new();
        for (module, file) in by_module.iter().filter(|(_, file)| is_root(file)) {
            let code = code(&file.text);
            let mut exported = BTreeMap::new();
            let children = by_module
                .keys()
                .filter(|child| child.len() == module.len() + 1 && child.starts_with(module));
            for child in children {
                let name = child.last().cloned().unwrap_or_default();
                for path in paths_from(&code, &name) {
                    let mut target = child.clone();
                    target.extend(path.iter().take(path.len() - 1).cloned());
                    exported.insert(path.last().cloned().unwrap_or_default(), target);
                }
            }
            exports.insert(module.clone(), exported);
        }
        Self { by_module, exports }
    }

    /// The file that defines the item of a path.
    fn defining(&self, path: &[String]) -> Option<Module> {
        let depth = (1..=path.len()).rev().find(|depth| {
            path.get(..*depth)
                .is_some_and(|head| self.by_module.contains_key(head))
        })?;
        let (module, rest) = path.split_at(depth);
        let exported = rest
            .first()
            .and_then(|name| Some((name, self.exports.get(module)?.get(name)?)));
        match exported {
            Some((name, target)) if target.as_slice() != module => {
                let onward: Module = target.iter().chain([name]).cloned().collect();
                self.defining(&onward)
            }
            _ => Some(module.to_vec()),
        }
    }

    /// For each file, the files of the same module that it imports from.
    fn imports(&self) -> BTreeMap<Module, BTreeSet<Module>> {
        let edges = self.by_module.iter().map(|(module, file)| {
            let paths = named(file)
                .into_iter()
                .chain(self.named_below(module, file));
            let targets = paths.filter_map(|path| self.defining(&path));
            let others =
                targets.filter(|target| target != module && target.first() == module.first());
            (module.clone(), others.collect())
        });
        edges.collect()
    }

    /// The paths through its own children that the code of a `mod.rs` uses, besides those it re-exports.
    fn named_below(&self, module: &Module, file: &File) -> Vec<Module> {
        if !is_root(file) {
            return Vec::new();
        }
        let code = without_exports(&code(&file.text));
        let children = self
            .by_module
            .keys()
            .filter(|child| child.len() == module.len() + 1 && child.starts_with(module));
        let named = children.flat_map(|child| {
            let paths = child
                .last()
                .map(|name| paths_from(&code, name))
                .unwrap_or_default();
            paths
                .into_iter()
                .map(move |path| child.iter().cloned().chain(path).collect())
        });
        named.collect()
    }
}

/// Code without its re-exports.
fn without_exports(code: &str) -> String {
    let mut kept = String::new();
    let mut in_export = false;
    for line in code.lines() {
        in_export |=
            line.starts_with("pub use ") || line.starts_with("pub(") && line.contains(") use ");
        if !in_export {
            kept.push_str(line);
            kept.push('\n');
        }
        in_export &= !line.ends_with(';');
    }
    kept
}

/// Whether `to` is reachable from `from` in at least one step.
fn reaches(imports: &BTreeMap<Module, BTreeSet<Module>>, from: &Module, to: &Module) -> bool {
    let mut seen = BTreeSet::new();
    let mut left = vec![from];
    while let Some(module) = left.pop() {
        for next in imports.get(module).into_iter().flatten() {
            if next == to {
                return true;
            }
            if seen.insert(next) {
                left.push(next);
            }
        }
    }
    false
}

/// Files that import from themselves through others.
fn circles(all: &[File]) -> Vec<String> {
    let imports = Files::of(all).imports();
    let in_a_circle = imports
        .keys()
        .filter(|module| reaches(&imports, module, module));
    in_a_circle
        .map(|module| format!("{}: is part of an import cycle", module.join("::")))
        .collect()
}

/// Folders and files of a crate that is one module, that import from each other in a circle. Names that the root re-exports
/// count for the file that defines them. The modules of the others are in `layers`.
pub fn folder_circles(all: &[File]) -> Vec<String> {
    let mut imports: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    let folder = |module: &Module| module.iter().take(2).cloned().collect::<Module>();
    let files = Files::of(all);
    for (module, targets) in files.imports() {
        let is_in_folders = files
            .by_module
            .get(&module)
            .is_some_and(|file| root_module(&file.path).is_some());
        // A root declares its folders.
        if module.len() < 2 || !is_in_folders {
            continue;
        }
        let from = folder(&module);
        let others = targets
            .iter()
            .filter(|target| target.len() > 1)
            .map(folder)
            .filter(|to| *to != from);
        imports.entry(from.clone()).or_default().extend(others);
    }
    let in_a_circle = imports
        .keys()
        .filter(|folder| reaches(&imports, folder, folder));
    in_a_circle
        .map(|folder| format!("{}: is part of a circle of folders", folder.join("::")))
        .collect()
}

/// Functions of a stage that another stage names.
fn calls_between_stages(all: &[File]) -> Vec<String> {
    let mut findings = Vec::new();
    for file in sources(all) {
        let home = module_of(&file.path);
        if !is_stage(&home) {
            continue;
        }
        for path in named(file) {
            let Some((item, other)) = path.get(..4).and_then(<[String]>::split_last) else {
                continue;
            };
            let is_a_function = item.chars().next().is_some_and(char::is_lowercase);
            if is_stage(other) && other != home && is_a_function {
                findings.push(format!(
                    "{}: calls `{}::{item}`",
                    file.path,
                    other.join("::")
                ));
            }
        }
    }
    findings
}

/// Whether a module is a stage of the request path.
fn is_stage(module: &[String]) -> bool {
    matches!(module, [gateway, stages, _] if gateway == "gateway" && stages == "stages")
}

#[test]
fn no_files_of_a_module_import_from_each_other_in_a_circle() {
    none(&circles(&tree()));
}

#[test]
fn no_folders_of_a_crate_import_from_each_other_in_a_circle() {
    none(&folder_circles(&tree()));
}

#[test]
fn the_folder_test_fails_when_a_circle_through_the_root_is_planted() {
    let planted = [
        File::planted("crates/store/src/lib.rs", "mod a;\nmod b;\npub use a::A;\n"),
        File::planted(
            "crates/store/src/a/mod.rs",
            "mod c;\nmod d;\npub use c::A;\n",
        ),
        File::planted("crates/store/src/a/c.rs", "pub struct A;\n"),
        File::planted("crates/store/src/a/d.rs", "use crate::b::B;\n"),
        File::planted("crates/store/src/b.rs", "use crate::A;\npub struct B;\n"),
    ];
    found(&folder_circles(&planted), 2, "store::b");
    none(&circles(&planted));
}

#[test]
fn no_stage_calls_a_stage() {
    let files = tree();
    for stage in ["parse", "charge", "respond"] {
        let path = format!("src/gateway/stages/{stage}.rs");
        assert!(files.iter().any(|file| file.path == path), "{path}");
    }
    none(&calls_between_stages(&files));
}

#[test]
fn the_circle_test_fails_when_a_circle_is_planted() {
    let root = || {
        File::planted(
            "src/a/mod.rs",
            "mod b;\nmod c;\nmod d;\npub use b::{B, Bee};\n",
        )
    };
    let leaf = |name: &str, text: &str| File::planted(&format!("src/a/{name}.rs"), text);
    let planted = [
        root(),
        leaf("b", "use super::c::C;"),
        leaf("c", "use super::Bee;"),
        leaf("d", "use super::B;"),
    ];
    found(&circles(&planted), 2, "a::b");
    let planted = [
        root(),
        leaf("b", ""),
        leaf("c", "use crate::a::Bee;"),
        leaf("d", "use super::c::C;"),
    ];
    none(&circles(&planted));
}

#[test]
fn the_stage_test_fails_when_a_call_is_planted() {
    let call = File::planted(
        "src/gateway/stages/charge.rs",
        "use super::fetch::{fetch, Served};",
    );
    found(&calls_between_stages(&[call]), 1, "fetch::fetch");
    none(&calls_between_stages(&[File::planted(
        "src/gateway/mod.rs",
        "use fetch::fetch;",
    )]));
}
