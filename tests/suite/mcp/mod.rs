//! The service for language models: messages, calls of tools, and connections.

mod calls;
mod connections;
mod messages;
mod session;
