//! A disk that fails on command, for the real program: `failing_disk.c` is preloaded and intercepts its file
//! operations. That file documents the faults that it can simulate.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;

/// The command for the disk from now on. Counts begin with the command, or with the program if that started later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// A behavior of the disk.
    Work,
    /// Every sync fails; writes succeed.
    FailSyncs,
    /// Every write fails.
    FailWrites,
    /// Every write fails for lack of space.
    NoRoom,
    /// Every write fails, including those of the file of owed units.
    FailWritesAndOwed,
    /// Every sync fails, including that of the file of owed units; writes succeed.
    FailSyncsAndOwed,
    /// Writes to the store fail, and the program dies in the middle of the file of owed units.
    TearOwed,
    /// The program dies before this sync.
    KillBeforeSync(u32),
    /// The program dies after this sync, before the call returns.
    KillAfterSync(u32),
    /// The program dies before this write.
    KillBeforeWrite(u32),
    /// The program dies in the middle of this write.
    TearWrite(u32),
}

impl Order {
    fn to_text(self) -> String {
        match self {
            Self::Work => "work".into(),
            Self::FailSyncs => "eio-sync".into(),
            Self::FailWrites => "eio-write".into(),
            Self::NoRoom => "enospc".into(),
            Self::FailWritesAndOwed => "eio-write-owed".into(),
            Self::FailSyncsAndOwed => "eio-sync-owed".into(),
            Self::TearOwed => "torn-write-owed".into(),
            Self::KillBeforeSync(at) => format!("kill-before-sync {at}"),
            Self::KillAfterSync(at) => format!("kill-after-sync {at}"),
            Self::KillBeforeWrite(at) => format!("kill-before-write {at}"),
            Self::TearWrite(at) => format!("torn-write {at}"),
        }
    }
}

/// A disk for one program at a time.
pub struct Disk {
    directory: TempDir,
    orders: PathBuf,
    given: AtomicU32,
}

impl Disk {
    /// A working disk.
    pub fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let orders = directory.path().join("orders");
        Self { directory, orders, given: AtomicU32::new(0) }
    }

    /// Sends it a command.
    pub fn order(&self, order: Order) {
        let number = 1 + self.given.fetch_add(1, Ordering::Relaxed);
        // Renamed into place: the program reads it at every call.
        let next = self.directory.path().join("next");
        std::fs::write(&next, format!("{number} {}", order.to_text())).unwrap();
        std::fs::rename(&next, &self.orders).unwrap();
    }

    /// The environment that loads it into a program.
    pub fn environment(&self) -> [(&str, &str); 2] {
        [("LD_PRELOAD", library()), ("FAILING_DISK_ORDERS", self.orders.to_str().unwrap())]
    }
}

/// The library, built once per run.
fn library() -> &'static str {
    static BUILT: OnceLock<String> = OnceLock::new();
    BUILT.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/failing_disk.c");
        let target_dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let (half, whole) = (
            target_dir.join(format!("failing_disk.{}", std::process::id())),
            target_dir.join("failing_disk.so"),
        );
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o"]);
        let built = compiler.args([&half, &source]).arg("-ldl").status();
        let built = built.expect("the command `cc` is missing; the embedded SQLite needs it too");
        assert!(built.success(), "{} cannot be built", source.display());
        // Another run may be using the existing one.
        std::fs::rename(&half, &whole).unwrap();
        whole.to_str().unwrap().to_owned()
    })
}
