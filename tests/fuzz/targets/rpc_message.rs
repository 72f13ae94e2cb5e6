//! The fuzz target of the oracle of the same name.
#![no_main]

#[path = "../oracles/rpc_message.rs"]
mod oracle;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| oracle::check(bytes));
