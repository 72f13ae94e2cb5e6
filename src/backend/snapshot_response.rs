//! Prepared responses. Envelope, tag and date are built once and kept until the data changes.
//!
//! The tag is strong, so it changes with any byte, including the date in the envelope. A refresh that does not change
//! the data therefore keeps the whole response, and conditional requests get a 304. Bodies are not compressed, because
//! a gateway requests them uncompressed: a small response must not be able to expand into a large one.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use dashmap::DashMap;
use data_encoding::HEXLOWER;
use http::HeaderValue;
use http_body::{Body, Frame, SizeHint};
use sha2::{Digest as _, Sha256};

use crate::cache::EnvelopeFields;
use scoregate_base::{clock::Wall, plans::FieldSets, routes::DocumentKey};
use scoregate_scoring::Answer;

/// A prepared response.
#[derive(Debug)]
pub struct SnapshotResponse {
    /// The tag of the data in the snapshot.
    data_tag: Arc<str>,
    opening: Bytes,
    data: Bytes,
    /// The time of the snapshot in which the data first appeared.
    pub dated: Wall,
    /// The strong entity tag of all bytes.
    pub etag: HeaderValue,
    /// The date, as a header.
    pub last_modified: HeaderValue,
}

/// Responses that were requested, at most one per possible request.
#[derive(Debug, Default)]
pub struct SnapshotResponses {
    license: String,
    by_key: DashMap<DocumentKey, Arc<SnapshotResponse>>,
}

/// A body in up to three parts, whose bytes are shared.
#[derive(Debug)]
pub struct BodyParts(std::array::IntoIter<Bytes, 3>);

impl SnapshotResponses {
    /// An empty set. `license` is the attribution notice in each response.
    pub fn new(license: String) -> Self {
        Self {
            license,
            by_key: DashMap::new(),
        }
    }

    /// The response with this data.
    pub fn of(&self, key: DocumentKey, answer: &Answer) -> Arc<SnapshotResponse> {
        if let Some(by_key) = self
            .by_key
            .get(&key)
            .filter(|by_key| by_key.data_tag == answer.etag)
        {
            return Arc::clone(&by_key);
        }
        let label = EnvelopeFields {
            key: &key,
            license: &self.license,
            field_sets: &FieldSets::default(),
            tool_result: None,
        };
        let response = Arc::new(SnapshotResponse::new(&label, answer));
        self.by_key.insert(key, Arc::clone(&response));
        response
    }

    /// Removes responses whose data differs from `answer` or no longer exists.
    pub fn keep_current(&self, answer: impl Fn(&DocumentKey) -> Option<Answer>) {
        self.by_key.retain(|key, response| {
            answer(key).is_some_and(|answer| answer.etag == response.data_tag)
        });
    }
}

impl SnapshotResponse {
    fn new(label: &EnvelopeFields<'_>, answer: &Answer) -> Self {
        let opening = label.opening(answer.count, answer.generated_at);
        let digest = Sha256::new()
            .chain_update(&opening)
            .chain_update(answer.etag.as_bytes())
            .finalize();
        let tag = format!(
            "\"{}\"",
            HEXLOWER.encode(digest.get(..16).unwrap_or_default())
        );
        Self {
            data_tag: Arc::clone(&answer.etag),
            opening: Bytes::from(opening),
            data: answer.data.clone(),
            dated: answer.generated_at,
            etag: header(tag),
            last_modified: header(answer.generated_at.http_date()),
        }
    }

    pub fn body(&self) -> BodyParts {
        BodyParts(
            [
                self.opening.clone(),
                self.data.clone(),
                Bytes::from_static(b"}"),
            ]
            .into_iter(),
        )
    }
}

fn header(text: String) -> HeaderValue {
    HeaderValue::try_from(text).expect("it is visible ASCII")
}

impl BodyParts {
    /// A body in one part.
    pub fn one(bytes: Bytes) -> Self {
        Self([bytes, Bytes::new(), Bytes::new()].into_iter())
    }

    /// Number of remaining bytes.
    pub fn left(&self) -> usize {
        self.0.as_slice().iter().map(Bytes::len).sum()
    }
}

impl Body for BodyParts {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let part = self.0.find(|part| !part.is_empty());
        Poll::Ready(part.map(|part| Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.left() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scoregate_base::routes::{DocumentKey, Query, Route};

    fn answer(data: &'static str, seconds: u64, data_tag: &str) -> Answer {
        Answer {
            data: Bytes::from_static(data.as_bytes()),
            count: 1,
            generated_at: Wall::from_seconds(seconds),
            next_refresh: Wall::from_seconds(seconds + 3_600),
            etag: data_tag.into(),
        }
    }

    fn key() -> DocumentKey {
        DocumentKey::new(
            Route::Index,
            None,
            Query::default(),
            scoregate_base::routes::Period::Latest,
        )
    }

    #[test]
    fn equal_data_keeps_the_response_and_other_data_gets_another_tag_and_date() {
        let responses = SnapshotResponses::new("Cite us.".into());
        let first = responses.of(key(), &answer("[1]", 3_600, "\"a\""));
        let again = responses.of(key(), &answer("[1]", 7_200, "\"a\""));
        assert!(Arc::ptr_eq(&first, &again));
        let other = responses.of(key(), &answer("[2]", 10_800, "\"b\""));
        let back = responses.of(key(), &answer("[1]", 14_400, "\"a\""));
        assert!(first.etag != other.etag && first.etag != back.etag && other.etag != back.etag);
        assert_eq!(
            [&first, &other, &back].map(|response| response.dated.seconds()),
            [3_600, 10_800, 14_400]
        );
    }

    #[test]
    fn a_refresh_drops_changed_and_removed_responses() {
        let responses = SnapshotResponses::new(String::new());
        for (now, kept) in [(Some("\"a\""), 1), (Some("\"b\""), 0), (None, 0)] {
            responses.of(key(), &answer("[1]", 3_600, "\"a\""));
            responses.keep_current(|_| now.map(|tag| answer("[1]", 7_200, tag)));
            assert_eq!(responses.by_key.len(), kept, "{now:?}");
        }
    }

    #[tokio::test]
    async fn a_body_is_complete_and_states_its_length_in_advance() {
        use http_body_util::BodyExt as _;
        let response =
            SnapshotResponses::new("Cite \"us\".".into()).of(key(), &answer("[1]", 3_600, "\"a\""));
        let body = response.body();
        assert_eq!(
            (body.size_hint().exact(), body.is_end_stream()),
            (Some(body.left() as u64), false)
        );
        let length = body.left();
        let whole = body.collect().await.unwrap().to_bytes();
        assert_eq!(whole.len(), length);
        let read: serde_json::Value = serde_json::from_slice(&whole).unwrap();
        assert_eq!(
            (&read["license"], &read["data"][0]),
            (&"Cite \"us\".".into(), &1.into())
        );
        assert!(BodyParts::one(Bytes::new()).is_end_stream());
    }
}
