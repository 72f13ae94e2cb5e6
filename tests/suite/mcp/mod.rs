//! The service for language models: messages, calls of tools, and connections.

mod calls;
mod connections;
mod messages;
pub mod session;
