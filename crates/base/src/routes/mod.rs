//! The public API as data: endpoints, parameters, error codes, item fields, and cache keys.
//!
//! The code is pure. The gateway resolves requests with these tables, and the public pages are generated from them, so
//! they always agree. Nothing here depends on the caller, the time or a socket.

mod allowed;
mod answers;
pub mod bodies;
pub mod codes;
mod endpoint_table;
mod error_body;
mod field;
pub mod headers;
mod key;
mod me_shape;
mod own_param;
mod params;
pub mod prices;
mod published;
mod selection;
pub mod shapes;
mod table;

pub use allowed::AllowedValues;
pub use endpoint_table::{EndpointTable, RouteMatch};
pub use error_body::{ErrorBody, append, append_string};
pub use key::{DocumentKey, ModelId};
pub use own_param::{MOST_OWN_PARAMS, OwnParam, OwnWords};
pub use params::{
    BadParam, Limit, Param, Period, Query, SortBy, decode_query, decode_segment, query_names,
};
pub use published::{PublishedField, PublishedKind, SourceDescription};
pub use selection::{BadSelection, Selection};
pub use table::{API_BASE, API_VERSION, ConfiguredRoute, ENDPOINTS, Endpoint, Route, root_of};
