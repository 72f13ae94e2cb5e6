//! The built-in backend as an [`Upstream`]: converts requests for `scoring`, and the responses of `scoring`.

use std::sync::Arc;

use http::HeaderValue;

use crate::cache::Validators;
use scoregate_base::clock::Clock;
use scoregate_scoring::Scoring;

use super::{
    Upstream, UpstreamFailure, UpstreamFuture, UpstreamRequest, UpstreamResponse,
    mapping::{EndpointMapping, ResponseInfo},
};

/// The built-in backend.
pub struct BuiltInUpstream {
    scoring: Arc<Scoring>,
    clock: Clock,
}

impl BuiltInUpstream {
    /// Creates the backend from `scoring` and a clock.
    pub fn new(scoring: Arc<Scoring>, clock: Clock) -> Self {
        Self { scoring, clock }
    }

    /// Fetches a document. Traces are ignored.
    async fn fetch_document(
        &self,
        UpstreamRequest {
            key,
            known,
            trace: _,
        }: UpstreamRequest<'_>,
    ) -> Result<UpstreamResponse, UpstreamFailure> {
        if !key.route.endpoint().stored {
            return Err(UpstreamFailure::Invalid(format!(
                "the built-in backend has no document {key}"
            )));
        }
        let requested = key.clone();
        let now = self.clock.now().wall;
        // A refresh is CPU-bound, so it must not run on a serving thread.
        let scoring = Arc::clone(&self.scoring);
        let answered = tokio::task::spawn_blocking(move || {
            // The first request of an hour must not get the previous hour's snapshot while the new one is
            // built.
            if let Err(error) = scoring.refresh(now) {
                // The previous snapshot is served. Its stated next refresh is then in the past, so it counts as
                // overdue.
                tracing::error!(%error, "score refresh failed");
            }
            scoring.answer(&requested)
        });
        let answer = answered
            .await
            .map_err(|error| UpstreamFailure::Invalid(format!("it failed: {error}")))?;
        let Some(answer) = answer else {
            return Ok(UpstreamResponse::NoSuchModel);
        };
        let etag = HeaderValue::from_str(&answer.etag).ok();
        let source = Validators {
            etag,
            last_modified: None,
            origin: None,
        };
        let next_refresh = Some(answer.next_refresh);
        if source.etag.is_some() && known.is_some_and(|known| known.etag == source.etag) {
            return Ok(UpstreamResponse::Unchanged { next_refresh });
        }
        let head = ResponseInfo {
            source,
            dated: Some(answer.generated_at),
            next_refresh,
            now,
        };
        EndpointMapping::canonical(key.route.endpoint())
            .read(key, &answer.data, head)
            .map_err(UpstreamFailure::Invalid)
    }
}

impl Upstream for BuiltInUpstream {
    fn address(&self) -> String {
        "built-in".into()
    }

    fn fetch<'a>(&'a self, request: UpstreamRequest<'a>) -> UpstreamFuture<'a> {
        Box::pin(self.fetch_document(request))
    }

    fn lists_all_models(&self) -> bool {
        true
    }
}
