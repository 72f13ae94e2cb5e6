//! How a backend of other paths and shapes is fitted: for each endpoint where its documents lie there, and how their
//! data is cut out of what comes back.
//!
//! Where nothing is said the paths are our own; a bare array, `{"data": …}` and a full envelope are understood, and a
//! single object stands for an array of one. Items are kept as raw bytes. Not for: transport (`http.rs`), the words of a
//! configuration (`config`), nor for changing a field of an item.

mod body;
mod pointer;
mod shape;
mod template;

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::value::RawValue;

use crate::cache::{DocumentContent, Validators};
use crate::clock::Wall;
use crate::routes::{DocumentKey, ENDPOINTS, Endpoint, Route};

use super::UpstreamResponse;
use body::MappedBody;
use pointer::PointerError;

pub use pointer::{BadPointer, JsonPointer};
pub use shape::DataShape;
pub use template::{BadTemplate, PathTemplate};

/// How every endpoint of ours is had from a backend.
#[derive(Clone, Debug)]
pub struct Mapping {
    /// A row for each endpoint that a backend answers.
    pub endpoints: BTreeMap<Route, EndpointMapping>,
    /// Whether the list of models names every model there is.
    pub lists_all_models: bool,
}

/// How one endpoint is had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointMapping {
    /// Where its documents lie.
    pub template: PathTemplate,
    /// Where the data stands in a body. If nothing is said: at `/data` of an object, and an array is the data itself.
    pub data: Option<JsonPointer>,
    /// What the data is.
    pub shape: DataShape,
    /// Where the data's instant stands, if the backend says it.
    pub instant: JsonPointer,
    /// How the backend says that there is no such model.
    pub not_found: Vec<NotFound>,
}

/// A way to say that there is no such model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotFound {
    /// The status 404.
    Status,
    /// A refusal in the body whose words say "model" and "not found".
    Error,
    /// An empty list. It may just as well be an honest answer about a model that there is.
    Empty,
}

/// What is known of an answer besides its body.
#[derive(Debug)]
pub(super) struct ResponseInfo {
    /// What the backend knows it by.
    pub(super) source: Validators,
    /// The data's instant, if the transport says it.
    pub(super) dated: Option<Wall>,
    /// When it will next change, if the backend says so.
    pub(super) next_refresh: Option<Wall>,
    /// The instant of the answer, which stands in for the data's if nobody says that.
    pub(super) now: Wall,
}

impl Default for Mapping {
    /// A backend that speaks as we do.
    fn default() -> Self {
        let rows = ENDPOINTS.iter().filter(|row| row.stored);
        let endpoints = rows.map(|row| (row.route, EndpointMapping::canonical(row))).collect();
        Self { endpoints, lists_all_models: false }
    }
}

impl NotFound {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Status, Self::Error, Self::Empty];

    /// Its word in a configuration.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Status => "404",
            Self::Error => "error",
            Self::Empty => "empty",
        }
    }
}

impl EndpointMapping {
    /// An endpoint of a backend that speaks as we do.
    pub fn canonical(endpoint: &Endpoint) -> Self {
        let names_a_model = endpoint.route.names_a_model();
        Self {
            template: PathTemplate::canonical(endpoint, &[]),
            data: None,
            shape: DataShape::default(),
            instant: JsonPointer::member("generated_at"),
            not_found: if names_a_model { vec![NotFound::Status] } else { Vec::new() },
        }
    }

    /// The path and query of a document. `None` if the document lacks what they need.
    pub(super) fn target(&self, key: &DocumentKey) -> Option<String> {
        self.template.target(key)
    }

    /// Whether the backend says in this way that there is no such model.
    pub(super) fn takes(&self, way: NotFound) -> bool {
        self.not_found.contains(&way)
    }

    /// What a body says. The reason why it says nothing that can be used is for the operator.
    pub(super) fn read(
        &self,
        key: &DocumentKey,
        body: &Bytes,
        head: ResponseInfo,
    ) -> Result<UpstreamResponse, String> {
        let next_refresh = head.next_refresh;
        let Some(content) = self.content(body, head)? else { return Ok(UpstreamResponse::NoSuchModel) };
        let is_about_one = key.route.endpoint().one;
        if content.count == 0 && self.takes(NotFound::Empty) {
            // No model that there is has an empty detail.
            let gone = if is_about_one {
                UpstreamResponse::NoSuchModel
            } else {
                UpstreamResponse::Nothing { content, next_refresh }
            };
            return Ok(gone);
        }
        if is_about_one && content.count != 1 {
            return Err(format!("it is about one thing, and its data has {} items", content.count));
        }
        Ok(UpstreamResponse::Content { content, next_refresh })
    }

    /// Whether the body of a refusal by status says that there is no such model.
    pub(super) fn finds_no_model_in(&self, body: &Bytes) -> bool {
        let refused = MappedBody::of(body).and_then(|body| body.refused(self.is_bare()));
        self.takes(NotFound::Error) && matches!(refused, Ok(Some(refused)) if refused.says_not_found())
    }

    /// The data of a body, cut free. `None` if it says that there is no such model.
    fn content(&self, bytes: &Bytes, head: ResponseInfo) -> Result<Option<DocumentContent>, String> {
        let body = MappedBody::of(bytes)?;
        if let Some(refused) = body.refused(self.is_bare())? {
            let no_model = self.takes(NotFound::Error) && refused.says_not_found();
            return if no_model { Ok(None) } else { Err(refused.reason()) };
        }
        let place = self.data.clone().unwrap_or_else(|| {
            if body.is_array() { JsonPointer::default() } else { JsonPointer::member("data") }
        });
        let data = find(&place, &body)?.filter(|data| data.get() != "null");
        let data = data.ok_or_else(|| format!("it has no data at {place}"))?;
        let items =
            self.shape.items(bytes, data).map_err(|reason| format!("what stands at {place} {reason}"))?;
        // An instant that cannot be read is none: the next best stands in for it.
        let stated = find(&self.instant, &body)?.and_then(instant);
        let generated_at = stated.or(head.dated).or_else(|| newest_update(&items.each)).unwrap_or(head.now);
        Ok(Some(DocumentContent {
            data: items.data,
            count: items.each.len(),
            generated_at,
            source: head.source,
        }))
    }

    /// Whether the data is the whole body.
    fn is_bare(&self) -> bool {
        self.data.as_ref().is_some_and(JsonPointer::is_whole)
    }
}

fn find<'b>(place: &JsonPointer, body: &MappedBody<'b>) -> Result<Option<&'b RawValue>, String> {
    place.find(body.whole).map_err(|lost| match lost {
        PointerError::Twice => format!("it has {place} twice"),
        PointerError::Malformed => format!("it is not well-formed on the way to {place}"),
    })
}

fn instant(stated: &RawValue) -> Option<Wall> {
    Wall::parse_rfc3339(&serde_json::from_str::<String>(stated.get()).ok()?)
}

/// An item, as far as it matters here.
#[derive(serde::Deserialize)]
struct DatedItem {
    #[serde(rename = "lastUpdated", default)]
    last_updated: Option<serde_json::Value>,
}

/// The newest `lastUpdated` among the items; items that have none, or none that can be read, do not matter.
fn newest_update(items: &[&RawValue]) -> Option<Wall> {
    let updates =
        items.iter().filter_map(|item| serde_json::from_str::<DatedItem>(item.get()).ok()?.last_updated);
    updates.filter_map(|instant| Wall::parse_rfc3339(instant.as_str()?)).max()
}

#[cfg(test)]
mod tests;
