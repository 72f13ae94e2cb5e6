//! Metrics of limited resources: disk space, memory, processor cores, slots; age and size of the last backup.

use std::{fs, time::Duration};

use crate::{program::run, world::World};

const BACKUP: &str = "scoregate_last_backup_timestamp_seconds";
const SIZE: &str = "scoregate_last_backup_size_bytes";
/// Interval between measurements of the data directory.
const MEASURED: Duration = Duration::from_secs(15);

/// Seconds since 1970, from the modification time of a new file.
fn now(world: &World) -> u32 {
    let file = world.directory.path().join("now");
    fs::write(&file, "").unwrap();
    let written = fs::metadata(&file).unwrap().modified().unwrap();
    u32::try_from(
        written
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap()
            .as_secs(),
    )
    .unwrap()
}

impl World {
    fn store(&self, arguments: &[&str]) -> crate::program::CommandOutput {
        let directory = self.directory.path().to_str().unwrap();
        run(&[&["store"], arguments, &["--data-dir", directory]].concat())
    }

    /// Waits for the time of the last backup to be later than this.
    async fn backed_up_after(&self, before: u32) -> u32 {
        loop {
            self.pass(MEASURED);
            let at = self.counted(BACKUP).await;
            if at > before {
                return at;
            }
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn time_and_size_of_the_last_backup_are_zero_without_one_and_known_to_a_running_server_and_after_a_restart()
 {
    let world = World::new().await;
    assert_eq!(world.counted(BACKUP).await, 0);
    let [file, export] = ["backup.db", "keys.jsonl"].map(|name| {
        world
            .directory
            .path()
            .join(name)
            .to_str()
            .unwrap()
            .to_owned()
    });
    let start = now(&world);
    world.store(&["backup", &file]).with(0);
    let at = world.backed_up_after(0).await;
    assert!((start..=now(&world)).contains(&at), "{start} {at}");
    assert_eq!(
        u64::from(world.counted(SIZE).await),
        fs::metadata(&file).unwrap().len()
    );

    // The time of a failed backup is not recorded.
    world.store(&["backup", &file]).with(1);
    world.store(&["check"]).with(0);
    let world = world.restarted().await;
    assert_eq!(world.counted(BACKUP).await, at);

    // An export lacks data that only this store needs, so it does not count as a backup.
    for target in [export.as_str(), "-"] {
        world.store(&["export", target]).with(0);
    }
    let world = world.restarted().await;
    assert_eq!(world.counted(BACKUP).await, at);
}

#[tokio::test]
async fn a_backup_whose_time_cannot_be_recorded_is_complete_and_says_so() {
    let world = World::new().await;
    fs::create_dir(world.directory.path().join("last-backup.half")).unwrap();
    let file = world.directory.path().join("backup.db");
    let ended = world.store(&["backup", file.to_str().unwrap()]).with(0);
    assert!(
        file.exists()
            && ended
                .err
                .contains("its time and size could not be recorded"),
        "{}",
        ended.err
    );
    world.pass(MEASURED);
    assert_eq!(world.counted(BACKUP).await, 0);
}

#[tokio::test]
async fn the_free_space_of_the_data_directory_is_reported() {
    let world = World::new().await;
    let found = rustix::fs::statvfs(world.directory.path()).unwrap();
    let size = format!(
        "scoregate_data_dir_size_bytes {}\n",
        found.f_blocks * found.f_frsize
    );
    assert!(world.scrape().await.contains(&size), "{size}");
    let [free, size] = ["free", "size"].map(|what| format!("scoregate_data_dir_{what}_bytes"));
    let free = world.metric(&free).await;
    let size = world.metric(&size).await;
    assert!(free > 0.0 && free <= size, "{free} of {size}");
}

#[tokio::test]
async fn the_limits_of_memory_cores_connections_and_slots_are_reported_and_follow_a_reload() {
    let limits =
        "server.max_connections = 40\noverload.cached_slots = 8\noverload.waiting_slots = 9\n";
    let mut world = World::with(limits, crate::world::good).await;
    let resident = world.metric("process_resident_memory_bytes").await;
    let limit = world.metric("scoregate_memory_limit_bytes").await;
    assert!(
        resident > 0.0 && limit > resident && limit < 1e15,
        "{resident} of {limit}"
    );
    assert!((1.0..10_000.0).contains(&world.metric("scoregate_cpu_limit_cores").await));
    let series_names = [
        "scoregate_connections_limit",
        "scoregate_concurrency_limit{pool=\"cached\"}",
        "scoregate_concurrency_limit{pool=\"waiting\"}",
    ];
    for (series, most) in series_names.into_iter().zip([40, 8, 9]) {
        assert_eq!(world.counted(series).await, most, "{series}");
    }
    world
        .reload(
            "server.max_connections = 41\noverload.cached_slots = 7\noverload.waiting_slots = 6\n",
        )
        .await
        .unwrap();
    for (series, most) in series_names.into_iter().zip([41, 7, 6]) {
        assert_eq!(world.counted(series).await, most, "{series}");
    }
}
