//! Answers requests by lookups in the current snapshot, even while the next one is computed. Connections are handled in
//! `serve`.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderValue, Method, Response, StatusCode, Uri,
    header::{
        ALLOW, CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderMap, IF_MODIFIED_SINCE, IF_NONE_MATCH,
        LAST_MODIFIED,
    },
};

use crate::cache::is_current;
use scoregate_base::{
    clock::{Clock, Wall},
    routes::{DocumentKey, EndpointTable, ModelId, Period, decode_query},
};
use scoregate_scoring::{ArchiveError, Change, Scoring};

use super::{
    refusal::BackendRefusal,
    snapshot_response::{BodyParts, SnapshotResponse, SnapshotResponses},
};

const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, OPTIONS");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
/// Maximum `max-age`. Snapshots are hourly. If the next one seems further away, the clock was set back, and `max-age`
/// must not become longer.
const MAX_AGE: Duration = Duration::from_hours(1);

/// The backend as an HTTP service.
#[derive(Debug)]
pub struct BackendServer {
    scoring: Arc<Scoring>,
    responses: SnapshotResponses,
    endpoints: EndpointTable,
    clock: Clock,
}

impl BackendServer {
    /// A server for the data of `scoring`, which uses `clock`. `license` is the attribution notice in every response.
    pub fn new(scoring: Arc<Scoring>, license: String, clock: Clock) -> Self {
        let responses = SnapshotResponses::new(license);
        Self {
            scoring,
            responses,
            endpoints: EndpointTable::default(),
            clock,
        }
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(super) fn scoring(&self) -> &Arc<Scoring> {
        &self.scoring
    }

    /// Makes a new snapshot if the current one lacks an hour or an import. This takes a while, so it must not run on a
    /// serving thread.
    pub(super) fn check(&self, now: Wall) -> Result<Change, ArchiveError> {
        let change = self.scoring.check(now)?;
        if change != Change::Nothing {
            self.responses.keep_current(|key| self.scoring.answer(key));
        }
        Ok(change)
    }

    /// Answers a request.
    pub(super) fn answer(
        &self,
        method: &Method,
        target: &Uri,
        headers: &HeaderMap,
    ) -> Response<BodyParts> {
        if *method == Method::OPTIONS {
            let mut response = empty(StatusCode::NO_CONTENT);
            response.headers_mut().insert(ALLOW, METHODS);
            return response;
        }
        if !matches!(*method, Method::GET | Method::HEAD) {
            let mut response = refused(&BackendRefusal::Method);
            response.headers_mut().insert(ALLOW, METHODS);
            return response;
        }
        if target.path() == "/healthz" {
            return uncached(StatusCode::OK, TEXT, Bytes::from_static(b"alive\n"));
        }
        self.document(target, headers)
            .unwrap_or_else(|refusal| refused(&refusal))
    }

    fn document(
        &self,
        target: &Uri,
        headers: &HeaderMap,
    ) -> Result<Response<BodyParts>, BackendRefusal> {
        let found = self
            .endpoints
            .find(target.path())
            .filter(|found| found.endpoint.stored)
            .ok_or(BackendRefusal::Path)?;
        let id = found
            .raw_id
            .map(ModelId::from_path)
            .transpose()
            .map_err(BackendRefusal::Param)?;
        let query =
            decode_query(target.query(), found.endpoint.takes).map_err(BackendRefusal::Param)?;
        let key = DocumentKey::new(found.endpoint.route, id, query, Period::Latest);
        let answer = self.scoring.answer(&key).ok_or(BackendRefusal::Model)?;
        let prepared = self.responses.of(key, &answer);
        let mut response = if is_not_modified(headers, &prepared) {
            empty(StatusCode::NOT_MODIFIED)
        } else {
            let mut response = Response::new(prepared.body());
            response.headers_mut().insert(CONTENT_TYPE, JSON);
            response
        };
        let validators = response.headers_mut();
        validators.insert(ETAG, prepared.etag.clone());
        validators.insert(LAST_MODIFIED, prepared.last_modified.clone());
        validators.insert(
            CACHE_CONTROL,
            cache_control(answer.next_refresh, self.clock.now().wall),
        );
        Ok(response)
    }
}

/// Whether the caller's copy is current. A date counts only if there is no tag, as in RFC 9110.
fn is_not_modified(headers: &HeaderMap, prepared: &SnapshotResponse) -> bool {
    if headers.contains_key(IF_NONE_MATCH) {
        return is_current(headers, &prepared.etag);
    }
    let since = headers
        .get(IF_MODIFIED_SINCE)
        .and_then(|date| Wall::parse_http_date(date.to_str().ok()?));
    since.is_some_and(|since| prepared.dated <= since)
}

/// `max-age` until the next snapshot, rounded up so that clients do not return too early; `no-cache` once the snapshot
/// is overdue.
fn cache_control(next_refresh: Wall, now: Wall) -> HeaderValue {
    if next_refresh <= now {
        return HeaderValue::from_static("no-cache");
    }
    let left = next_refresh
        .since(now)
        .min(MAX_AGE)
        .as_millis()
        .div_ceil(1_000);
    HeaderValue::try_from(format!("public, max-age={}", left.max(1)))
        .expect("a number is visible ASCII")
}

fn refused(refusal: &BackendRefusal) -> Response<BodyParts> {
    uncached(refusal.row().status, JSON, refusal.body())
}

/// A response that must not be stored, because the next one may differ.
fn uncached(status: StatusCode, content_type: HeaderValue, body: Bytes) -> Response<BodyParts> {
    let mut response = Response::new(BodyParts::one(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response.headers_mut().insert(CACHE_CONTROL, NO_STORE);
    response
}

fn empty(status: StatusCode) -> Response<BodyParts> {
    let mut response = Response::new(BodyParts::one(Bytes::new()));
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_cacheable_until_the_next_snapshot_and_for_at_most_an_hour() {
        let due = Wall::from_seconds(7_200);
        for (now, expected) in [
            (Wall::from_seconds(3_600), "public, max-age=3600"),
            (Wall::from_seconds(7_199), "public, max-age=1"),
            (Wall::from_millis(7_198_001), "public, max-age=2"),
            (due.minus(Duration::from_nanos(1)), "public, max-age=1"),
            (due, "no-cache"),
            (Wall::from_seconds(9_999), "no-cache"),
            (Wall::from_seconds(0), "public, max-age=3600"),
        ] {
            assert_eq!(cache_control(due, now), expected, "{now:?}");
        }
    }
}
