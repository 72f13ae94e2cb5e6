//! The mapping of one endpoint: the request to the backend, and the conversion of its response to a document.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::value::RawValue;

use crate::cache::{DocumentContent, Validators};
use scoregate_base::{
    clock::Wall,
    routes::{DocumentKey, ENDPOINTS, Endpoint, Param, Route, SourceDescription},
    words,
};

use super::{
    body::MappedBody,
    fields::ItemMapping,
    model_id::{IdPattern, other_id},
    pointer::{JsonPointer, PointerError},
    shape::{DataShape, Items},
    template::PathTemplate,
};
use crate::upstream::UpstreamResponse;

/// The mapping of all endpoints to a backend.
#[derive(Clone, Debug)]
pub struct Mapping {
    /// The mapping of each endpoint that the backend serves.
    pub endpoints: BTreeMap<Route, EndpointMapping>,
    /// Whether the list of models is complete.
    pub lists_all_models: bool,
}

/// The mapping of one endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointMapping {
    /// The path of the endpoint's documents.
    pub template: PathTemplate,
    /// The location of the data in a body. Default: `/data` in an object; an array is the data itself.
    pub data: Option<JsonPointer>,
    /// The shape of the data.
    pub shape: DataShape,
    /// The location of the data's time, if the backend states it.
    pub timestamp: JsonPointer,
    /// The ways in which the backend reports that a model does not exist.
    pub not_found: Vec<NotFound>,
    /// The ids that the backend may have, if they are restricted. Other ids are never requested.
    pub id: Option<IdPattern>,
    /// The mapping of item fields, if items have the shape of the backend. `None` if items have the fields of this API.
    pub fields: Option<ItemMapping>,
}

words! {
    /// A way to report that a model does not exist.
    pub enum NotFound: as_str {
        /// The status 404.
        Status = "404",
        /// An error in the body whose text contains "model" and "not found", or "no … found for model".
        Error = "error",
        /// An empty list. This may also be a correct response about an existing model.
        Empty = "empty",
    }
}

/// Facts about a response other than its body.
#[derive(Debug)]
pub struct ResponseInfo {
    /// The backend's validators.
    pub source: Validators,
    /// The time of the data, if the transport states it.
    pub dated: Option<Wall>,
    /// When the data will next change, if the backend states it.
    pub next_refresh: Option<Wall>,
    /// The time of the response. It is used if the time of the data is unknown.
    pub now: Wall,
}

impl Default for Mapping {
    /// The mapping of a backend that has the paths and shapes of this API.
    fn default() -> Self {
        let rows = ENDPOINTS.iter().filter(|row| row.stored);
        let endpoints = rows
            .map(|row| (row.route, EndpointMapping::canonical(row)))
            .collect();
        Self {
            endpoints,
            lists_all_models: false,
        }
    }
}

impl Mapping {
    /// The documented properties of the backend.
    pub fn description(&self) -> SourceDescription {
        let mut description = SourceDescription::default();
        for (route, mapped) in &self.endpoints {
            // A configured endpoint's definition describes its items, however they are mapped.
            if let Some(fields) = mapped.fields.as_ref().filter(|_| !route.is_configured()) {
                description.fields.insert(*route, fields.published());
            }
            let takes = route.endpoint().takes.iter().copied();
            let ignored: Vec<Param> = takes
                .filter(|param| !mapped.template.sends(*param))
                .collect();
            if !ignored.is_empty() {
                description.ignored.insert(*route, ignored);
            }
        }
        description
    }

    /// Whether the backend may have a document, which means that the configuration does not exclude its id.
    pub(in crate::upstream) fn may_have(&self, key: &DocumentKey) -> bool {
        let pattern = self
            .endpoints
            .get(&key.route)
            .and_then(|mapped| mapped.id.as_ref());
        pattern
            .zip(key.id.as_ref())
            .is_none_or(|(pattern, id)| pattern.allows(id))
    }
}

impl EndpointMapping {
    /// The mapping of an endpoint that has the path and shape of this API.
    pub fn canonical(endpoint: &Endpoint) -> Self {
        let names_a_model = endpoint.route.names_a_model();
        Self {
            template: PathTemplate::canonical(endpoint, &[]),
            data: None,
            shape: DataShape::default(),
            timestamp: JsonPointer::member("generated_at"),
            not_found: if names_a_model {
                vec![NotFound::Status]
            } else {
                Vec::new()
            },
            id: None,
            fields: None,
        }
    }

    /// The path and query of a document. `None` if the document lacks a required parameter.
    pub(in crate::upstream) fn target(&self, key: &DocumentKey) -> Option<String> {
        self.template.target(key)
    }

    /// Whether the backend reports missing models in this way.
    pub(in crate::upstream) fn supports(&self, way: NotFound) -> bool {
        self.not_found.contains(&way)
    }

    /// Reads a body. The reason for a rejection is for the operator.
    pub(in crate::upstream) fn read(
        &self,
        key: &DocumentKey,
        body: &Bytes,
        head: ResponseInfo,
    ) -> Result<UpstreamResponse, String> {
        let next_refresh = head.next_refresh;
        let Some(content) = self.content(key, body, head)? else {
            return Ok(UpstreamResponse::NoSuchModel);
        };
        let is_about_one = key.route.endpoint().one;
        if content.count == 0 && self.supports(NotFound::Empty) {
            // The detail of an existing model is never empty.
            let missing_model = if is_about_one {
                UpstreamResponse::NoSuchModel
            } else {
                UpstreamResponse::Nothing {
                    content,
                    next_refresh,
                }
            };
            return Ok(missing_model);
        }
        if is_about_one && content.count != 1 {
            return Err(format!(
                "this endpoint returns one item, but the data has {} items",
                content.count
            ));
        }
        Ok(UpstreamResponse::Content {
            content,
            next_refresh,
        })
    }

    /// Whether the body of an error status reports that the model does not exist.
    pub(in crate::upstream) fn reports_missing_model(&self, body: &Bytes) -> bool {
        let refused = MappedBody::of(body).and_then(|body| body.reported_error(self.is_bare()));
        self.supports(NotFound::Error)
            && matches!(refused, Ok(Some(refused)) if refused.says_not_found())
    }

    /// The data of a body. `None` if the body reports that the model does not exist, or is about another model.
    fn content(
        &self,
        key: &DocumentKey,
        bytes: &Bytes,
        head: ResponseInfo,
    ) -> Result<Option<DocumentContent>, String> {
        let body = MappedBody::of(bytes)?;
        if let Some(refused) = body.reported_error(self.is_bare())? {
            let no_model = self.supports(NotFound::Error) && refused.says_not_found();
            return if no_model {
                Ok(None)
            } else {
                Err(refused.reason())
            };
        }
        let items = self.items(bytes, &body)?;
        let mapped = match &self.fields {
            Some(fields) => fields.apply(&items.data)?,
            None => None,
        };
        let each = match &mapped {
            Some(mapped) => serde_json::from_slice(mapped).map_err(|error| error.to_string())?,
            None => items.each,
        };
        if is_about_another_model(key, &body, &each)? {
            return Ok(None);
        }
        // If a time is invalid, the next best time is used.
        let stated_at = find(&self.timestamp, &body)?
            .and_then(instant)
            .or(head.dated);
        // The envelope must not reveal a time from a field that only paid callers may see.
        let endpoint = key.route.endpoint();
        let is_open = !key.route.is_configured() || !endpoint.has_paid_field();
        let generated_at = stated_at
            .or_else(|| is_open.then(|| newest_update(&each)).flatten())
            .unwrap_or(head.now);
        let count = each.len();
        let data = mapped.unwrap_or(items.data);
        Ok(Some(DocumentContent {
            data,
            count,
            generated_at,
            stated_at,
            source: head.source,
        }))
    }

    /// The items of a body.
    fn items<'b>(&self, bytes: &Bytes, body: &MappedBody<'b>) -> Result<Items<'b>, String> {
        let pointer = match &self.data {
            Some(pointer) => pointer.clone(),
            None if body.is_array() => JsonPointer::default(),
            None => JsonPointer::member("data"),
        };
        let data = find(&pointer, body)?.filter(|data| data.get() != "null");
        let data = data.ok_or_else(|| format!("no data at {pointer}"))?;
        let items = self.shape.items(bytes, data);
        items.map_err(|reason| format!("the value at {pointer} {reason}"))
    }

    /// Whether the data is the whole body.
    fn is_bare(&self) -> bool {
        self.data.as_ref().is_some_and(JsonPointer::is_whole)
    }
}

/// Whether the items of a body are about a model other than the requested model.
fn is_about_another_model<'b>(
    key: &DocumentKey,
    body: &MappedBody<'b>,
    each: &[&'b RawValue],
) -> Result<bool, String> {
    // Several items where one is expected are an invalid response, regardless of their ids. The items of a configured
    // list may name other models.
    let has_one_model = if key.route.endpoint().one {
        each.len() < 2
    } else {
        !key.route.is_configured()
    };
    let Some(requested) = key.id.as_ref().filter(|_| has_one_model) else {
        return Ok(false);
    };
    let other = other_id(key.route, requested, body, each)?;
    if let Some(other) = &other {
        tracing::debug!(document = %key, %other, "the response is about another model");
    }
    Ok(other.is_some())
}

fn find<'b>(pointer: &JsonPointer, body: &MappedBody<'b>) -> Result<Option<&'b RawValue>, String> {
    pointer.find(body.raw).map_err(|error| match error {
        PointerError::Twice => format!("{pointer} occurs twice"),
        PointerError::Malformed => format!("malformed JSON on the path to {pointer}"),
    })
}

fn instant(stated: &RawValue) -> Option<Wall> {
    Wall::parse_rfc3339(&serde_json::from_str::<String>(stated.get()).ok()?)
}

/// The item field that contains the time of its last update.
#[derive(serde::Deserialize)]
struct DatedItem {
    #[serde(rename = "lastUpdated", default)]
    last_updated: Option<serde_json::Value>,
}

/// The newest valid `lastUpdated` of the items.
fn newest_update(items: &[&RawValue]) -> Option<Wall> {
    let updates = items.iter().filter_map(|item| {
        serde_json::from_str::<DatedItem>(item.get())
            .ok()?
            .last_updated
    });
    updates
        .filter_map(|instant| Wall::parse_rfc3339(instant.as_str()?))
        .max()
}
