//! The archive of benchmark runs: imports, changes and incidents by the real program.

mod scoring_delete;
mod scoring_import;
mod scoring_incidents;
mod scoring_kills;
mod scoring_tool_logs;
