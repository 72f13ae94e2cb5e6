//! Responses: heads, header values, error bodies and pages.

pub(super) mod cors;
pub(super) mod deprecation;
pub(super) mod error_body;
pub(super) mod header_values;
pub(super) mod limit_headers;
pub(super) mod page_reply;
pub(super) mod preferred_form;
pub(super) mod remedy_links;
pub(super) mod reply;
pub(super) mod response_context;
pub(super) mod response_head;
