//! The disk mirror against a list in memory, for any order of calls and restarts; and many concurrent threads.

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
fn weight(record: &MirrorRecord) -> u64 {
    let header = RecordHeader {
        turn: 0,
        content: sum_of(b""),
        length: 0,
        name: &record.name,
        label: &record.label,
    };
    (header.written().len() + record.content.len()) as u64
}

/// The expected records, newest first.
#[derive(Default)]
struct ExpectedRecords(Vec<MirrorRecord>);

impl ExpectedRecords {
    /// Whether it was accepted.
    fn put(&mut self, record: MirrorRecord) -> bool {
        if weight(&record) > ROOM / 4 {
            return false;
        }
        self.0.retain(|other| other.name != record.name);
        self.0.insert(0, record);
        while self.0.iter().map(weight).sum::<u64>() > ROOM {
            self.0.pop();
        }
        true
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_sequence_of_calls_and_restarts_matches_the_model(steps in proptest::collection::vec(step(), 1..60)) {
        let directory = TempDir::new().unwrap();
        let mut mirror = open_with(&directory, ROOM);
        let mut model = ExpectedRecords::default();
        for step in steps {
            match step {
                MirrorStep::Put { name, size, letter } => {
                    let record = record(&name.to_string(), &letter.to_string().repeat(size));
                    prop_assert_eq!(mirror.put(&record).is_ok(), model.put(record));
                }
                MirrorStep::Relabel { name, size } => {
                    let name = name.to_string();
                    let label = "l".repeat(size);
                    let there = model.0.iter().find(|record| record.name == name);
                    let expected = there.cloned().map(|record| model.put(MirrorRecord { label: label.clone(), ..record }));
                    match expected {
                        Some(true) => prop_assert!(relabel(&mirror, &name, &label).unwrap()),
                        Some(false) => prop_assert!(relabel(&mirror, &name, &label).is_err()),
                        None => prop_assert!(!relabel(&mirror, &name, &label).unwrap()),
                    }
                }
                MirrorStep::Remove(name) => {
                    mirror.remove(&name.to_string()).unwrap();
                    model.0.retain(|record| record.name != name.to_string());
                }
                MirrorStep::Restart => {
                    drop(mirror);
                    mirror = open_with(&directory, ROOM);
                }
            }
            prop_assert_eq!(records(&mirror), &model.0[..]);
            prop_assert_eq!(mirror.size(), (model.0.len() as u64, bytes(&directory)));
        }
    }
}

#[test]
fn concurrent_threads_leave_complete_records() {
    let (directory, mirror) = fresh();
    let threads = 8;
    let start = Barrier::new(threads);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let mirror = &mirror;
            let start = &start;
            scope.spawn(move || {
                start.wait();
                for round in 0..50 {
                    // A name of its own, and one shared by all threads.
                    put(mirror, &thread.to_string(), &format!("{thread} {round}"));
                    put(mirror, "all", &thread.to_string().repeat(100 + round));
                    match round % 5 {
                        0 => mirror.remove("all").unwrap(),
                        1 => drop(relabel(mirror, "all", "confirmed").unwrap()),
                        2 => drop(records(mirror)),
                        _ => {}
                    }
                }
            });
        }
    });
    let there = records(&mirror);
    assert_eq!(there.len(), threads + 1);
    for thread in 0..threads {
        assert!(there.contains(&record(&thread.to_string(), &format!("{thread} 49"))));
    }
    assert_eq!(mirror.size().1, bytes(&directory));
    assert_eq!(records(&open(&directory)), there);
}
