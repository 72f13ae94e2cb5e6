//! The contract, as tests over real sockets: each is named after the sentence it proves.
//!
//! `world` starts a whole gateway on port 0 with a hand-driven clock; `backend` is a backend that does what a test
//! tells it; `client` refuses every answer that breaks a rule which holds for all. No sleeps, no fixed ports, no order.

mod backend;
mod client;
mod process;
mod strangers;
mod world;
