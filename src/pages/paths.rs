//! Paths of the pages.

pub const DOCS: &str = "/docs";
/// The docs page as Markdown.
pub const DOCS_MARKDOWN: &str = "/docs.md";
/// Links for language models: <https://llmstxt.org>.
pub const LLMS_TXT: &str = "/llms.txt";
pub const OPENAPI: &str = "/openapi.json";
pub const STATUS: &str = "/status";
/// The beginning of all account paths.
pub const ACCOUNT: &str = "/account";
/// The page where people sign up and sign in.
pub const ACCOUNT_SIGN_IN: &str = "/account/sign-in";
/// The service for language models.
pub const MCP: &str = "/mcp";
