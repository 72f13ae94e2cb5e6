//! Searches random schedules for one that reveals a known bug.

use proptest::{
    strategy::{Strategy, ValueTree as _},
    test_runner::TestRunner,
};

/// Whether one of this many schedules breaks a rule. The schedules are the same in each run.
pub fn is_found<S: Strategy>(
    schedules: &S,
    most: u32,
    mut breaks_rule: impl FnMut(S::Value) -> bool,
) -> bool {
    let mut runner = TestRunner::deterministic();
    (0..most).any(|_| breaks_rule(schedules.new_tree(&mut runner).unwrap().current()))
}

/// Takes one of the messages in flight, or, with `again`, a copy of it.
pub fn pick<T: Clone>(from: &mut Vec<T>, which: usize, again: bool) -> Option<T> {
    let index = which.checked_rem(from.len())?;
    Some(if again {
        from[index].clone()
    } else {
        from.swap_remove(index)
    })
}
