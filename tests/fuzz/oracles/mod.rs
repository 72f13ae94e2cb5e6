//! The oracles of the fuzz targets. Each compares the program with a slower implementation that is obviously correct.
//! The fuzzer and, as ordinary tests, the seeds use the same functions.

pub mod accept_encoding;
pub mod if_none_match;
pub mod key_headers;
pub mod proxy_header;
pub mod rpc_message;
pub mod run_line;
pub mod target;
pub mod tool_log;
