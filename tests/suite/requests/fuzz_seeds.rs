//! The seeds of the fuzz targets as ordinary tests: each is checked by the oracle of its target.

use std::path::Path;

#[path = "../../fuzz/oracles/mod.rs"]
mod oracles;

/// Runs an oracle on the seeds of a target.
fn check_seeds(target: &str, least: usize, check: fn(&[u8])) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fuzz/seeds")
        .join(target);
    let seeds: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    for seed in &seeds {
        check(&std::fs::read(seed).unwrap());
    }
    assert!(seeds.len() >= least, "{} seeds", seeds.len());
}

#[test]
fn seeds_of_targets_are_parsed_as_the_contract_defines() {
    check_seeds("target", 20, oracles::target::check);
}

#[test]
fn seeds_of_key_headers_contain_the_key_that_the_contract_defines() {
    check_seeds("key_headers", 12, oracles::key_headers::check);
}

#[test]
fn seeds_of_accept_encoding_select_the_preferred_encoding() {
    check_seeds("accept_encoding", 12, oracles::accept_encoding::check);
}

#[test]
fn seeds_of_if_none_match_match_only_if_they_contain_the_tag() {
    check_seeds("if_none_match", 10, oracles::if_none_match::check);
}

#[test]
fn seeds_of_the_proxy_header_are_parsed_deterministically() {
    check_seeds("proxy_header", 20, oracles::proxy_header::check);
}

#[test]
fn seeds_of_run_lines_are_read_as_the_format_defines() {
    check_seeds("run_line", 20, oracles::run_line::check);
}

#[test]
fn seeds_of_tool_logs_become_complete_runs_or_none() {
    check_seeds("tool_log", 20, oracles::tool_log::check);
}

#[test]
fn seeds_of_rpc_messages_are_read_as_json_rpc_defines() {
    check_seeds("rpc_message", 12, oracles::rpc_message::check);
}
