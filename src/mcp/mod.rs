//! The API for language models: the Model Context Protocol (MCP) at `POST /mcp`. Each endpoint is a tool. A tool call
//! is converted to the corresponding GET request, which the gateway answers as usual, with the same key check, limits,
//! price, logs and metrics. Only the response is translated.

mod brief_text;
mod mcp_headers;
mod mcp_service;
mod mcp_tool;
mod protocol;
mod rpc_message;
mod rpc_reply;
mod tool_result;

pub use mcp_service::McpService;
pub use mcp_tool::tool_name;
pub use protocol::PROTOCOLS;
#[doc(hidden)]
pub use rpc_message::RpcMessage;
pub use tool_result::tool_result;
