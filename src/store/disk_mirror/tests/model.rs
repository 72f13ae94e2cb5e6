//! The disk mirror against a list in memory, for any order of calls and restarts; and many threads at once.

use std::sync::Barrier;

use proptest::prelude::*;

use super::*;

const ROOM: u64 = 3_000;

#[derive(Clone, Debug)]
enum MirrorStep {
    Put { name: u8, size: usize, letter: char },
    Relabel { name: u8, size: usize },
    Remove(u8),
    Restart,
}

fn step() -> impl Strategy<Value = MirrorStep> {
    let letter = prop_oneof![Just('x'), Just('y')];
    prop_oneof![
        4 => (0..8u8, 0..700usize, letter).prop_map(|(name, size, letter)| MirrorStep::Put { name, size, letter }),
        2 => (0..8u8, 0..300usize).prop_map(|(name, size)| MirrorStep::Relabel { name, size }),
        1 => (0..8u8).prop_map(MirrorStep::Remove),
        1 => Just(MirrorStep::Restart),
    ]
}

/// Size of a record with its header.
fn weight(jar: &MirrorRecord) -> u64 {
    let slip =
        RecordHeader { turn: 0, content: Sha256Sum::of(b""), length: 0, name: &jar.name, label: &jar.label };
    (slip.written().len() + jar.content.len()) as u64
}

/// The expected records, newest first.
#[derive(Default)]
struct ExpectedRecords(Vec<MirrorRecord>);

impl ExpectedRecords {
    /// Whether it was accepted.
    fn put(&mut self, jar: MirrorRecord) -> bool {
        if weight(&jar) > ROOM / 4 {
            return false;
        }
        self.0.retain(|other| other.name != jar.name);
        self.0.insert(0, jar);
        while self.0.iter().map(weight).sum::<u64>() > ROOM {
            self.0.pop();
        }
        true
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_calls_and_restarts_leave_what_they_should(steps in proptest::collection::vec(step(), 1..60)) {
        let directory = TempDir::new().unwrap();
        let (mut shelf, mut model) = (open_with(&directory, ROOM), ExpectedRecords::default());
        for step in steps {
            match step {
                MirrorStep::Put { name, size, letter } => {
                    let jar = jar(&name.to_string(), &letter.to_string().repeat(size));
                    prop_assert_eq!(shelf.put(&jar).is_ok(), model.put(jar));
                }
                MirrorStep::Relabel { name, size } => {
                    let (name, label) = (name.to_string(), "l".repeat(size));
                    let there = model.0.iter().find(|jar| jar.name == name);
                    let expected = there.cloned().map(|jar| model.put(MirrorRecord { label: label.clone(), ..jar }));
                    match expected {
                        Some(true) => prop_assert!(relabel(&shelf, &name, &label).unwrap()),
                        Some(false) => prop_assert!(relabel(&shelf, &name, &label).is_err()),
                        None => prop_assert!(!relabel(&shelf, &name, &label).unwrap()),
                    }
                }
                MirrorStep::Remove(name) => {
                    shelf.remove(&name.to_string()).unwrap();
                    model.0.retain(|jar| jar.name != name.to_string());
                }
                MirrorStep::Restart => {
                    drop(shelf);
                    shelf = open_with(&directory, ROOM);
                }
            }
            prop_assert_eq!(jars(&shelf), &model.0[..]);
            prop_assert_eq!(shelf.size(), (model.0.len() as u64, bytes(&directory)));
        }
    }
}

#[test]
fn many_threads_at_once_leave_whole_jars() {
    let (directory, shelf) = fresh();
    let threads = 8;
    let start = Barrier::new(threads);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (shelf, start) = (&shelf, &start);
            scope.spawn(move || {
                start.wait();
                for round in 0..50 {
                    // A name of its own, and one shared by all threads.
                    put(shelf, &thread.to_string(), &format!("{thread} {round}"));
                    put(shelf, "all", &thread.to_string().repeat(100 + round));
                    match round % 5 {
                        0 => shelf.remove("all").unwrap(),
                        1 => drop(relabel(shelf, "all", "confirmed").unwrap()),
                        2 => drop(jars(shelf)),
                        _ => {}
                    }
                }
            });
        }
    });
    let there = jars(&shelf);
    assert_eq!(there.len(), threads + 1);
    for thread in 0..threads {
        assert!(there.contains(&jar(&thread.to_string(), &format!("{thread} 49"))));
    }
    assert_eq!(shelf.size().1, bytes(&directory));
    assert_eq!(jars(&open(&directory)), there);
}
