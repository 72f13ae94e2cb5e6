//! A file that is truncated or changed anywhere is either rejected with a clear message or read. It never causes a panic, and is
//! never taken for an empty store. The recovery commands work.

use std::collections::BTreeSet;

use crate::{
    MailKind,
    conformance::{notices, units},
    maintenance::{self, MaintenanceError},
    statements::Fault,
};
use scoregate_base::keys::Digest;

use super::*;

const PAGE: usize = 4096;

/// A closed store with several hundred applications, each with a key and a grant for today, and a backup of that store.
struct FilledStore {
    directory: TempDir,
    elsewhere: TempDir,
    ids: BTreeSet<ApplicationId>,
    bytes: Vec<u8>,
}

impl FilledStore {
    /// Damages the file.
    fn write(&self, bytes: &[u8]) {
        fs::write(file(&self.directory), bytes).unwrap();
    }

    fn backup(&self) -> PathBuf {
        self.elsewhere.path().join("backup.db")
    }

    /// Restores the backup some seconds later, because the name of the replaced store contains the time.
    fn restored(&self, seconds: usize) -> ImportSummary {
        let now = NOW.plus(std::time::Duration::from_secs(seconds as u64));
        maintenance::import(self.directory.path(), &self.backup(), &RESTORE, now).unwrap()
    }
}

fn filled() -> FilledStore {
    let (directory, store) = fresh();
    let ids: BTreeSet<ApplicationId> = (0..300).map(|_| an_id()).collect();
    for id in &ids {
        wait(store.change(creating(*id))).unwrap();
        leased(&store, *id, 3, 10);
    }
    drop(store);
    let elsewhere = TempDir::new().unwrap();
    maintenance::back_up(directory.path(), &elsewhere.path().join("backup.db"), false).unwrap();
    let bytes = fs::read(file(&directory)).unwrap();
    FilledStore {
        directory,
        elsewhere,
        ids,
        bytes,
    }
}

/// The result of a start with this file content: an error, or the applications that were read and the number of skipped records.
fn opened(directory: &Path, bytes: &[u8]) -> Result<(BTreeSet<ApplicationId>, usize), StoreError> {
    for ending in ["-wal", "-shm"] {
        drop(fs::remove_file(
            directory.join(format!("scoregate.db{ending}")),
        ));
    }
    fs::write(directory.join(Store::FILE_NAME), bytes).unwrap();
    let store = Store::open(directory)?;
    let page = wait(store.page(None, 1_000, TODAY))?;
    Ok((
        page.applications.iter().map(|one| one.id).collect(),
        page.skipped.len(),
    ))
}

fn is_clear(error: &StoreError) -> bool {
    match error {
        StoreError::Damaged { .. } | StoreError::Newer { .. } => {
            maintenance::recovery_steps(error).is_some()
        }
        StoreError::Unavailable { reason, .. } => !reason.is_empty(),
        StoreError::UnknownApplication(_)
        | StoreError::UnknownKey(_)
        | StoreError::UnknownIncident(_)
        | StoreError::IncidentResolved(_)
        | StoreError::Owner(_)
        | StoreError::Transfer(_)
        | StoreError::Exists(_) => false,
    }
}

#[test]
fn truncated_file_is_refused_and_restored_from_its_backup() {
    let filled = filled();
    let pages = filled.bytes.len() / PAGE;
    assert!(pages > 30, "{pages} pages prove little");
    let boundaries = (0..pages).map(|page| page * PAGE);
    let odd = [
        1,
        16,
        100,
        512,
        4_095,
        4_097,
        50_000,
        filled.bytes.len() - 1,
    ];
    for length in boundaries.chain(odd) {
        let Err(refused) = opened(filled.directory.path(), &filled.bytes[..length]) else {
            panic!("a file truncated to {length} bytes was accepted")
        };
        assert!(
            matches!(refused, StoreError::Damaged { .. }),
            "{length}: {refused}"
        );
        assert_eq!(
            fs::read(file(&filled.directory)).unwrap(),
            filled.bytes[..length],
            "it was written to"
        );
    }
    for length in [0, 1, PAGE, 5 * PAGE, filled.bytes.len() - 1] {
        opened(filled.directory.path(), &filled.bytes[..length]).unwrap_err();
        let imported = filled.restored(length);
        assert!(
            !imported.carried.gaps.is_empty(),
            "{length}: the lost data was not reported"
        );
        assert_eq!(
            fs::read(imported.aside.unwrap()).unwrap(),
            filled.bytes[..length]
        );
        let store = Store::open(filled.directory.path()).unwrap();
        let page = wait(store.page(None, 1_000, TODAY)).unwrap();
        assert!(
            page.applications
                .iter()
                .all(|one| filled.ids.contains(&one.id) && one.granted == 3)
        );
        assert_eq!((page.applications.len(), page.skipped.len()), (300, 0));
    }
}

#[test]
fn a_flipped_byte_in_any_page_never_loses_an_application_silently() {
    let filled = filled();
    for page in 0..filled.bytes.len() / PAGE {
        for (place, mask) in [
            (0, 0xFF),
            (3, 0x10),
            (7, 0x40),
            (1_000, 0x80),
            (4_000, 0x01),
            (4_090, 0xFF),
        ] {
            let mut bytes = filled.bytes.clone();
            bytes[page * PAGE + place] ^= mask;
            match opened(filled.directory.path(), &bytes) {
                Ok((read, skipped)) => {
                    // A changed digit of an id results in another id, so the number of records is unchanged.
                    assert!(
                        read.len() + skipped >= 300,
                        "{page} {place}: {} read, {skipped} skipped",
                        read.len()
                    );
                }
                Err(error) => assert!(is_clear(&error), "{page} {place}: {error}"),
            }
        }
    }
}

#[test]
fn a_backup_with_any_flipped_bit_is_neither_verified_nor_restored() {
    let filled = filled();
    let backup = filled.backup();
    assert!(maintenance::verify(&backup).unwrap().is_sound());
    let whole = fs::read(&backup).unwrap();
    let places = (0..300).map(|flip| flip * 7_919 * 8 + flip);
    let of_the_checksum = (0..8).map(|flip| (whole.len() - 65_536 + flip * 11) * 8);
    for place in places.chain(of_the_checksum) {
        let bit = place % (whole.len() * 8);
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(&backup, bytes).unwrap();
        let is_sound = maintenance::verify(&backup).is_ok_and(|found| found.is_sound());
        assert!(!is_sound, "bit {bit} of {} bytes", whole.len());
    }
    // Changes a letter in the name of an application, which no check of the structure detects.
    let name = b"Weather station";
    let at = whole.windows(name.len()).position(|part| part == name);
    let mut bytes = whole.clone();
    bytes[at.unwrap()] ^= 1;
    fs::write(&backup, bytes).unwrap();
    let options = ImportOptions {
        restores: true,
        ..Default::default()
    };
    let refused = maintenance::import(filled.directory.path(), &backup, &options, TODAY.start());
    let reason = refused.unwrap_err().to_string();
    assert!(reason.contains("does not match its checksum"), "{reason}");
}

#[test]
fn an_export_of_a_damaged_file_fails_and_names_the_remedy() {
    let filled = filled();
    let mut bytes = filled.bytes.clone();
    let leaf = bytes
        .chunks(PAGE)
        .rposition(|page| page.windows(15).any(|part| part == b"Weather station"));
    let leaf = leaf.unwrap();
    bytes[leaf * PAGE..(leaf + 1) * PAGE].fill(0);
    opened(filled.directory.path(), &bytes).unwrap_err();
    let refused = maintenance::export(&file(&filled.directory), &mut Vec::new(), NOW).unwrap_err();
    let MaintenanceError::Store(damaged @ StoreError::Damaged { .. }) = &refused else {
        panic!("{refused}")
    };
    let steps = maintenance::recovery_steps(damaged).unwrap();
    assert!(
        steps.contains("sqlite3") && steps.contains(".dump"),
        "{steps}"
    );
}

#[test]
fn rows_missing_without_an_error_of_the_reader_are_a_gap_of_a_restore() {
    for table in ["applications", "keys", "ledger_days"] {
        let filled = filled();
        let root = root(&filled.directory, table);
        let mut bytes = filled.bytes.clone();
        assert_eq!(bytes[root], 2, "{table}: the root is an interior page");
        let child = u32::from_be_bytes(bytes[root + 8..root + 12].try_into().unwrap()) as usize;
        // Removes one row from the last leaf.
        bytes[(child - 1) * PAGE + 4] -= 1;
        filled.write(&bytes);
        let backup = filled.backup();
        let options = ImportOptions {
            accept_lost_revocations: false,
            ..RESTORE.clone()
        };
        let refused =
            maintenance::import(filled.directory.path(), &backup, &options, NOW).unwrap_err();
        let MaintenanceError::LostRevocations { gaps, .. } = &refused else {
            panic!("{table}: {refused}")
        };
        assert!(gaps[0].contains("is damaged"), "{gaps:?}");
    }
}

#[test]
fn later_grants_survive_damage_to_any_page_of_the_replaced_store_or_a_gap_is_reported() {
    let filled = filled();
    let store = Store::open(filled.directory.path()).unwrap();
    for id in &filled.ids {
        leased(&store, *id, 2, 10);
    }
    drop(store);
    let whole = fs::read(file(&filled.directory)).unwrap();
    for page in (1..whole.len() / PAGE).step_by(3) {
        let mut bytes = whole.clone();
        bytes[page * PAGE..page * PAGE + 100].fill(0xA5);
        filled.write(&bytes);
        let imported = filled.restored(page);
        let granted: u32 = Connection::open(file(&filled.directory))
            .unwrap()
            .query_row("SELECT sum(granted) FROM ledger_days", [], |row| row.get(0))
            .unwrap();
        assert!(
            granted == 300 * 5 || !imported.carried.gaps.is_empty(),
            "page {page}"
        );
    }
}

#[test]
fn empty_or_missing_file_is_not_treated_as_new() {
    let filled = filled();
    let refused = opened(filled.directory.path(), b"").unwrap_err();
    assert!(refused.to_string().contains("it is empty"), "{refused}");
    let aside = "scoregate.db.aside-2026-11-21T120000Z";
    let beside_it = ["local.db", "documents.db", "last-backup", "scoregate.lock"];
    let of_its_name = [
        "scoregate.db-wal",
        "scoregate.db.v1.bak",
        aside,
        "scoregate.db.created",
    ];
    for trace in of_its_name.into_iter().chain(beside_it) {
        let directory = TempDir::new().unwrap();
        let left = directory.path().join(trace);
        // A lock file with content marks a directory that has no store yet.
        let content = if trace == "scoregate.lock" {
            ""
        } else {
            "SQLite format 3\0"
        };
        fs::write(left, content).unwrap();
        let refused = refusal(directory.path());
        let StoreError::Damaged { reason, .. } = &refused else {
            panic!("{trace}: {refused}")
        };
        assert!(reason.contains(trace), "{reason}");
        assert!(
            maintenance::recovery_steps(&refused)
                .unwrap()
                .contains("scoregate store init --data-dir")
        );
        assert!(!file(&directory).exists());
        maintenance::create_new(directory.path(), NOW).unwrap();
        drop(Store::open(directory.path()).unwrap());
        fs::remove_file(file(&directory)).unwrap();
        refusal(directory.path());
    }
}

#[test]
fn an_interrupted_creation_of_the_file_is_repeated() {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("scoregate.db.half"), "SQLite form").unwrap();
    fs::write(directory.path().join("scoregate.db.half-wal"), "half a log").unwrap();
    let store = Store::open(directory.path()).unwrap();
    wait(created(&store));
    drop(store);
    assert_eq!(
        files_in(&directory),
        2,
        "only the store and its marker are left"
    );
}

/// The offset of a table's root page.
fn root(directory: &TempDir, table: &str) -> usize {
    let store = Connection::open(file(directory)).unwrap();
    let find = "SELECT rootpage FROM sqlite_schema WHERE name = ?1";
    let number: usize = store
        .query_row(find, [table], |row| row.get::<_, u32>(0))
        .unwrap() as usize;
    (number - 1) * PAGE
}

#[test]
fn the_check_at_the_start_of_a_large_file_finds_rows_out_of_order() {
    for table in ["applications", "keys", "ledger_days"] {
        let filled = filled();
        let root = root(&filled.directory, table);
        let mut bytes = filled.bytes.clone();
        // Swaps the first two children or rows of the table. No page is malformed.
        let first = root + if bytes[root] < 8 { 12 } else { 8 };
        bytes[first..first + 4].rotate_left(2);
        filled.write(&bytes);
        let store = Connection::open(file(&filled.directory)).unwrap();
        let met = integrity::of_grants_and_keys(&store).unwrap_err();
        assert!(matches!(met, Fault::Record(_)), "{table}: {met:?}");
        let refused = opened(filled.directory.path(), &bytes).unwrap_err();
        assert!(
            matches!(refused, StoreError::Damaged { .. }),
            "{table}: {refused}"
        );
    }
}

#[test]
fn a_backup_finds_what_the_check_at_the_start_of_a_large_file_leaves_out() {
    let filled = filled();
    let root = root(&filled.directory, "audit");
    let mut bytes = filled.bytes.clone();
    bytes[root..root + PAGE].fill(0xA5);
    filled.write(&bytes);
    let store = Connection::open(file(&filled.directory)).unwrap();
    integrity::of_grants_and_keys(&store).unwrap();
    let to = filled.elsewhere.path().join("another.db");
    let found = maintenance::back_up(filled.directory.path(), &to, false).unwrap_err();
    assert!(
        matches!(found, MaintenanceError::Store(StoreError::Damaged { .. })),
        "{found}"
    );
}

#[test]
fn damage_found_while_running_is_reported_to_callers_and_remembered() {
    let filled = filled();
    let store = Store::open(filled.directory.path()).unwrap();
    let mut bytes = filled.bytes.clone();
    bytes[PAGE..].fill(0xA5);
    filled.write(&bytes);
    // Otherwise the writer's page cache would hide the damage.
    let forget = |file: &Connection| Ok(file.execute_batch("PRAGMA shrink_memory")?);
    wait(store.on_file("forget pages", forget)).unwrap();
    assert_eq!(store.damage(), None);
    let id = *filled.ids.first().unwrap();
    let met = wait(store.lease(asking(id, TODAY, 1, 10))).unwrap_err();
    assert!(
        matches!(
            met,
            StoreError::Damaged { .. } | StoreError::Unavailable { .. }
        ),
        "{met}"
    );
    assert!(store.damage().unwrap().contains("is damaged"));
}

#[tokio::test]
async fn an_unreadable_record_can_be_revoked_and_repaired() {
    let (directory, store) = fresh();
    let id = created(&store).await;
    edit(
        &directory,
        "UPDATE applications SET own_limits = '{\"day\":-1}', name = CAST(x'ff00' AS TEXT), tier = CAST(x'ff' AS TEXT)",
    );
    let moved = make(&store, id, to_tier("pro")).await;
    assert_eq!(
        (moved.tier.as_str(), moved.keys.len()),
        ("pro", 0),
        "none of its keys is active"
    );
    let digest = Digest::of(&id.to_string());
    let revoked = make(&store, id, ChangeKind::RevokeKey { digest }).await;
    assert!(revoked.keys.len() == 1 && revoked.keys[0].revoked_at.is_some());
    let addition = conformance::addition(a_key("another"));
    let refused = store.change(changing(id, addition)).await;
    assert!(
        matches!(refused, Err(StoreError::Damaged { .. })),
        "a key that would not work was added"
    );
    make(&store, id, limits_set(OwnLimits::NONE, None)).await;
    let words = ChangeKind::Describe {
        name: "renamed".into(),
        description: Description::default(),
    };
    assert_eq!(make(&store, id, words).await.name, "renamed");
    assert_eq!(found(&store, id).await.keys.len(), 1);
}

#[tokio::test]
async fn own_limits_that_cannot_be_read_keep_no_notice_from_others() {
    let (directory, store) = fresh();
    let mut ids = Vec::new();
    for email in ["ann@example.org", "bob@example.org"] {
        let (_, id) = notices::application_in(&store, email, "pro").await;
        units(&store, asking(id, TODAY, 80, 100)).await;
        ids.push(id);
    }
    let spoilt = format!(
        "UPDATE applications SET own_limits = '{{' WHERE id = '{}'",
        ids[0]
    );
    edit(&directory, &spoilt);
    let due = notices::quotas(&store, MailKind::Quota80, &[]).await;
    assert_eq!(
        due,
        [(80, 100); 2],
        "the first application has the quota of its tier"
    );
}
