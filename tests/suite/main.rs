//! Integration tests of the contract over real sockets; each test name is the sentence that it proves.
//!
//! `world` starts a whole gateway on port 0 with a manual clock; `backend` is a scripted backend; `client` checks
//! every response against the rules of all responses; `raw` sends requests as bytes, with tables of them in
//! `raw_bytes` and `queries`; `balances` reads the remaining allowance of a customer's limits. `program` runs the
//! real program, `failing_disk` makes its disk fail, and `load_clients` counts what it delivers. No sleeps, no fixed
//! ports, and no dependence on the order of tests.

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

mod access_log;
mod attempts;
mod audit_users;
mod auth;
mod backend;
mod bad_upstream_responses;
mod balances;
mod builtin_backend;
mod builtin_upstream;
mod caching;
mod canary;
mod changes_while_waiting;
mod check_order;
mod cli_accounts;
mod cli_contact;
mod cli_demo;
mod cli_health;
mod cli_keys;
mod cli_messages;
mod cli_store;
mod cli_top;
mod cli_websites;
mod client;
mod client_disconnects;
mod clock_steps;
#[path = "../servers/cluster.rs"]
mod cluster;
mod codes;
mod combined_failures;
mod connection_slots;
mod cors;
mod daily_quota;
mod deadlines;
mod deprecation;
mod discovery;
mod disk_faults;
mod disk_mirror;
mod documented_commands;
mod failing_disk;
#[path = "../servers/fake_clock.rs"]
mod fake_clock;
mod faults;
mod file_descriptors;
mod fleet;
mod form_isolation;
mod forwarded;
mod framing;
mod framing_sizes;
mod freshness;
mod fuzz_seeds;
mod grace_at_shutdown;
mod handover;
mod http2;
mod in_process_upstream;
mod keys_import;
mod kills;
mod leases;
mod ledger_unreachable;
mod limits;
#[path = "../servers/links.rs"]
mod links;
mod load_clients;
mod mail;
mod mapping;
mod metric_cardinality;
mod metrics_reference;
mod missing_store;
mod model_ids;
mod monitoring;
mod older_data;
mod overload;
mod oversized_responses;
mod pages;
mod params;
mod paths;
mod pooled_connections;
#[path = "../servers/postgres.rs"]
mod postgres;
#[path = "../servers/postgres_restarts.rs"]
mod postgres_restarts;
mod private_files;
mod program;
mod protection;
mod proxied;
mod purge;
mod queries;
mod races;
mod raw;
mod raw_bytes;
mod recorded_backend;
mod refresh_simulation;
mod refreshing;
mod reloading;
mod request_costs;
mod request_ids;
mod request_totals;
mod resources;
mod response_isolation;
mod sample_config;
mod scoring_changes;
mod scoring_import;
mod scoring_incidents;
mod scoring_kills;
mod scoring_tool_logs;
mod scoring_unfinished;
mod secret_files;
mod side_port;
mod side_port_connections;
mod side_port_keys;
mod side_port_settings;
mod side_port_under_load;
mod sigterm;
mod site;
mod slow_clients;
mod snapshot_upstream;
mod status_page;
mod supervisor;
mod tls;
mod tls_backend;
mod trace_export;
mod traces;
mod unauthenticated_clients;
mod unknown_models;
mod unread_logs;
mod unresponsive_upstream;
mod upstream;
mod upstream_address_faults;
mod upstream_addresses;
mod upstream_status;
mod upstream_tls;
mod usage;
mod waiters;
mod world;
