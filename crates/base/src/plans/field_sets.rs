//! The distinct sets of reserved fields that tiers see. A document has a form for each.

use std::collections::BTreeSet;

use crate::routes::{Endpoint, shapes::ItemField};

/// Maximum number of sets.
pub const MOST_FIELD_SETS: usize = 4;

/// The place of a set: the set of all reserved fields is the first, the empty set the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FieldSetIndex(u8);

/// Reserved fields by their paths, such as `model.latestScore`.
pub type FieldPaths = BTreeSet<String>;

/// The sets after that of all reserved fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldSets(Vec<FieldPaths>);

impl FieldSetIndex {
    pub(super) const ALL: Self = Self(0);
    pub(super) const NONE: Self = Self(1);

    pub(super) const fn mark(self) -> u8 {
        self.0
    }

    /// The element of this set. A set without an element of its own sees what the empty set sees.
    pub const fn choose<T>(self, of_sets: &[T; MOST_FIELD_SETS]) -> &T {
        let [all, none, third, fourth] = of_sets;
        match self.0 {
            0 => all,
            2 => third,
            3 => fourth,
            _ => none,
        }
    }
}

impl Default for FieldSets {
    /// The sets of the specification: all reserved fields, or none.
    fn default() -> Self {
        Self(vec![FieldPaths::new()])
    }
}

impl FieldSets {
    /// The place of a set, which is added if it is new. `all` are all reserved fields. `None` if there are too many sets.
    pub fn place(&mut self, seen: FieldPaths, all: &FieldPaths) -> Option<FieldSetIndex> {
        if seen == *all {
            return Some(FieldSetIndex::ALL);
        }
        let known = self.0.iter().position(|set| *set == seen);
        if known.is_none() {
            self.0.push(seen);
        }
        let place = known.unwrap_or(self.0.len() - 1) + 1;
        u8::try_from(place).ok().filter(|_| place < MOST_FIELD_SETS).map(FieldSetIndex)
    }

    /// The sets from which a field may be missing: the empty one first.
    pub fn partial(&self) -> &[FieldPaths] {
        &self.0
    }

    /// Text that differs from that of other sets; `None` for the sets of the specification.
    pub fn fingerprint(&self) -> Option<String> {
        (self.0.len() > 1).then(|| format!("{:?}", self.0))
    }
}

impl Endpoint {
    /// The paths of its fields for paid callers.
    pub fn reserved_fields(&self) -> FieldPaths {
        let mut paths = FieldPaths::new();
        collect(self.name, self.item, &mut paths);
        paths
    }
}

fn collect(place: &str, fields: &[ItemField], paths: &mut FieldPaths) {
    for field in fields.iter().filter(|field| field.has_paid_part()) {
        let path = format!("{place}.{}", field.name);
        collect(&path, field.shape.fields(), paths);
        paths.extend(field.paid_only.then_some(path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::Route;

    #[test]
    fn equal_sets_have_one_place_and_there_are_at_most_four() {
        let all: FieldPaths = ["a", "b", "c"].map(String::from).into();
        let mut sets = FieldSets::default();
        assert_eq!(sets.fingerprint(), None);
        let mut place = |seen: &[&str]| sets.place(seen.iter().map(|path| (*path).into()).collect(), &all);
        let places = [&["a", "b", "c"][..], &[], &["a"], &["b"], &["a"], &["c"]].map(&mut place);
        let expected = [Some(0), Some(1), Some(2), Some(3), Some(2), None];
        assert_eq!(places, expected.map(|place| place.map(FieldSetIndex)));
        assert!(sets.fingerprint().is_some());
    }

    #[test]
    fn the_specification_reserves_one_field() {
        let reserved = Route::Model.endpoint().reserved_fields();
        assert_eq!(reserved.into_iter().collect::<Vec<_>>(), ["model.latestScore"]);
    }
}
