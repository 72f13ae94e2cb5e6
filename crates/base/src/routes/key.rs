//! Cache keys, built only here. Two requests share a key if and only if they must get the same document: the same
//! endpoint, model, resolved period, sort key and limit. The form of a document depends on the tier and is chosen when
//! it is served.

use std::{borrow::Cow, fmt};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use smallvec::SmallVec;

use super::{
    endpoint_table::EndpointTable,
    own_param::OwnWords,
    params::{BadParam, Limit, Param, Period, Query, SortBy, decode_query, decode_segment},
    table::Route,
};

/// A valid model id: `[A-Za-z0-9][A-Za-z0-9._:-]{0,127}`. Short ids need no allocation.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModelId(SmallVec<[u8; 32]>);

/// The key of a document.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DocumentKey {
    /// The endpoint.
    pub route: Route,
    /// The model, if the endpoint has one.
    pub id: Option<ModelId>,
    /// The resolved period, if the endpoint has one.
    pub period: Option<Period>,
    /// The resolved sort key, if the endpoint has one.
    pub sort_by: Option<SortBy>,
    /// The resolved limit, if the endpoint has one.
    pub limit: Option<Limit>,
    /// The resolved values of the endpoint's own parameters.
    pub own: OwnWords,
}

impl ModelId {
    /// Validates a decoded id, such as an id in a backend's list.
    pub fn new(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let well_formed = bytes.len() <= 128
            && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
            && bytes
                .iter()
                .all(|b| b.is_ascii_alphanumeric() || b"._:-".contains(b));
        well_formed.then(|| Self(SmallVec::from_slice(bytes)))
    }

    /// Decodes and validates an id in a path.
    pub fn from_path(raw: &str) -> Result<Self, BadParam> {
        let bad = BadParam {
            param: Param::Id,
            problem: "is malformed",
        };
        decode_segment(raw)
            .and_then(|text| Self::new(&text))
            .ok_or(bad)
    }

    /// The text of the id.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("made of ASCII only, by the rule above")
    }
}

impl fmt::Debug for ModelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for ModelId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ModelId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let rule = "write 1 to 128 of A-Z a-z 0-9 . _ : - and begin with a letter or digit";
        Self::new(&String::deserialize(from)?).ok_or_else(|| D::Error::custom(rule))
    }
}

impl fmt::Display for ModelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl DocumentKey {
    /// The key for this query. `default_period` is the default of the caller's tier.
    pub fn new(route: Route, id: Option<ModelId>, query: Query, default_period: Period) -> Self {
        let takes = route.endpoint().takes;
        Self {
            route,
            id: if route.names_a_model() { id } else { None },
            period: takes
                .contains(&Param::Period)
                .then(|| query.period.unwrap_or(default_period)),
            sort_by: takes
                .contains(&Param::SortBy)
                .then(|| query.sort_by.unwrap_or(SortBy::Combined)),
            limit: takes
                .contains(&Param::Limit)
                .then(|| query.limit.unwrap_or(Limit::DEFAULT)),
            own: takes
                .iter()
                .filter_map(|param| param.own())
                .fold(query.own, OwnWords::or_default),
        }
    }
}

impl DocumentKey {
    /// The key of an endpoint without parameters.
    pub fn plain(route: Route) -> Self {
        Self {
            route,
            id: None,
            period: None,
            sort_by: None,
            limit: None,
            own: OwnWords::default(),
        }
    }

    /// The key of an endpoint whose only parameter is the model.
    pub fn of_model(route: Route, id: ModelId) -> Self {
        Self {
            id: Some(id),
            ..Self::plain(route)
        }
    }

    /// The key of an endpoint whose only parameter is the period.
    pub fn over(route: Route, period: Period) -> Self {
        Self {
            period: Some(period),
            ..Self::plain(route)
        }
    }

    /// The list of models for a request without parameters.
    pub fn list_of_models() -> Self {
        Self::new(Route::Models, None, Query::default(), Period::Day)
    }

    /// The path and query of this document: `/api/v1/models/gpt-5/history?period=7d`.
    pub fn address(&self) -> String {
        let id = self.id.as_ref().map_or("", ModelId::as_str);
        let mut address = self.route.endpoint().documented_path().replace("{id}", id);
        let mut separator = "?";
        for (param, value) in self.values() {
            address.extend([separator, param.name(), "=", &value]);
            separator = "&";
        }
        address
    }

    /// The value of a parameter, if the document has one. Nothing in it needs encoding.
    pub fn value(&self, param: Param) -> Option<Cow<'_, str>> {
        Some(match param {
            Param::Id => self.id.as_ref()?.as_str().into(),
            Param::Period => self.period?.word().into(),
            Param::SortBy => self.sort_by?.word().into(),
            Param::Limit => self.limit?.get().to_string().into(),
            Param::Own(own) => self.own.word(own)?.into(),
        })
    }

    /// The values of the parameters in the query.
    fn values(&self) -> impl Iterator<Item = (Param, Cow<'_, str>)> {
        let takes = self.route.endpoint().takes.iter();
        takes.filter_map(|param| Some((*param, self.value(*param)?)))
    }

    /// The key for an address: a path in `endpoints` and its query.
    pub fn at(address: &str, endpoints: &EndpointTable) -> Option<Self> {
        let (path, query) = address
            .split_once('?')
            .map_or((address, None), |(path, query)| (path, Some(query)));
        let found = endpoints.find(path)?;
        let id = found.raw_id.map(ModelId::from_path).transpose().ok()?;
        let query = decode_query(query, found.endpoint.takes).ok()?;
        let key = Self::new(found.endpoint.route, id, query, Period::Day);
        (key.address() == address).then_some(key)
    }

    /// The keys of all lists of models.
    pub fn lists_of_models() -> impl Iterator<Item = Self> {
        Period::ALL.into_iter().flat_map(|period| {
            SortBy::ALL.into_iter().map(move |sort_by| {
                let query = Query {
                    period: Some(period),
                    sort_by: Some(sort_by),
                    ..Query::default()
                };
                Self::new(Route::Models, None, query, Period::Day)
            })
        })
    }
}

impl fmt::Display for DocumentKey {
    /// The form for logs and operators: `history gpt-5 period=7d`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.route.name())?;
        if let Some(id) = &self.id {
            write!(f, " {id}")?;
        }
        self.values()
            .try_for_each(|(param, value)| write!(f, " {}={value}", param.name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::table::ENDPOINTS;
    use proptest::prelude::*;

    #[test]
    fn model_ids_follow_the_rule_exactly() {
        for good in [
            "a",
            "7",
            "gpt-5",
            "claude-opus-4.1:thinking",
            "A_b",
            &"x".repeat(128),
        ] {
            assert_eq!(ModelId::from_path(good).unwrap().as_str(), good);
        }
        for bad in [
            "",
            "-a",
            ".a",
            "..",
            "a/b",
            "a%2fb",
            "a%00",
            "%2e%2e",
            "a b",
            "a+b",
            "%",
            "%4",
            "%zz",
            "%c0%af",
            "é",
            "%252f",
            &"x".repeat(129),
        ] {
            assert!(ModelId::from_path(bad).is_err(), "{bad}");
        }
        assert_eq!(ModelId::from_path("gpt%2D5").unwrap().as_str(), "gpt-5");
    }

    fn any_query() -> impl Strategy<Value = Query> {
        (
            prop::option::of(prop::sample::select(&Period::ALL[..])),
            prop::option::of(prop::sample::select(&SortBy::ALL[..])),
            prop::option::of((1u8..=100).prop_map(|n| Limit::parse(&n.to_string()).unwrap())),
        )
            .prop_map(|(period, sort_by, limit)| Query {
                period,
                sort_by,
                limit,
                ..Query::default()
            })
    }

    fn resolved(route: Route, id: Option<&str>, query: Query, default: Period) -> String {
        let takes = |param| route.endpoint().takes.contains(&param);
        format!(
            "{route:?}/{:?}/{:?}/{:?}/{:?}",
            id.filter(|_| route.names_a_model()),
            takes(Param::Period).then(|| query.period.unwrap_or(default)),
            takes(Param::SortBy).then(|| query.sort_by.unwrap_or(SortBy::Combined)),
            takes(Param::Limit).then(|| query.limit.unwrap_or(Limit::DEFAULT)),
        )
    }

    proptest! {
        #[test]
        fn keys_are_equal_if_and_only_if_the_resolved_requests_are(
            a in 0..13usize, b in 0..13usize, ida in "[a-c]", idb in "[a-c]", qa in any_query(), qb in any_query(), free: bool,
        ) {
            let default = if free { Period::Day } else { Period::Latest };
            let ra = ENDPOINTS[a].route;
            let rb = ENDPOINTS[b].route;
            let ka = DocumentKey::new(ra, ModelId::new(&ida), qa, default);
            let kb = DocumentKey::new(rb, ModelId::new(&idb), qb, default);
            let same = resolved(ra, Some(&ida), qa, default) == resolved(rb, Some(&idb), qb, default);
            prop_assert_eq!(ka == kb, same);
        }
    }

    proptest! {
        #[test]
        fn a_document_is_found_by_its_address(route in 0..13usize, id in "[a-zA-Z0-9][a-zA-Z0-9._:-]{0,20}", query in any_query()) {
            let key = DocumentKey::new(ENDPOINTS[route].route, ModelId::new(&id), query, Period::Month);
            prop_assert_eq!(DocumentKey::at(&key.address(), &EndpointTable::default()), Some(key));
        }
    }

    #[test]
    fn invalid_document_addresses_are_rejected() {
        for address in [
            "",
            "/",
            "/api/v1/models",
            "/api/v1/models?period=7d",
            "/api/v1/models/..",
            "/api/v1/index?period=7d",
            "/api/v1/drift/%41",
        ] {
            assert_eq!(
                DocumentKey::at(address, &EndpointTable::default()),
                None,
                "{address}"
            );
        }
    }
}
