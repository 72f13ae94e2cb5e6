//! The header fields of a request to `/mcp`, found in one pass. With few fields, one pass is cheaper than hash lookups.

use http::{HeaderMap, HeaderValue};

pub const VERSION: &str = "mcp-protocol-version";
pub const METHOD: &str = "mcp-method";
pub const NAME: &str = "mcp-name";

/// The fields that are read.
#[derive(Clone, Copy, Debug, Default)]
pub struct McpHeaders<'h> {
    pub origin: SentField<'h>,
    pub content_type: SentField<'h>,
    pub version: SentField<'h>,
    pub method: SentField<'h>,
    pub name: SentField<'h>,
}

/// The first value of a field, and whether there are more values.
#[derive(Clone, Copy, Debug, Default)]
pub struct SentField<'h> {
    pub first: Option<&'h HeaderValue>,
    pub is_repeated: bool,
}

impl<'h> McpHeaders<'h> {
    pub fn of(headers: &'h HeaderMap) -> Self {
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
