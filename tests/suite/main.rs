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

mod all_at_once;
mod apart;
mod attacks;
mod audit_users;
mod auth;
mod backend;
mod backend_alone;
mod bad_heads;
mod balances;
mod black_hole;
mod bombs;
mod built_in;
mod caching;
mod canary;
mod cli_demo;
mod cli_health;
mod cli_keys;
mod cli_store;
mod cli_top;
mod cli_words;
mod client;
mod clock_steps;
mod codes;
mod cors;
mod crowd;
mod dated;
mod days;
mod deadlines;
mod disk;
mod disk_faults;
mod faults;
mod forwarded;
mod framing;
mod freshness;
mod grace_at_stops;
mod handover;
mod http2;
mod inside;
mod keepsakes;
mod keys_import;
mod keys_side;
mod kills;
mod leases;
mod leavers;
mod ledger_away;
mod limits;
mod made_up;
mod mapping;
mod meanwhile;
mod metrics_reference;
mod missing_store;
mod order;
mod overload;
mod pages;
mod params;
mod paths;
mod places;
mod pooled;
mod prices;
mod protection;
mod proxied;
mod purge;
mod queries;
mod races;
mod raw;
mod raw_bytes;
mod refreshing;
mod reloading;
mod request_ids;
mod resources;
mod retirement;
mod sample;
mod saturated;
mod scoring_import;
mod scoring_kills;
mod secret_files;
mod seeds;
mod settings_side;
mod shell;
mod side_port;
mod sigterm;
mod slow_clients;
mod standing;
mod strangers;
mod supervisor;
mod tls;
mod told;
mod traces;
mod two_forms;
mod unlisted;
mod unread;
mod upstream;
mod usage;
mod waiters;
mod watching;
mod week;
mod world;
