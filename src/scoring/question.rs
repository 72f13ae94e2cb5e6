//! Maps a document of the API to a query of the built-in backend.

use crate::routes::{DocumentKey, Limit, ModelId, Period, Route, SortBy};

use super::Question;

impl Question {
    /// The query for a document. `None` for documents without data of the backend.
    pub fn of(key: &DocumentKey) -> Option<Self> {
        let id = || -> Option<ModelId> { key.id.clone() };
        let period = key.period.unwrap_or(Period::Day);
        Some(match key.route {
            Route::Models => Self::Models { period, sort_by: key.sort_by.unwrap_or(SortBy::Combined) },
            Route::Model => Self::Model(id()?),
            Route::History => Self::History { id: id()?, period },
            Route::Index => Self::Index,
            Route::Alerts => Self::Alerts,
            Route::Incidents => Self::Incidents { period, limit: key.limit.unwrap_or(Limit::DEFAULT) },
            Route::Providers => Self::Providers,
            Route::Degradations => Self::Degradations(period),
            Route::Recommendations => Self::Recommendations(period),
            Route::ProviderReliability => Self::ProviderReliability(period),
            Route::Transparency => Self::Transparency(period),
            Route::Drift => Self::Drift(id()?),
            Route::Me => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::{ENDPOINTS, Query};

    #[test]
    fn every_document_that_may_be_stored_is_a_question_and_no_other_is() {
        for endpoint in &ENDPOINTS {
            let key =
                DocumentKey::new(endpoint.route, ModelId::new("atlas"), Query::default(), Period::Latest);
            assert_eq!(Question::of(&key).is_some(), endpoint.stored, "{key}");
        }
    }
}
