//! Websites of applications in files of other formats, in exports and in imports.

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
    maintenance::export(from, false, &mut fs::File::create(to).unwrap(), NOW).unwrap();
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
fn a_file_of_the_format_before_websites_is_upgraded_exported_and_imported() {
    let directory = TempDir::new().unwrap();
    let before = &schema::STEPS[..7];
    drop(file::open_steps(directory.path(), &file(&directory), before).unwrap());
    let id = an_id();
    edit(
        &directory,
        &format!(
            "INSERT INTO applications VALUES ('{id}', 'old', 'pro', NULL, NULL, 'ann', 'a note', 0)"
        ),
    );
    let older = directory.path().join("older.db");
    fs::copy(file(&directory), &older).unwrap();
    let lines = directory.path().join("lines");
    assert!(
        export(&older, &lines).contains("\"url\":null,\"contact\":\"ann\",\"note\":\"a note\"")
    );

    let store = Embedded::open(directory.path()).unwrap();
    let read = wait(store.application(id, TODAY))
        .unwrap()
        .unwrap()
        .description;
    assert_eq!(
        (read.url, read.contact.as_deref(), read.note.as_deref()),
        (None, Some("ann"), Some("a note"))
    );
    let description = Description {
        url: Some(URL.into()),
        ..Description::default()
    };
    let described = ChangeKind::Describe {
        name: "new".into(),
        description,
    };
    wait(store.change(changing(id, described))).unwrap();
    drop(store);
    assert_eq!(stored_url(&directory, id).as_deref(), Some(URL));
    assert!(directory.path().join("scoregate.db.v7.bak").exists());

    let restored = TempDir::new().unwrap();
    import(&restored, &older).unwrap();
    assert_eq!(stored_url(&restored, id), None);
}

#[test]
fn an_export_contains_websites_and_may_lack_them() {
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
    let field = format!("\"url\":\"{URL}\",");
    assert!(export(&file(&directory), &lines).contains(&field));
    let restored = TempDir::new().unwrap();
    import(&restored, &lines).unwrap();
    assert_eq!(stored_url(&restored, id).as_deref(), Some(URL));

    altered(&lines, &field, "");
    let restored = TempDir::new().unwrap();
    import(&restored, &lines).unwrap();
    assert_eq!(stored_url(&restored, id), None);
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
    assert!(
        refused.contains("url: must begin with https:// or http://"),
        "{refused}"
    );
}
