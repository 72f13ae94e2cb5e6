//! Integration tests of the contract over real sockets; each test name is the sentence that it proves.
//!
//! Folders are subjects. In `fixtures`, `world` starts a whole gateway on port 0 with a manual clock, and `backend` is
//! a scripted backend. `client` checks every response against the rules of all responses. `raw` sends requests as
//! bytes; tables of such requests are in `requests::raw_bytes` and `requests::queries`. `balances` reads the remaining
//! allowance of a customer's limits. `program` runs the real program, `failing_disk` makes its disk fail, and
//! `load_clients` counts what it delivers. No sleeps, no fixed ports, and no dependence on the order of tests.

#![expect(
    unreachable_pub,
    reason = "test helpers are public to the tests, and nothing uses a test binary as a library"
)]
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::disallowed_methods,
    clippy::format_push_string,
    clippy::large_futures,
    reason = "test helpers are test code too: a failure in them is a failed test"
)]

#[macro_use]
mod fixtures;

mod administration;
mod archive;
mod cli;
mod connections;
mod documents;
mod fleet;
mod mail;
mod mcp;
mod processes;
mod quotas;
mod requests;
mod site;
mod telemetry;
mod upstreams;

use fixtures::{
    backend, balances, client, cluster, failing_disk, fake_clock, full_runs, in_process_upstream,
    links, load_clients, optional_headers, ports, postgres, program, raw, requirements,
    snapshot_upstream, tls_backend, world,
};
