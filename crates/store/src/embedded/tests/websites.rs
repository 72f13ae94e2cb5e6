//! Websites of applications in exports and in imports.

use std::fs;

use tempfile::TempDir;

use super::*;
use crate::embedded::maintenance;

const URL: &str = "https://example.org/?a=b";

fn import(directory: &TempDir, from: &Path) -> Result<(), String> {
    maintenance::import(directory.path(), from, &RESTORE, NOW)
        .map(drop)
        .map_err(|error| error.to_string())
}

fn export(from: &Path, to: &Path) -> String {
    maintenance::export(from, &mut fs::File::create(to).unwrap(), NOW).unwrap();
    fs::read_to_string(to).unwrap()
}

fn stored_url(directory: &TempDir, id: ApplicationId) -> Option<String> {
    let store = Embedded::open(directory.path()).unwrap();
    wait(store.application(id, TODAY))
        .unwrap()
        .unwrap()
        .description
        .url
}

/// An export of an application with another text instead of its website, with a correct checksum.
fn altered(path: &Path, before: &str, after: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(before), "{text}");
    let (content, end) = text.trim_end().rsplit_once('\n').unwrap();
    let content = content.replace(before, after) + "\n";
    let counts = end.split(",\"sha256\"").next().unwrap();
    let digest = Digest::of(&content);
    fs::write(
        path,
        format!("{content}{counts},\"sha256\":\"{digest}\"}}}}\n"),
    )
    .unwrap();
}

#[test]
fn an_export_contains_websites() {
    let (directory, store) = fresh();
    let id = an_id();
    let mut creation = creating(id);
    let ChangeKind::Create { description, .. } = &mut creation.what else {
        unreachable!()
    };
    description.url = Some(URL.into());
    wait(store.change(creation)).unwrap();
    drop(store);
    let lines = directory.path().join("lines");
    let field = format!("\"url\":\"{URL}\"");
    assert!(export(&file(&directory), &lines).contains(&field));
    let restored = TempDir::new().unwrap();
    import(&restored, &lines).unwrap();
    assert_eq!(stored_url(&restored, id).as_deref(), Some(URL));
}

#[test]
fn an_export_with_a_script_as_a_website_is_refused() {
    let (directory, store) = fresh();
    wait(created(&store));
    drop(store);
    let lines = directory.path().join("lines");
    export(&file(&directory), &lines);
    altered(&lines, "\"url\":null", "\"url\":\"javascript:alert(1)\"");
    let refused = import(&TempDir::new().unwrap(), &lines).unwrap_err();
    assert!(refused.contains("url is \"javascript"), "{refused}");
}
