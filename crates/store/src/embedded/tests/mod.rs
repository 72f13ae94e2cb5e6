//! Guarantees of the embedded engine beyond the traits: durability, the store file, and unusable files.

mod damage;
mod evidence;
mod moved;
mod opening;
mod personal_data;
mod restores;
mod upkeep;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::LazyLock,
};

use futures_util::future::join_all;
use pollster::block_on as wait;
use rusqlite::Connection;
use tempfile::TempDir;

use super::*;
use crate::{
    ChangeKind, Description, Ledger as _, OwnerChangeKind, Store, StoreError, StoreResult,
    conformance::{
        self, LeaseReply, SingleLease as _, a_key, an_id, application_of, applications, asking,
        changing, created, creating, found, given, make, owner_refusal, rotation, to_tier,
    },
    maintenance::{self, ImportOptions, ImportSummary, InspectionReport, MaintenanceError},
    sample::limits_set,
    statements::{Done, schema::STEPS},
};
use scoregate_base::{
    clock::{Day, Wall},
    keys::{ApplicationId, Digest, OwnerId},
    limits::{LimitSetting, OwnLimits},
};

const TODAY: Day = Day::from_number(20_413);
/// Noon of the test day.
const NOW: Wall = Wall::from_seconds(20_413 * 86_400 + 43_200);
/// Restores a backup or an export and accepts all losses.
static RESTORE: LazyLock<ImportOptions> = LazyLock::new(|| ImportOptions {
    restores: true,
    reopen_day: true,
    accept_lost_revocations: true,
    tiers: scoregate_base::plans::standard_tiers(),
    ..ImportOptions::default()
});

fn fresh() -> (TempDir, Store) {
    let directory = TempDir::new().unwrap();
    let store = Store::open(directory.path()).unwrap();
    (directory, store)
}

impl Store {
    /// Runs work on the writer thread.
    async fn on_file<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Connection) -> Done<T> + Send + 'static,
    ) -> StoreResult<T> {
        let writer = self.file().unwrap().worker(false);
        writer.run(false, doing, |file| work(&file.lock())).await
    }
}

fn file(directory: &TempDir) -> PathBuf {
    directory.path().join(Store::FILE_NAME)
}

fn import(
    directory: &TempDir,
    from: &Path,
    options: &ImportOptions,
) -> Result<ImportSummary, MaintenanceError> {
    maintenance::import(directory.path(), from, options, NOW)
}

fn opened(directory: &TempDir) -> Store {
    Store::open(directory.path()).unwrap()
}

/// Makes a backup in the data directory itself.
fn backed_up(directory: &TempDir, name: &str) -> PathBuf {
    let backup = directory.path().join(name);
    maintenance::back_up(directory.path(), &backup, false).unwrap();
    backup
}

/// Makes an export in the data directory itself.
fn exported(directory: &TempDir) -> PathBuf {
    let path = directory.path().join("lines");
    let mut out = fs::File::create(&path).unwrap();
    maintenance::export(&file(directory), &mut out, NOW).unwrap();
    path
}

/// A new directory into which a backup or an export was imported.
fn restored(from: &Path) -> TempDir {
    let directory = TempDir::new().unwrap();
    import(&directory, from, &RESTORE).unwrap();
    directory
}

/// The report of a check.
fn checked(directory: &TempDir) -> InspectionReport {
    maintenance::check(directory.path(), NOW).unwrap()
}

fn files_in(directory: &TempDir) -> usize {
    fs::read_dir(directory.path()).unwrap().count()
}

/// Leases units of today for a new node.
fn leased(store: &Store, id: ApplicationId, want: u32, quota: u32) -> LeaseReply {
    wait(store.lease(asking(id, TODAY, want, quota))).unwrap()
}

fn granted(directory: &TempDir, id: ApplicationId) -> u64 {
    wait(found(&opened(directory), id)).granted
}

/// Edits the file as an operator would.
fn edit(directory: &TempDir, sql: &str) {
    let by_hand = Connection::open(file(directory)).unwrap();
    by_hand.pragma_update(None, "foreign_keys", false).unwrap();
    by_hand.execute_batch(sql).unwrap();
}

/// A copy of the directory as a crash would leave it now.
fn crashed(directory: &TempDir) -> TempDir {
    let copy = TempDir::new().unwrap();
    for entry in fs::read_dir(directory.path()).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    copy
}

/// A format that this program does not support.
fn newer_format() -> u32 {
    u32::try_from(STEPS.len()).unwrap() + 1
}

fn refusal(directory: &Path) -> StoreError {
    Store::open(directory).map(drop).unwrap_err()
}

async fn fresh_store() -> (TempDir, Store) {
    fresh()
}

conformance::run_with!(fresh_store);

#[tokio::test]
async fn acknowledged_changes_survive_a_crash() {
    let (directory, store) = fresh();
    let id = created(&store).await;
    for _ in 0..20 {
        store.lease(asking(id, TODAY, 1, 100)).await.unwrap();
    }
    let left = crashed(&directory);
    assert!(
        left.path().join("scoregate.db-wal").exists(),
        "the test would prove nothing about the log"
    );
    std::mem::forget(store);
    let again = opened(&left);
    assert_eq!(found(&again, id).await.granted, 20);
    assert_eq!(again.day().await.unwrap(), Some(TODAY));
}

#[tokio::test]
async fn drop_completes_queued_commands() {
    let (directory, store) = fresh();
    let id = created(&store).await;
    {
        let mut asks: Vec<_> = (0..100)
            .map(|_| store.lease(asking(id, TODAY, 1, 1000)))
            .collect();
        for ask in &mut asks {
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            drop(ask.as_mut().poll(&mut context)); // queued; then the caller stops waiting
        }
    }
    drop(store);
    assert!(
        !directory.path().join("scoregate.db-wal").exists(),
        "a clean shutdown leaves no log"
    );
    assert_eq!(found(&opened(&directory), id).await.granted, 100);
}

#[tokio::test]
async fn sqlite3_reads_the_file_while_it_is_open() {
    needs!("sqlite3");
    let (directory, store) = fresh();
    let id = created(&store).await;
    store.lease(asking(id, TODAY, 4, 10)).await.unwrap();
    let sql = "SELECT l.application, l.day, l.granted, a.tier, k.shown, length(hex(k.digest))
               FROM ledger_days l JOIN applications a ON a.id = l.application JOIN keys k ON k.application = a.id;
               SELECT who, what, application, detail FROM audit;";
    let mut sqlite3 = Command::new("sqlite3");
    let output = sqlite3.arg(file(&directory)).arg(sql).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let shown: String = id.to_string().chars().take(12).collect();
    let wanted =
        format!("{id}|{TODAY}|4|free|{shown}|64\na test|create|{id}|tier free, key {shown}\n");
    assert_eq!(String::from_utf8_lossy(&output.stdout), wanted);
}

#[tokio::test]
async fn records_made_unreadable_by_manual_edits_are_reported_and_skipped() {
    let (directory, store) = fresh();
    let mut ids = Vec::new();
    for _ in 0..8 {
        ids.push(created(&store).await);
    }
    ids.sort();
    store.lease(asking(ids[7], TODAY, 1, 10)).await.unwrap();
    let update = |number: usize, what: &str| {
        format!(
            "UPDATE applications SET {what} WHERE id = '{}'",
            ids[number]
        )
    };
    let insert_day = |number: usize, units: i64| {
        format!(
            "INSERT INTO ledger_days VALUES ('{TODAY}', '{}', {units})",
            ids[number]
        )
    };
    let spoilt = [
        update(0, "own_limits = '{\"day\":-1}'"),
        update(1, "own_limits = '{\"minute\": 5}'"),
        update(2, "created_at = -5"),
        insert_day(3, -1),
        insert_day(4, i64::MAX),
        update(5, "name = CAST(x'ff00' AS TEXT)"),
        format!(
            "UPDATE keys SET expires_at = 9223372036854775807 WHERE application = '{}'",
            ids[6]
        ),
        "INSERT INTO applications (id, name, tier, created_at) VALUES ('nobody', '', '', 0)"
            .to_owned(),
        "INSERT INTO keys VALUES ('app_00000000000', x'00', '', 0, NULL, NULL, NULL, NULL)"
            .to_owned(),
        "INSERT INTO keys VALUES (CAST(x'7aff' AS TEXT), x'01', '', 0, NULL, NULL, NULL, NULL)"
            .to_owned(),
        "INSERT INTO ledger_days VALUES ('2026-99-99', 'nobody', 1), ('ZZZ', 'x', 1), ('zzz', 'x', 1)"
            .to_owned(),
    ];
    edit(&directory, &spoilt.join(";\n"));

    for most in [1, 2, 100] {
        let mut met = Vec::new();
        let mut skipped = Vec::new();
        let mut after = None;
        loop {
            let page = store.page(after, most, TODAY).await.unwrap();
            met.extend(page.applications);
            skipped.extend(page.skipped);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let good: Vec<_> = met.iter().map(|application| application.id).collect();
        assert_eq!(good, ids[6..], "{skipped:#?}");
        assert_eq!(
            (met[0].keys.len(), met[1].keys.len(), met[1].granted),
            (0, 1, 1)
        );
        assert_eq!(skipped.len(), 8, "{skipped:#?}");
        let all = skipped.join("\n");
        for id in &ids[..7] {
            assert!(all.contains(&id.to_string()), "{id}: {all}");
        }
    }
    let report = checked(&directory);
    assert!(report.faults.is_empty(), "{:?}", report.faults);
    let unreadable = report.unreadable.join("\n");
    for words in [
        "own_limits cannot be read",
        "9223372036854775807",
        "2026-99-99",
        "app_00000000000",
    ] {
        assert!(unreadable.contains(words), "{words}: {unreadable}");
    }
    assert_eq!(store.day().await.unwrap(), Some(TODAY));
    for id in &ids[3..5] {
        let lease = store.lease(asking(*id, TODAY, 1, 10)).await;
        assert!(
            matches!(lease, Err(StoreError::Damaged { .. })),
            "{lease:?}"
        );
    }
    assert!(matches!(
        store.application(ids[0], TODAY).await,
        Err(StoreError::Damaged { .. })
    ));
}

#[tokio::test]
async fn a_link_that_is_not_allowed_writes_as_much_as_one_that_is() {
    let (directory, store) = fresh();
    let log = || {
        let log = fs::metadata(directory.path().join("scoregate.db-wal"));
        log.unwrap().len()
    };
    let sent = async |name: String, email: String| {
        let before = (store.commits(), log());
        let is_sent = conformance::send(&store, &name, &email).await;
        (is_sent, store.commits() - before.0, log() - before.1)
    };
    for number in 0..3 {
        sent(number.to_string(), "ann@example.org".into()).await;
    }
    let mut bytes = [0, 0];
    for number in 0..20 {
        let other = sent(format!("other {number}"), format!("{number}@example.org")).await;
        let ann = sent(format!("ann {number}"), "ann@example.org".into()).await;
        assert_eq!(
            ((other.0, other.1), (ann.0, ann.1)),
            ((true, 1), (false, 1))
        );
        bytes = [bytes[0] + other.2, bytes[1] + ann.2];
    }
    assert!(
        bytes[1] * 10 >= bytes[0] * 9 && bytes[0] * 10 >= bytes[1] * 9,
        "{bytes:?}"
    );
}

#[tokio::test]
async fn concurrent_leases_share_commits_and_a_refused_one_affects_no_other() {
    let (_directory, store) = fresh();
    let mut ids = Vec::new();
    for _ in 0..64 {
        ids.push(created(&store).await);
    }
    let before = store.commits();
    assert_eq!(before, 64, "one at a time, one commit each");
    let asks = ids.iter().map(|id| store.lease(asking(*id, TODAY, 1, 10)));
    let refused = (0..8).map(|_| store.lease(asking(an_id(), TODAY, 1, 10)));
    let (leases, refused) = tokio::join!(join_all(asks), join_all(refused));
    for lease in leases {
        assert_eq!(lease.unwrap(), given(1, 1));
    }
    for lease in refused {
        assert!(matches!(lease, Err(StoreError::UnknownApplication(_))));
    }
    let commits = store.commits() - before;
    assert!(commits < 64, "{commits} commits for 64 leases");
}

#[tokio::test]
async fn a_failed_commit_is_reported_to_the_whole_group_and_the_next_group_succeeds() {
    let (_directory, store) = fresh();
    let id = created(&store).await;
    let (go, wait_for_go) = std::sync::mpsc::channel();
    // Keeps its transaction open until the lease is queued behind it. Then causes an error that only the commit
    // detects.
    let spoiler = store.on_file("spoil the commit", move |file: &Connection| {
        wait_for_go.recv().unwrap();
        file.execute_batch(
            "PRAGMA defer_foreign_keys = ON;
             INSERT INTO keys VALUES ('app_nobody', x'00', '', 0, NULL, NULL, NULL, NULL)",
        )?;
        Ok(())
    });
    let lease = store.lease(asking(id, TODAY, 1, 10));
    let (spoiler, lease, ()) = tokio::join!(spoiler, lease, async { go.send(()).unwrap() });
    assert!(
        matches!(spoiler, Err(StoreError::Unavailable { .. })),
        "{spoiler:?}"
    );
    assert!(
        matches!(lease, Err(StoreError::Unavailable { .. })),
        "{lease:?}"
    );
    let next = store.lease(asking(id, TODAY, 1, 10)).await;
    assert_eq!(next.unwrap(), given(1, 1));
}

#[tokio::test]
async fn two_processes_on_one_file_share_one_quota() {
    let (directory, first) = fresh();
    let id = created(&first).await;
    let second = opened(&directory);
    let leases = (0..80).map(|number| {
        let store = if number % 2 == 0 { &first } else { &second };
        conformance::units(store, asking(id, TODAY, 1, 50))
    });
    assert_eq!(join_all(leases).await.into_iter().sum::<u32>(), 50);
}

#[tokio::test]
async fn a_full_disk_is_unavailable_until_there_is_space_again() {
    let (_directory, store) = fresh();
    let id = created(&store).await;
    let limit_pages = |to: u32| {
        store.on_file("limit its pages", move |file| {
            Ok(file
                .pragma_update_and_check(None, "max_page_count", to, |row| row.get::<_, i64>(0))?)
        })
    };
    limit_pages(20).await.unwrap();
    let mut made = Vec::new();
    let refused = loop {
        match store.change(creating(an_id())).await {
            Ok(application) => made.push(application.id),
            Err(error) => break error,
        }
        assert!(made.len() < 10_000, "20 pages hold no more");
    };
    assert!(
        matches!(refused, StoreError::Unavailable { .. }),
        "{refused}"
    );
    // Concurrent commands share transactions. A command that returns an error has no effect.
    let crowd = join_all((0..32).map(|_| store.change(creating(an_id())))).await;
    assert!(crowd.iter().any(Result::is_err));
    let crowd = crowd.into_iter().flatten();
    made.extend(crowd.map(|application| application.id));
    let page = store.page(None, 10_000, TODAY).await.unwrap();
    assert_eq!(
        page.applications.len(),
        made.len() + 1,
        "a command that returned an error was kept"
    );

    limit_pages(100_000).await.unwrap();
    created(&store).await;
    let lease = store.lease(asking(id, TODAY, 1, 10)).await;
    assert_eq!(lease.unwrap(), given(1, 1));
}

#[tokio::test]
async fn a_locked_file_is_unavailable_until_it_is_unlocked() {
    let (directory, store) = fresh();
    let id = created(&store).await;
    let quick = |file: &Connection| Ok(file.busy_timeout(std::time::Duration::ZERO)?);
    store.on_file("lose its patience", quick).await.unwrap();
    let by_hand = Connection::open(file(&directory)).unwrap();
    by_hand.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = store.lease(asking(id, TODAY, 1, 10)).await;
    assert!(
        matches!(refused, Err(StoreError::Unavailable { .. })),
        "{refused:?}"
    );
    assert!(
        store.application(id, TODAY).await.unwrap().is_some(),
        "a reader waited for a writer"
    );
    by_hand.execute_batch("ROLLBACK").unwrap();
    store.lease(asking(id, TODAY, 1, 10)).await.unwrap();
}

#[tokio::test]
async fn days_of_the_ledger_are_deleted_after_35_days() {
    let (directory, store) = fresh();
    let id = created(&store).await;
    for day in (0..45).map(|later| Day::from_number(TODAY.number() + later)) {
        store.lease(asking(id, day, 1, 10)).await.unwrap();
    }
    while store.delete_outdated().await.unwrap() > 0 {}
    let by_hand = Connection::open(file(&directory)).unwrap();
    let (days, oldest): (u32, String) = by_hand
        .query_row("SELECT count(*), min(day) FROM ledger_days", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .unwrap();
    assert_eq!(
        (days, oldest),
        (35, Day::from_number(TODAY.number() + 10).to_string())
    );
}

#[tokio::test]
async fn a_day_beyond_the_calendar_is_refused() {
    let (_directory, store) = fresh();
    let id = created(&store).await;
    let refused = store
        .lease(asking(id, Day::from_number(u32::MAX), 1, 10))
        .await;
    assert!(
        matches!(refused, Err(StoreError::Unavailable { .. })),
        "{refused:?}"
    );
    assert_eq!(store.day().await.unwrap(), None);
}
