//! What has to be true of every input of a fuzz target: the same functions judge what the fuzzer finds and, as ordinary
//! tests, the seeds. Each holds the program against something slower that is plainly right.

pub mod accept_encoding;
pub mod if_none_match;
pub mod key_headers;
pub mod proxy_header;
pub mod target;
