//! The members of a JSON object in their original order, as raw text.
//!
//! Only names are parsed, so no number is rounded and no field lost. Callers decide whether duplicate names are
//! allowed.

use std::{borrow::Cow, collections::BTreeSet, fmt};

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members of an object.
pub struct Members<'b>(pub Vec<Member<'b>>);

/// A member.
pub struct Member<'b> {
    /// The name, decoded.
    pub name: Cow<'b, str>,
    /// The name as written, with quotes.
    pub written: &'b str,
    /// The value, as written.
    pub value: &'b RawValue,
}

/// The error for a name that occurs twice: parsers would disagree about which value counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DuplicateMember;

impl<'b> Members<'b> {
    /// Parses the members of an object.
    pub fn of(text: &'b str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The value of the member with this name.
    pub fn get(&self, name: &str) -> Result<Option<&'b RawValue>, DuplicateMember> {
        let mut called = self.0.iter().filter(|member| member.name == name);
        let first = called.next().map(|member| member.value);
        if called.next().is_some() {
            Err(DuplicateMember)
        } else {
            Ok(first)
        }
    }

    /// The first member whose name also belongs to an earlier member.
    pub fn twice(&self) -> Option<&Member<'b>> {
        let mut seen = BTreeSet::new();
        self.0.iter().find(|member| !seen.insert(&member.name))
    }
}

impl<'b> Deserialize<'b> for Members<'b> {
    fn deserialize<D: Deserializer<'b>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(OrderedMembers)
    }
}

struct OrderedMembers;

impl<'b> Visitor<'b> for OrderedMembers {
    type Value = Members<'b>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'b>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some((written, value)) = map.next_entry::<&'b RawValue, &'b RawValue>()? {
            let written = written.get();
            let MemberName(name) = serde_json::from_str(written).map_err(A::Error::custom)?;
            members.push(Member {
                name,
                written,
                value,
            });
        }
        Ok(Members(members))
    }
}

/// A member's name, decoded, borrowed where possible.
#[derive(serde::Deserialize)]
#[serde(transparent)]
struct MemberName<'b>(#[serde(borrow)] Cow<'b, str>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_decoded_and_values_stay_as_they_were_written() {
        let text = r#" { "a" : 1.10 , "\u0062\/":[ 1E+2 ], "a":null } "#;
        let members = Members::of(text).unwrap();
        let seen: Vec<_> = members
            .0
            .iter()
            .map(|m| (&*m.name, m.written, m.value.get()))
            .collect();
        assert_eq!(
            seen,
            [
                ("a", "\"a\"", "1.10"),
                ("b/", r#""\u0062\/""#, "[ 1E+2 ]"),
                ("a", "\"a\"", "null")
            ]
        );
        assert_eq!(
            members.get("b/").unwrap().map(RawValue::get),
            Some("[ 1E+2 ]")
        );
        assert!(members.get("c").unwrap().is_none());
        assert_eq!(members.get("a").err(), Some(DuplicateMember));
        assert_eq!(
            members.twice().map(|member| member.value.get()),
            Some("null")
        );
        assert!(
            Members::of(r#"{"a":1,"\u0061a":2}"#)
                .unwrap()
                .twice()
                .is_none()
        );
    }

    #[test]
    fn only_objects_have_members() {
        for text in [
            "[]",
            "7",
            "",
            "{",
            r#"{"a":}"#,
            r#"{"a":1}}"#,
            r#"{"\ud800":1}"#,
            "{a:1}",
        ] {
            assert!(Members::of(text).is_err(), "{text}");
        }
    }
}
