//! The header fields of a request to `/mcp`, found in one pass. With few fields, one pass is cheaper than hash lookups.

use http::{HeaderMap, HeaderValue};

pub(super) const VERSION: &str = "mcp-protocol-version";
pub(super) const METHOD: &str = "mcp-method";
pub(super) const NAME: &str = "mcp-name";

/// The fields that are read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct McpHeaders<'h> {
    pub(super) origin: SentField<'h>,
    pub(super) content_type: SentField<'h>,
    pub(super) version: SentField<'h>,
    pub(super) method: SentField<'h>,
    pub(super) name: SentField<'h>,
}

/// The first value of a field, and whether there are more values.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SentField<'h> {
    pub(super) first: Option<&'h HeaderValue>,
    pub(super) is_repeated: bool,
}

impl<'h> McpHeaders<'h> {
    pub(super) fn of(headers: &'h HeaderMap) -> Self {
        let mut found = Self::default();
        for (name, value) in headers {
            let field = match name.as_str() {
                "origin" => &mut found.origin,
                "content-type" => &mut found.content_type,
                VERSION => &mut found.version,
                METHOD => &mut found.method,
                NAME => &mut found.name,
                _ => continue,
            };
            field.is_repeated = field.first.is_some();
            field.first = field.first.or(Some(value));
        }
        found
    }
}
