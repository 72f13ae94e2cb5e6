//! Selects documents: all documents, the documents of an endpoint, or the documents that match a request.
//!
//! A selection is written like a request: `/api/v1/models/atlas/history?period=7d`. Omitted parts match everything, so
//! `/api/v1/models/:id` selects the details of every model.

use super::{
    endpoint_table::EndpointTable,
    key::{DocumentKey, ModelId},
    params::{BadParam, Query, decode_query},
    table::Route,
};

/// Selected documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// All documents.
    All,
    /// Documents that match.
    Of {
        /// The endpoint.
        route: Route,
        /// The model, if given.
        id: Option<ModelId>,
        /// The given parameters.
        query: Query,
    },
}

/// The string is not a valid selection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadSelection(String);

impl BadSelection {
    fn of(bad: &BadParam) -> Self {
        Self(format!("{} {}", bad.param.name(), bad.problem))
    }
}

impl Selection {
    /// Parses `all` or the path of an endpoint, with or without a model and parameters.
    pub fn parse(text: &str, endpoints: &EndpointTable) -> Result<Self, BadSelection> {
        if text == "all" {
            return Ok(Self::All);
        }
        let (path, query) = text
            .split_once('?')
            .map_or((text, None), |(path, query)| (path, Some(query)));
        let found = endpoints.find(path).ok_or_else(|| {
            BadSelection(
                "write `all`, or a path such as /api/v1/models or /api/v1/models/:id".into(),
            )
        })?;
        let one = found.raw_id.filter(|raw| *raw != ":id");
        let id = one
            .map(ModelId::from_path)
            .transpose()
            .map_err(|bad| BadSelection::of(&bad))?;
        let takes = found.endpoint.takes;
        for pair in query
            .unwrap_or_default()
            .split('&')
            .filter(|pair| !pair.is_empty())
        {
            let name = pair.split('=').next().unwrap_or_default();
            if !takes.iter().any(|param| param.name() == name) {
                return Err(BadSelection(format!("{path} takes no parameter `{name}`")));
            }
        }
        let query = decode_query(query, takes).map_err(|bad| BadSelection::of(&bad))?;
        Ok(Self::Of {
            route: found.endpoint.route,
            id,
            query,
        })
    }

    /// Whether a document is selected.
    pub fn fits(&self, key: &DocumentKey) -> bool {
        let Self::Of { route, id, query } = self else {
            return true;
        };
        key.route == *route
            && (id.is_none() || key.id == *id)
            && (query.period.is_none() || key.period == query.period)
            && (query.sort_by.is_none() || key.sort_by == query.sort_by)
            && (query.limit.is_none() || key.limit == query.limit)
            && query.own.fits(key.own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::Period;

    fn key(route: Route, id: &str, period: Period) -> DocumentKey {
        let query = Query {
            period: Some(period),
            ..Query::default()
        };
        DocumentKey::new(route, ModelId::new(id), query, Period::Day)
    }

    #[test]
    fn given_parts_must_match_and_omitted_ones_match_everything() {
        let week = key(Route::History, "atlas", Period::Week);
        for (text, fits) in [
            ("all", true),
            ("/api/v1/models/:id/history", true),
            ("/api/v1/models/atlas/history", true),
            ("/api/v1/models/atlas/history?period=7d", true),
            ("/api/v1/models/atlas/history?period=24h", false),
            ("/api/v1/models/:id/history?period=7d", true),
            ("/api/v1/models/other/history", false),
            ("/api/v1/models/atlas", false),
            ("/api/v1/models", false),
        ] {
            assert_eq!(
                Selection::parse(text, &EndpointTable::default())
                    .unwrap()
                    .fits(&week),
                fits,
                "{text}"
            );
        }
    }

    #[test]
    fn invalid_selections_are_rejected_with_the_remedy() {
        for (text, words) in [
            ("", "write `all`"),
            ("models", "write `all`"),
            ("/api/v1/nothing", "write `all`"),
            ("/api/v1/models/a%00", "malformed"),
            ("/api/v1/models?period=1h", "period"),
            ("/api/v1/models?sortby=speed", "no parameter `sortby`"),
            ("/api/v1/index?period=7d", "no parameter `period`"),
        ] {
            let refused = Selection::parse(text, &EndpointTable::default())
                .unwrap_err()
                .to_string();
            assert!(refused.contains(words), "{text}: {refused}");
        }
    }
}
