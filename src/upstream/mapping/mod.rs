//! Maps a backend with other paths and shapes. For each endpoint, the mapping has the path of the documents and the
//! location of their data in a response.
//!
//! By default, paths are the same as in this API; a bare array, `{"data": …}` and a full envelope are accepted, and a
//! single object becomes an array with one item. Items are kept as raw bytes, and their fields stay unchanged unless
//! `fields` lists them. `http` implements the transport, and `config` the configuration syntax.

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
pub use endpoint_mapping::ResponseInfo;
pub use endpoint_mapping::{EndpointMapping, Mapping, NotFound};
pub use fields::{BadItemMapping, ItemMapping, MappedField};
pub use model_id::{BadIdPattern, IdPattern};
pub use pointer::{BadPointer, JsonPointer};
pub use shape::DataShape;
pub use template::{BadTemplate, PathTemplate};
