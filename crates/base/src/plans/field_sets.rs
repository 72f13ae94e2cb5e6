//! The distinct sets of reserved fields that tiers see. A document has a form for each set.

use std::collections::BTreeSet;

use crate::{
    keys::Digest,
    routes::{Endpoint, shapes::ItemField},
};

/// Maximum number of sets.
pub const MOST_FIELD_SETS: usize = 4;

/// The index of a set. The set of all reserved fields is first, the empty set second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FieldSetIndex(pub(super) u8);

/// Reserved fields by their paths, such as `model.latestScore`.
pub type FieldPaths = BTreeSet<String>;

/// The field sets whose indexes follow the index of the set of all reserved fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldSets(Vec<FieldPaths>);

impl FieldSetIndex {
    pub(super) const ALL: Self = Self(0);
    pub(super) const NONE: Self = Self(1);

    /// The element for this set. A set without a separate element uses the element of the empty set.
    pub fn choose<T>(self, of_sets: &[T; MOST_FIELD_SETS]) -> &T {
        let [_, none, ..] = of_sets;
        of_sets.get(usize::from(self.0)).unwrap_or(none)
    }
}

impl Default for FieldSets {
    /// The sets of the specification: all reserved fields, or none.
    fn default() -> Self {
        Self(vec![FieldPaths::new()])
    }
}

impl FieldSets {
    /// The index of a set, which is added if it is new. `all` contains all reserved fields. `None` if there are too
    /// many sets.
    pub fn place(&mut self, seen: &FieldPaths, all: &FieldPaths) -> Option<FieldSetIndex> {
        if seen == all {
            return Some(FieldSetIndex::ALL);
        }
        if !self.0.contains(seen) {
            self.0.push(seen.clone());
        }
        let mut places = (1..).zip(self.0.iter().take(MOST_FIELD_SETS - 1));
        places
            .find(|(_, set)| *set == seen)
            .map(|(place, _)| FieldSetIndex(place))
    }

    /// The sets from which a field may be missing, starting with the empty set.
    pub fn partial(&self) -> &[FieldPaths] {
        &self.0
    }

    /// The set at an index; `None` for all reserved fields. An unknown index results in the empty set.
    pub fn seen(&self, place: FieldSetIndex) -> Option<&FieldPaths> {
        let before = usize::from(place.0).checked_sub(1)?;
        self.0.get(before).or(self.0.first())
    }

    /// The index of the largest set whose fields are all in the set at `place` in `others`.
    pub fn largest_within(&self, others: &Self, place: FieldSetIndex) -> FieldSetIndex {
        let Some(seen) = others.seen(place) else {
            return place;
        };
        let within = (1..).zip(&self.0).filter(|(_, set)| set.is_subset(seen));
        let largest = within.max_by_key(|(_, set)| set.len());
        largest.map_or(FieldSetIndex::NONE, |(place, _)| FieldSetIndex(place))
    }

    /// A string that identifies the sets; empty for the sets of the specification.
    pub fn fingerprint(&self) -> String {
        if self.0.len() > 1 {
            format!(" {:016x}", Digest::of(&format!("{:?}", self.0)).spread())
        } else {
            String::new()
        }
    }
}

impl Endpoint {
    /// The paths of the fields for paid callers.
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
        assert_eq!(sets.fingerprint(), "");
        let mut place =
            |seen: &[&str]| sets.place(&seen.iter().map(|path| (*path).into()).collect(), &all);
        let places = [&["a", "b", "c"][..], &[], &["a"], &["b"], &["a"], &["c"]].map(&mut place);
        let expected = [Some(0), Some(1), Some(2), Some(3), Some(2), None];
        assert_eq!(places, expected.map(|place| place.map(FieldSetIndex)));
        assert_eq!(sets.fingerprint().len(), 17);
    }

    #[test]
    fn sets_of_other_settings_become_the_largest_known_set_within_them() {
        let all: FieldPaths = ["a", "b", "c"].map(String::from).into();
        let paths = |seen: &[&str]| seen.iter().map(|path| (*path).into()).collect();
        let [mut known, mut others] = [FieldSets::default(), FieldSets::default()];
        for seen in [&["a"][..], &["a", "b"]] {
            known.place(&paths(seen), &all).unwrap();
        }
        for (seen, expected) in [
            (&["a", "b", "c"][..], FieldSetIndex::ALL),
            (&["a", "b"], FieldSetIndex(3)),
            (&["a", "c"], FieldSetIndex(2)),
            (&[], FieldSetIndex::NONE),
        ] {
            let place = others.place(&paths(seen), &all).unwrap();
            assert_eq!(known.largest_within(&others, place), expected, "{seen:?}");
        }
        assert_eq!(
            known.largest_within(&FieldSets::default(), FieldSetIndex(3)),
            FieldSetIndex::NONE
        );
    }

    #[test]
    fn the_specification_reserves_one_field() {
        let reserved = Route::Model.endpoint().reserved_fields();
        assert_eq!(
            reserved.into_iter().collect::<Vec<_>>(),
            ["model.latestScore"]
        );
    }
}
