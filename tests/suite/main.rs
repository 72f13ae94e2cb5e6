//! The contract, as tests over real sockets: each is named after the sentence it proves.
//!
//! `world` starts a whole gateway on port 0 with a hand-driven clock; `backend` is a backend that does what a test
//! tells it; `client` refuses every answer that breaks a rule which holds for all; `raw` is for requests that only bytes
//! can say, with tables of them in `raw_bytes` and `queries`; `balances` looks at what is left of a customer's limits.
//! `shell` runs the real program, `disk` fails under it, and `crowd` counts what it delivers. No sleeps, no fixed
//! ports, no order.

#![expect(
    unreachable_pub,
    reason = "the test language is public to the tests, and a test binary has no outside"
)]
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::disallowed_methods,
    clippy::format_push_string,
    clippy::large_futures,
    reason = "the language's own functions are test code too: a failure in them is a failed test"
)]

mod access_log;
mod attacks;
mod audit_users;
mod auth;
mod backend;
mod backend_alone;
mod bad_heads;
mod balances;
mod built_in;
mod caching;
mod canary;
mod changes_while_waiting;
mod cli_demo;
mod cli_health;
mod cli_keys;
mod cli_store;
mod cli_top;
mod cli_words;
mod client;
mod client_disconnects;
mod clock_steps;
mod codes;
mod combined_failures;
mod connection_slots;
mod cors;
mod daily_quota;
mod dated_backend;
mod deadlines;
mod deprecation;
mod disk;
mod disk_faults;
mod disk_mirror;
mod faults;
mod forwarded;
mod framing;
mod free_form;
mod freshness;
mod grace_at_stops;
mod handover;
mod http2;
mod in_process_backend;
mod isolation;
mod keys_import;
mod keys_side;
mod kills;
mod leases;
mod ledger_away;
mod limits;
mod mapping;
mod metric_cardinality;
mod metrics_reference;
mod missing_store;
mod monitoring;
mod order_of_checks;
mod overload;
mod oversized_responses;
mod pages;
mod params;
mod paths;
mod pooled_connections;
mod prices;
mod program;
mod protection;
mod proxied;
mod purge;
mod queries;
mod races;
mod raw;
mod raw_bytes;
mod refresh_week;
mod refreshing;
mod reloading;
mod request_ids;
mod resources;
mod sample;
mod scoring_import;
mod scoring_kills;
mod secret_files;
mod seeds;
mod settings_side;
mod side_port;
mod side_port_under_load;
mod sigterm;
mod slow_clients;
mod supervisor;
mod surviving_callers;
mod tls;
mod traces;
mod unauthenticated_clients;
mod unlisted_models;
mod unread_logs;
mod unresponsive_backend;
mod upstream;
mod upstream_status;
mod usage;
mod waiters;
mod world;
