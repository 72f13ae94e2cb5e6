//! Responses: heads, header values, error bodies and pages.

pub mod cors;
pub mod deprecation;
pub mod error_body;
pub mod header_values;
pub mod limit_headers;
pub mod page_reply;
pub mod preferred_form;
pub mod remedy_links;
pub mod reply;
pub mod response_context;
pub mod response_head;
