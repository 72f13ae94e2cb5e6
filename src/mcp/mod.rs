//! The API for language models: the Model Context Protocol (MCP) at `POST /mcp`. A second form of requests. Each endpoint is
//! a tool; a tool call becomes the corresponding GET, which the gateway answers like any other, with the same key check,
//! limits, price, logs and metrics. Only its response is translated.

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
