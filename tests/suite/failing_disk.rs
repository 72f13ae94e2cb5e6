//! A disk that fails when a test says so, under the real program: `failing_disk.c`, which stands between the program and
//! the store's file. What it can act out, and what not, is said there.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;

/// What the disk is to do from now on. Counts begin with the order, or with the program if it came before that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// What a disk does.
    Work,
    /// Every sync fails; what is written arrives.
    FailSyncs,
    /// Nothing can be written.
    FailWrites,
    /// Nothing can be written, because there is no room.
    NoRoom,
    /// Nothing can be written, the file of units owed included.
    FailWritesAndOwed,
    /// Every sync fails, that of the file of units owed included; what is written arrives.
    FailSyncsAndOwed,
    /// The store cannot be written, and the program dies in the middle of the file of units owed.
    TearOwed,
    /// The program dies before this sync.
    KillBeforeSync(u32),
    /// The program dies after this sync, before it hears of it.
    KillAfterSync(u32),
    /// The program dies before this write.
    KillBeforeWrite(u32),
    /// The program dies in the middle of this write.
    TearWrite(u32),
}

impl Order {
    fn words(self) -> String {
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

/// A disk under one program at a time.
pub struct Disk {
    directory: TempDir,
    orders: PathBuf,
    given: AtomicU32,
}

impl Disk {
    /// One that works.
    pub fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let orders = directory.path().join("orders");
        Self { directory, orders, given: AtomicU32::new(0) }
    }

    /// Orders it to do this.
    pub fn order(&self, order: Order) {
        let number = 1 + self.given.fetch_add(1, Ordering::Relaxed);
        // Under its name at once and whole: the program reads it at every call.
        let next = self.directory.path().join("next");
        std::fs::write(&next, format!("{number} {}", order.words())).unwrap();
        std::fs::rename(&next, &self.orders).unwrap();
    }

    /// What puts it under a program.
    pub fn environment(&self) -> [(&str, &str); 2] {
        [("LD_PRELOAD", library()), ("FAILING_DISK_ORDERS", self.orders.to_str().unwrap())]
    }
}

/// The library, built once in a run.
fn library() -> &'static str {
    static BUILT: OnceLock<String> = OnceLock::new();
    BUILT.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/failing_disk.c");
        let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let (half, whole) =
            (place.join(format!("failing_disk.{}", std::process::id())), place.join("failing_disk.so"));
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o"]);
        let built = compiler.args([&half, &source]).arg("-ldl").status();
        let built = built.expect("the command `cc` is missing; the embedded SQLite is built by it too");
        assert!(built.success(), "{} cannot be built", source.display());
        // Another run may be using the one that is there.
        std::fs::rename(&half, &whole).unwrap();
        whole.to_str().unwrap().to_owned()
    })
}
