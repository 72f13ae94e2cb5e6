//! Maps a backend with other paths and shapes: for each endpoint the path of its documents, and where their data is
//! in a response.
//!
//! By default paths equal ours; a bare array, `{"data": …}` and a full envelope are accepted, and a single object
//! becomes an array of one. Items are kept as raw bytes, and their fields unchanged unless `fields` lists them. Transport is in `http`, the
//! configuration syntax in `config`.

mod body;
mod convert;
mod endpoint_mapping;
mod fields;
mod model_id;
mod pointer;
mod shape;
mod template;
#[cfg(test)]
mod tests;

pub use convert::is_value_of;
pub(super) use endpoint_mapping::ResponseInfo;
pub use endpoint_mapping::{EndpointMapping, Mapping, NotFound};
pub use fields::{BadItemMapping, ItemMapping, MappedField};
pub use model_id::{BadIdPattern, IdPattern};
pub use pointer::{BadPointer, JsonPointer};
pub use shape::DataShape;
pub use template::{BadTemplate, PathTemplate};
